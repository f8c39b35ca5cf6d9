"""The client of `coordinated-kv`: keeps a copy of the table, asks the leader, and looks again where it is refused.

The table comes from any data node, or with `table_source=core` from the core itself, whose client it then is. A node
that refuses a request names the leader it knows; the client asks that one next if its own table is older.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry
from faultline.harness.system import PortClient
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.coordinated_kv.controller import TABLE
from faultline.systems_under_test.reference.coordinated_kv.core_session import OF_THE_CORE
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    ClusterTableRead,
    DataRefused,
    DataRequest,
    DataResponse,
    ReadClusterTable,
)
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.table import NO_NODE, ClusterTable, table_of
from faultline.systems_under_test.reference.leases_and_watches.client import ServicedClient
from faultline.systems_under_test.reference.raft.client import DEFINITE_ERRORS
from faultline.systems_under_test.reference.shared.key_commands import FUNCTIONS, Command, command_of
from faultline.systems_under_test.reference.shared.table_client import NO_TABLE, TableClient

__all__ = ["FUNCTIONS", "CoordinatedClient"]


class CoordinatedClient(TableClient[ClusterTable, Command]):
    """One logical client: implements `PortClient` over its ports."""

    _registry = OutcomeRegistry((*DEFINITE_ERRORS.definite, NO_TABLE))

    def __init__(self, ports: Ports, node: NodeId, settings: CoordinatedSettings) -> None:
        members = settings.data_members
        super().__init__(ports, members, node if node in members else members[0], settings, ClusterTable())
        self._core: PortClient | None = None
        if settings.table_source == "core":
            core = settings.core_members
            self._core = ServicedClient(ports, core, core[0], settings.core)
        self._core_is_asked = False

    def start(self) -> None:
        """Ask for the table."""
        if self._core is not None:
            self._core.start()
        super().start()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, a refusal or a table."""
        if isinstance(message, OF_THE_CORE):
            if self._core is not None:
                self._core.receive(source, message)
        elif type(message) is ClusterTableRead:
            self._take_table(message.table)
        elif not self._is_awaited(message):
            return
        elif type(message) is DataResponse:
            self._take_answer(source, message.value, message.error)
        elif type(message) is DataRefused:
            self._handle_refusal(message)

    def _command_of(self, operation: Operation) -> Command | None:
        return command_of(operation)

    def _ask_for_table(self) -> None:
        if self._core is None:
            self._ports.network.send(self._informant, ReadClusterTable())
        elif not self._core_is_asked:
            self._core_is_asked = True
            self._core.invoke(Operation(0, "read", TABLE), self._take_core_answer)

    def _take_core_answer(self, outcome: Outcome) -> None:
        self._core_is_asked = False
        if outcome.kind == "ok":
            self._ports.trace.sometimes("table-read-in-the-core")
            self._take_table(table_of(outcome.value))

    def _request(self, command: Command) -> tuple[NodeId, Any] | None:
        entries = self._table.entries
        if not entries:
            return None
        partition = partition_of(command.key, len(entries))
        entry = entries[partition]
        if entry.leader == NO_NODE:
            return None
        return NodeId(entry.leader), DataRequest(self._number, partition, entry.generation, command)

    def _handle_refusal(self, refused: DataRefused) -> None:
        """Take the word of the node that refuses for the leader if it knows a later generation; try again soon."""
        self._ports.trace.sometimes("client-refused")
        entries = self._table.entries
        if refused.generation <= entries[refused.partition].generation:
            self._pause()
            return
        self._ports.trace.sometimes("client-told-the-leader")
        newer = msgspec.structs.replace(
            entries[refused.partition], leader=refused.leader, generation=refused.generation
        )
        changed = (*entries[: refused.partition], newer, *entries[refused.partition + 1 :])
        self._table = msgspec.structs.replace(self._table, entries=changed)
        self._transmit()
