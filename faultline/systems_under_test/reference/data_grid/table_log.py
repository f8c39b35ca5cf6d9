"""The promise and the table of one node, on its disk: data may be lost with the memory, the places of data may not.

A node takes part in a round for a table by a *promise*: it follows no earlier table from then on, and tells which one
it followed last. A coordinator that hears a majority so hears of every table under which a client was ever answered.
That holds only if no restart forgets a table: a member that had forgotten it would let a later coordinator take old
copies for good.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.compacted_log import CompactedLog
from faultline.systems_under_test.reference.data_grid.table import NO_TABLE_YET, GridTable

__all__ = ["TableLog"]

_SNAPSHOT_EVERY_ENTRIES = 64


class _State(msgspec.Struct, frozen=True, array_like=True):
    promised: int
    table: GridTable | None = None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_State)


class TableLog:
    """The highest round that this node has taken part in, and the newest table that it followed."""

    def __init__(self, ports: Ports) -> None:
        self.promised = 0
        self.table = NO_TABLE_YET
        self._is_due = False
        self._log = CompactedLog(ports.storage, _SNAPSHOT_EVERY_ENTRIES, self._note_due, name="table")

    def recover(self) -> None:
        """Read both from the disk. Raise `CorruptLog` or `UnusableSnapshot` for damaged files."""
        snapshot, entries = self._log.recover()
        for data in (*([] if snapshot is None else [snapshot]), *entries):
            state = _DECODER.decode(data)
            self.promised = state.promised
            self.table = self.table if state.table is None else state.table

    @property
    def is_frozen(self) -> bool:
        """True while this node has taken part in a round whose table it does not have."""
        return self.promised > self.table.version

    def promise(self, version: int) -> bool:
        """Take part in the round `version`; return False when this node has taken part in a later one."""
        if version < self.promised or version <= self.table.version:
            return False
        if version > self.promised:
            self._write(_State(version))
        return True

    def follow(self, table: GridTable) -> bool:
        """Follow `table`; return False when this node does already, or has promised not to."""
        if table.version < self.promised or table.version <= self.table.version:
            return False
        self._write(_State(table.version, table))
        return True

    def forget(self) -> None:
        """Follow no table: the group that had it is gone. The promise stays."""
        self._write(_State(self.promised, NO_TABLE_YET))

    def _write(self, state: _State) -> None:
        self._log.append(_ENCODER.encode(state))
        self._log.flush()
        self.promised = state.promised
        self.table = self.table if state.table is None else state.table
        if self._is_due:
            self._is_due = False
            self._log.compact(_ENCODER.encode(_State(self.promised, self.table)))

    def _note_due(self) -> None:
        self._is_due = True
