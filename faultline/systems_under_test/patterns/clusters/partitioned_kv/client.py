"""The client of `partitioned-kv`: keeps a copy of the table, asks the owner, and looks again when it is refused.

All attempts of one operation carry the same number, so a write is executed once however often it is sent, also when the
partition moves in between. A refusal says that *this* attempt was not executed; an earlier one may have been. So only
an operation that was never sent is definitely over without effect; all others that find no answer in time are unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.clusters.consistent_core.key_commands import (
    CompareAndSet,
    GetValue,
    SetValue,
)
from faultline.systems_under_test.patterns.clusters.open_operation import OpenOperation
from faultline.systems_under_test.patterns.clusters.partitioned_kv.messages import (
    PartitionRefused,
    PartitionRequest,
    PartitionResponse,
    ReadTable,
    TableResponse,
)
from faultline.systems_under_test.patterns.clusters.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import PartitionEntry, PartitionTable
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of

__all__ = ["FUNCTIONS", "NO_TABLE", "TIMEOUT", "UNSUPPORTED", "PartitionedClient"]

UNSUPPORTED = "unsupported-operation"
"""There is no such operation; nothing was sent."""

NO_TABLE = "no-partition-table"
"""No node had a table in time, so the request was never sent."""

TIMEOUT = "timeout"
"""No answer in time; whether the request takes effect is unknown."""

_COMMANDS: dict[str, Callable[[str, Any], GetValue | SetValue | CompareAndSet]] = {
    "read": lambda key, _: GetValue(key),
    "write": SetValue,
    "cas": lambda key, value: CompareAndSet(key, *value),
}

FUNCTIONS = tuple(_COMMANDS)
"""What a client can be asked to do."""

_REGISTRY = OutcomeRegistry((UNSUPPORTED, NO_TABLE, CAS_MISMATCH))
_PAUSE_US = 20_000
_NOBODY = PartitionEntry("", 0)


class PartitionedClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: PartitionSettings) -> None:
        self._ports = ports
        self._members = members
        self._informant = node
        self._settings = settings
        self._table = PartitionTable()
        self._table_us = 0
        self._number = 0
        self._was_sent = False
        self._command: GetValue | SetValue | CompareAndSet | None = None
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Ask for the table."""
        self._ask_for_table()

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of `FUNCTIONS`."""
        make = _COMMANDS.get(operation.f)
        if make is None:
            done(_REGISTRY.outcome(UNSUPPORTED))
            return
        self._number += 1
        self._was_sent = False
        self._command = make(operation.key or "", operation.value)
        self._open.begin(done, self._settings.client_timeout_us)
        if self._ports.clock.monotonic_us() - self._table_us > self._settings.table_refresh_us:
            self._ask_for_table()
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, a refusal or a table; what belongs to an earlier request is late, and ignored."""
        if type(message) is TableResponse:
            self._take_table(message.table)
        elif not self._open or message.request_number != self._number:
            return
        elif type(message) is PartitionResponse:
            outcome = ok(message.value, source) if message.error is None else _REGISTRY.outcome(message.error, source)
            self._open.end(outcome)
        elif type(message) is PartitionRefused:
            self._handle_refusal(source)

    # -- the table ----------------------------------------------------------------------------------------------------

    def _ask_for_table(self) -> None:
        self._ports.network.send(self._informant, ReadTable())

    def _take_table(self, table: PartitionTable) -> None:
        self._table_us = self._ports.clock.monotonic_us()
        if table.version > self._table.version:
            self._table = table
            if self._open and not self._was_sent:
                self._transmit()

    def _partition_of(self, key: str) -> int:
        return partition_of(key, len(self._table.entries))

    # -- attempts -----------------------------------------------------------------------------------------------------

    def _transmit(self) -> None:
        command = self._command
        assert command is not None
        partition = self._partition_of(command.key) if self._table.entries else 0
        entry = self._table.entries[partition] if self._table.entries else _NOBODY
        if not entry.online:
            # What was never online may yet begin at another member; what has just moved is refused until it is told.
            self._open.expect(_PAUSE_US, self._try_again)
            return
        self._was_sent = True
        request = PartitionRequest(self._number, partition, entry.generation, command)
        self._ports.network.send(NodeId(entry.owner), request)
        self._open.expect(self._settings.request_timeout_us, self._handle_silence)

    def _handle_refusal(self, source: NodeId) -> None:
        """Who refuses may know better: ask there for the table, and try again soon."""
        self._ports.trace.sometimes("client-refused")
        self._ports.network.send(source, ReadTable())
        self._open.expect(_PAUSE_US, self._try_again)

    def _handle_silence(self) -> None:
        """Neither the owner nor, perhaps, the informant is there: ask another node for the table."""
        self._ports.trace.sometimes("client-retried")
        members = self._members
        self._informant = members[(members.index(self._informant) + 1) % len(members)]
        self._try_again()

    def _try_again(self) -> None:
        if self._open.is_overdue:
            self._open.end(_REGISTRY.outcome(TIMEOUT if self._was_sent else NO_TABLE))
            return
        self._ask_for_table()
        self._transmit()
