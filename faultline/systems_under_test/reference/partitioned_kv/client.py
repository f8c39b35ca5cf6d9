"""The client of `partitioned-kv`: keeps a copy of the table, asks the owner, and looks again where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, OutcomeRegistry
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import PartitionTable
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    PartitionRefused,
    PartitionRequest,
    PartitionResponse,
    ReadTable,
    TableResponse,
)
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.reference.shared.key_commands import (
    CompareAndSet,
    GetValue,
    SetValue,
)
from faultline.systems_under_test.reference.shared.table_client import NO_TABLE, TableClient

__all__ = ["FUNCTIONS", "PartitionedClient"]

_Command = GetValue | SetValue | CompareAndSet

_COMMANDS: dict[str, Callable[[str, Any], _Command]] = {
    "read": lambda key, _: GetValue(key),
    "write": SetValue,
    "cas": lambda key, value: CompareAndSet(key, *value),
}

FUNCTIONS = tuple(_COMMANDS)
"""The functions that a client can be asked for."""


class PartitionedClient(TableClient[PartitionTable, _Command]):
    """One logical client: implements `PortClient` over its ports."""

    _registry = OutcomeRegistry((UNSUPPORTED, NO_TABLE, CAS_MISMATCH))

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: PartitionSettings) -> None:
        super().__init__(ports, members, node, settings, PartitionTable())

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, a refusal or a table."""
        if type(message) is TableResponse:
            self._take_table(message.table)
        elif not self._is_awaited(message):
            return
        elif type(message) is PartitionResponse:
            self._take_answer(source, message.value, message.error)
        elif type(message) is PartitionRefused:
            self._handle_refusal(source)

    def _command_of(self, operation: Operation) -> _Command | None:
        make = _COMMANDS.get(operation.f)
        return None if make is None else make(operation.key or "", operation.value)

    def _ask_for_table(self) -> None:
        self._ports.network.send(self._informant, ReadTable())

    def _partition_of(self, key: str) -> int:
        return partition_of(key, len(self._table.entries))

    def _request(self, command: _Command) -> tuple[NodeId, Any] | None:
        if not self._table.entries:
            return None
        partition = self._partition_of(command.key)
        entry = self._table.entries[partition]
        if not entry.online:
            # It may yet begin at another member; a request to this one would only be refused.
            return None
        return NodeId(entry.owner), PartitionRequest(self._number, partition, entry.generation, command)

    def _handle_refusal(self, source: NodeId) -> None:
        """Ask the node that refused for its table, which may be newer, and try again soon."""
        self._ports.trace.sometimes("client-refused")
        self._ports.network.send(source, ReadTable())
        self._pause()
