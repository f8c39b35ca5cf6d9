"""The client of `data-grid`: keeps a copy of the table, asks the owner, and looks again where it is refused."""

from __future__ import annotations

from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, UNSUPPORTED, OutcomeRegistry
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.reference.data_grid.messages import (
    GridRefused,
    GridRequest,
    GridResponse,
    GridTableRead,
    ReadGridTable,
)
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.table import AWAY, NO_TABLE_YET, GridTable
from faultline.systems_under_test.reference.shared.key_commands import (
    FUNCTIONS,
    INSUFFICIENT_QUANTITY,
    NO_SUCH_ACCOUNT,
    Command,
    command_of,
)
from faultline.systems_under_test.reference.shared.table_client import NO_TABLE, TableClient

__all__ = ["FUNCTIONS", "DataGridClient"]


class DataGridClient(TableClient[GridTable, Command]):
    """One logical client: implements `PortClient` over its ports."""

    _registry = OutcomeRegistry((UNSUPPORTED, NO_TABLE, CAS_MISMATCH, INSUFFICIENT_QUANTITY, NO_SUCH_ACCOUNT))

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: GridSettings) -> None:
        super().__init__(ports, members, node, settings, NO_TABLE_YET)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, a refusal or a table."""
        if type(message) is GridTableRead:
            self._take_table(message.table)
        elif not self._is_awaited(message):
            return
        elif type(message) is GridResponse:
            self._take_answer(source, message.value, message.error)
        elif type(message) is GridRefused:
            self._handle_refusal(source)

    def _command_of(self, operation: Operation) -> Command | None:
        return command_of(operation)

    def _ask_for_table(self) -> None:
        self._ports.network.send(self._informant, ReadGridTable())

    def _request(self, command: Command) -> tuple[NodeId, Any] | None:
        entries = self._table.entries
        if not entries:
            return None
        partition = partition_of(command.key, len(entries))
        owner = entries[partition].owner
        return None if owner == AWAY else (NodeId(owner), GridRequest(self._number, partition, command))

    def _handle_refusal(self, source: NodeId) -> None:
        """Ask the node that refused for its table, which may be newer, and try again soon."""
        self._ports.trace.sometimes("client-refused")
        self._ports.network.send(source, ReadGridTable())
        self._pause()
