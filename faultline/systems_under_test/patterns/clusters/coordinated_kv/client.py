"""The client of `coordinated-kv`: keeps a copy of the table, asks the leader, and looks again when it is refused.

The table comes from any data node, or with `table_source=core` from the core itself, whose client it then is. Who
refuses says whom it takes for the leader; the client asks that one next if it has not heard of it.

All attempts of one operation carry the same number, so a write is executed once however often it is sent, also when
another replica takes over in between. A refusal says that *this* attempt was not executed; an earlier one may have
been. So only an operation that was never sent is definitely over without effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.harness.system import PortClient
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.clusters.consistent_core.client import (
    DEFINITE_ERRORS,
    FUNCTIONS,
    TIMEOUT,
    UNSUPPORTED,
    command_of,
)
from faultline.systems_under_test.patterns.clusters.consistent_core.key_commands import Command
from faultline.systems_under_test.patterns.clusters.consistent_core.system import ConsistentCore
from faultline.systems_under_test.patterns.clusters.coordinated_kv.controller import TABLE
from faultline.systems_under_test.patterns.clusters.coordinated_kv.core_session import OF_THE_CORE
from faultline.systems_under_test.patterns.clusters.coordinated_kv.messages import (
    ClusterTableRead,
    DataRefused,
    DataRequest,
    DataResponse,
    ReadClusterTable,
)
from faultline.systems_under_test.patterns.clusters.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.patterns.clusters.coordinated_kv.table import NOBODY, ClusterTable, Entry, table_of
from faultline.systems_under_test.patterns.clusters.open_operation import OpenOperation
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of

__all__ = ["FUNCTIONS", "NO_TABLE", "CoordinatedClient"]

NO_TABLE = "no-partition-table"
"""No leader of the key's partition was known in time, so the request was never sent."""

_REGISTRY = OutcomeRegistry((*DEFINITE_ERRORS.definite, NO_TABLE))
_PAUSE_US = 20_000


class CoordinatedClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, node: NodeId, settings: CoordinatedSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._informant = node if node in settings.data_members else settings.data_members[0]
        self._core: PortClient | None = None
        if settings.table_source == "core":
            core = settings.core_members
            self._core = ConsistentCore().client(ports, core, core[0], settings.core_options, frozenset())
        self._core_is_asked = False
        self._table = ClusterTable()
        self._table_us = 0
        self._number = 0
        self._was_sent = False
        self._command: Command | None = None
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Ask for the table."""
        if self._core is not None:
            self._core.start()
        self._ask_for_table()

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of `FUNCTIONS`."""
        command = command_of(operation)
        if command is None:
            done(_REGISTRY.outcome(UNSUPPORTED))
            return
        self._number += 1
        self._was_sent = False
        self._command = command
        self._open.begin(done, self._settings.client_timeout_us)
        if self._ports.clock.monotonic_us() - self._table_us > self._settings.table_refresh_us:
            self._ask_for_table()
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, a refusal or a table; what belongs to an earlier request is late, and ignored."""
        if isinstance(message, OF_THE_CORE):
            if self._core is not None:
                self._core.receive(source, message)
        elif type(message) is ClusterTableRead:
            self._take_table(message.table)
        elif not self._open or message.request_number != self._number:
            return
        elif type(message) is DataResponse:
            outcome = ok(message.value, source) if message.error is None else _REGISTRY.outcome(message.error, source)
            self._open.end(outcome)
        elif type(message) is DataRefused:
            self._handle_refusal(message)

    # -- the table ----------------------------------------------------------------------------------------------------

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

    def _take_table(self, table: ClusterTable) -> None:
        self._table_us = self._ports.clock.monotonic_us()
        if table.version > self._table.version:
            self._table = table
            if self._open and not self._was_sent:
                self._transmit()

    def _entry_of(self, key: str) -> tuple[int, Entry | None]:
        entries = self._table.entries
        if not entries:
            return 0, None
        partition = partition_of(key, len(entries))
        return partition, entries[partition]

    # -- attempts -----------------------------------------------------------------------------------------------------

    def _transmit(self) -> None:
        command = self._command
        assert command is not None
        partition, entry = self._entry_of(command.key)
        if entry is None or entry.leader == NOBODY:
            self._open.expect(_PAUSE_US, self._try_again)
            return
        self._was_sent = True
        request = DataRequest(self._number, partition, entry.generation, command)
        self._ports.network.send(NodeId(entry.leader), request)
        self._open.expect(self._settings.request_timeout_us, self._handle_silence)

    def _handle_refusal(self, refused: DataRefused) -> None:
        """Who refuses may know better: take its word for the leader, and try again soon."""
        self._ports.trace.sometimes("client-refused")
        entries = self._table.entries
        if refused.generation > entries[refused.partition].generation:
            self._ports.trace.sometimes("client-told-the-leader")
            newer = msgspec.structs.replace(
                entries[refused.partition], leader=refused.leader, generation=refused.generation
            )
            changed = (*entries[: refused.partition], newer, *entries[refused.partition + 1 :])
            self._table = msgspec.structs.replace(self._table, entries=changed)
            self._transmit()
            return
        self._open.expect(_PAUSE_US, self._try_again)

    def _handle_silence(self) -> None:
        """Neither the leader nor, perhaps, the informant is there: ask another node for the table."""
        self._ports.trace.sometimes("client-retried")
        members = self._settings.data_members
        self._informant = members[(members.index(self._informant) + 1) % len(members)]
        self._try_again()

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(_REGISTRY.outcome(TIMEOUT if self._was_sent else NO_TABLE))
            return
        self._ask_for_table()
        self._transmit()
