"""A log of one node that shortens itself: after a number of appended entries a snapshot replaces them.

The log asks for a snapshot when one is due (`on_due`). Its owner serialises its state *between two events*, when the
state is exactly the one that the log leads to, and hands it to `compact`. The snapshot is made durable under the index
of the last entry, and the closed segments that the retained snapshots make superfluous are deleted at once. So the disk
holds at most the retained snapshots, the entries since the older one, and one segment more.

    append, append, … ──▶ on_due ──▶ compact(state) ──▶ snapshot durable ──▶ old segments deleted
    start: recover() gives the newest snapshot's state and the entries behind it

*Does not tolerate.* A state that is ahead of the log, or behind it; `snapshot_store` says what a snapshot must be.

Sources: Patterns of Distributed Systems ch. 5, "Snapshot based Low-Water Mark".
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.low_water_mark import SnapshotMark
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot, SnapshotStore
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, LogEntry, WriteAheadLog

__all__ = ["CompactedLog"]

_NEVER = sys.maxsize
_NO_GENERATION = 0
_RETAINED = 2


class CompactedLog:
    """The log `name` and its snapshots `name`; `on_due` is called after each `every_entries` that were added."""

    __slots__ = ("_due_index", "_every_entries", "_log", "_mark", "_on_due", "_snapshots", "flush")

    def __init__(
        self,
        storage: Storage,
        every_entries: int,
        on_due: Callable[[], None],
        *,
        name: str = "wal",
        segment_size_bytes_max: int = 65536,
    ) -> None:
        self._log = WriteAheadLog(storage, name=name, segment_size_bytes_max=segment_size_bytes_max)
        self._snapshots = SnapshotStore(storage, name=name, retained=_RETAINED)
        self._mark = SnapshotMark(lambda: self._snapshots.low_water_mark)
        self._every_entries = every_entries
        self._on_due = on_due
        self._due_index = _NEVER
        self.flush = self._log.flush

    @property
    def last_index(self) -> int:
        """The index of the last entry."""
        return self._log.last_index

    def recover(self) -> tuple[bytes | None, list[bytes]]:
        """Return the state of the newest usable snapshot, if any, and the entries after it.

        Raises `UnusableSnapshot` and `CorruptLog`.
        """
        snapshot = self._snapshots.recover()
        index, generation = (snapshot.index, snapshot.generation) if snapshot else (0, _NO_GENERATION)
        self._log.recover(index, generation)
        # A damaged snapshot may be skipped only if the rest restores as much: acknowledged entries must not be
        # forgotten.
        self._snapshots.require_reach(self._log.last_index)
        self._due_index = index + self._every_entries
        rest = self._log.entries(index + 1, self._log.last_index)
        return (snapshot.state if snapshot else None), [entry.data for entry in rest]

    def append(self, data: bytes) -> None:
        """Add an entry; durable after the next `flush`."""
        index = self._log.last_index + 1
        self._log.append(LogEntry(index, _NO_GENERATION, DATA, data))
        if index >= self._due_index:
            self._due_index = _NEVER
            self._on_due()

    def compact(self, state: bytes) -> None:
        """Replace the log up to its end by `state`, to which all entries so far lead."""
        index = self._log.last_index
        self._snapshots.publish(Snapshot(index, _NO_GENERATION, state))
        self._log.discard_segments(self._mark.deletable(self._log.closed_segments()))
        self._due_index = index + self._every_entries
