"""The data of a group that dissolves after a split brain: dropped, and reported before and after.

With `minimum_size=none` both halves of a split cluster accept writes. When they merge, one half's data go. A store that
said nothing would leave its clients to believe in their acknowledgements. So each owner of the group that dissolves
says which acknowledged writes it drops, and hands them to the owner in the group that stays, which says what became of
each: *lost*, when nothing was written there, or *conflicting*, when both groups wrote the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.reference.data_grid.copies import GridCopy
from faultline.systems_under_test.reference.data_grid.messages import (
    CopiesDropped,
    DroppedWrite,
    DroppedWrites,
    DroppedWritesCompared,
)
from faultline.systems_under_test.reference.data_grid.table import AWAY, GridTable

__all__ = ["DroppedData"]


class _Owned(Protocol):
    @property
    def copy(self) -> GridCopy: ...


class DroppedData:
    """The writes that this node dropped, until the owners in the group that stays have reported them."""

    def __init__(self, ports: Ports, send: Callable[[str, Any], None]) -> None:
        self._ports = ports
        self._send = send
        self._writes: dict[int, tuple[DroppedWrite, ...]] = {}

    def drop(self, owned: Mapping[int, _Owned]) -> None:
        """Report what goes with the partitions that this node owned, and keep it for the owners to come."""
        for partition, each in owned.items():
            copy = each.copy
            writes = tuple(self._written(copy))
            self._ports.trace.sometimes("copies-dropped")
            self._ports.trace.emit(CopiesDropped(partition, tuple(write.key for write in writes)))
            if writes:
                self._writes[partition] = (*self._writes.get(partition, ()), *writes)

    def _written(self, copy: GridCopy) -> list[DroppedWrite]:
        return [DroppedWrite(key, before, copy.values.get(key)) for key, before in copy.at_risk.items()]

    def report_to_owners(self, table: GridTable) -> None:
        """Send what was dropped to the owners that `table` names; repeat it until they have answered."""
        for partition, writes in self._writes.items():
            if partition < len(table.entries) and (owner := table.entries[partition].owner) != AWAY:
                self._send(owner, DroppedWrites(partition, writes))

    def take_acknowledgement(self, partition: int) -> None:
        """Forget what an owner has reported."""
        self._writes.pop(partition, None)

    def compare(self, dropped: DroppedWrites, values: Mapping[str, Any]) -> None:
        """Report what became of the writes of a dissolved group, as the owner in the group that stays."""
        gone = [write for write in dropped.writes if values.get(write.key) != write.value]
        lost = tuple(write.key for write in gone if values.get(write.key) == write.before)
        conflicting = tuple(write.key for write in gone if values.get(write.key) != write.before)
        self._ports.trace.sometimes("dropped-writes-compared")
        self._ports.trace.emit(DroppedWritesCompared(dropped.partition, lost, conflicting))
