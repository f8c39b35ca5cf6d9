"""Write-ahead log: every change is on disk, as an entry of one log, before it changes anything else.

*Problem.* Acknowledged changes must survive a crash, and flushing all data structures at every change is too slow.

*Idea.* Append each change as an entry to one log, sequentially, and flush the log; apply the change to memory
afterwards; rebuild memory by replaying the log. Entries have contiguous indexes and carry the generation of the leader
that made them. On disk each is a record with length and checksum in a segmented log. The log keeps its entries in
memory as well: files are for recovery, and the hot path never reads them.

The caller chooses the flush policy, and its guarantee follows from its calls of `flush` (WAL-R9). With a call after
each append, no acknowledged entry is lost. With a call after several appends and before their replies, the guarantee is
the same at less cost (the outbox of the ports does this by itself: a reply recorded after a flush waits for it). With
calls from a timer, a crash may lose acknowledged entries, but only a suffix of them. `flush_policy` has all three, and
`logged_store` is a store built on the log alone.

*Invariants.* WAL-I1 acknowledged writes survive recovery. WAL-I2 indexes are contiguous. WAL-I3 the state is the
snapshot with the commands of the log after it applied in order. WAL-I5 after a crash the log is a prefix of the
appended entries and contains all flushed ones. WAL-I6 a restart does not change its length.

*Tolerates.* A crash at any byte of a write: the torn tail is dropped, durably, before a new entry is appended. A crash
during recovery. A failing disk: memory is unchanged, the caller gets an error and the log refuses further writes.

*Does not tolerate.* A changed record: recovery raises `CorruptLog`, and the node does not start. A disk that loses data
which it reported as flushed. Duplicate commands are entries like any others; the idempotent receiver ignores them.

*Workloads.* `register` with kill and restart of one, a majority or all nodes.

*Checkers.* Linearizability; invariants WAL-I1, WAL-I3, LOG-I1, LOG-I2, GEN-I2.

*Planted bugs.* `ack-before-fsync` (the reply does not wait for the flush), `apply-by-own-clock` (WAL-M8: applying
depends on more than the log), `no-truncate-on-conflict`, `checksum-not-checked` (WAL-M4), `torn-tail-kept` (WAL-M6),
`failed-sync-passed-over` (WAL-M9), `short-write-not-noticed` (WAL-M10). WAL-M1 to WAL-M7 are also subclasses in the
tests, each beside the correct log or store: apply before append, answer before the flush, no checksum, replay that
appends, a torn tail left in place, no duplicate detection.

Sources: Patterns of Distributed Systems ch. 3; Mohan et al., "ARIES" (TODS 1992); the logs of etcd and ZooKeeper.
Entries below the low-water mark are discarded (WAL-R12): a log then begins after it, and a request for an earlier entry
raises `EntryCompacted`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.file_format import CorruptLog
from faultline.systems_under_test.patterns.data_replication.log_entry import COMPACTED, DATA, NO_OP, LogEntry
from faultline.systems_under_test.patterns.data_replication.segmented_log import (
    EntryCompacted,
    LogUnusable,
    SegmentedLog,
)

__all__ = [
    "COMPACTED",
    "DATA",
    "NO_OP",
    "ClosedSegment",
    "CorruptLog",
    "EntryAbsent",
    "EntryCompacted",
    "LogEntry",
    "LogUnusable",
    "WriteAheadLog",
]


class EntryAbsent(LookupError):
    """The log has no entry at this index."""


class ClosedSegment(NamedTuple):
    """The input of a low-water mark: first and last entry of a file that takes no more, and the time of the last."""

    first_index: int
    last_index: int
    last_time_us: int


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(LogEntry)


class WriteAheadLog:
    """The log of one node: contiguous entries, in memory and in the segment files `name_<base>.log`.

    It begins with entry 1, or with the first entry that was not discarded below the low-water mark.
    """

    __slots__ = ("_compacted_generation", "_entries", "_files", "compacted_index")

    def __init__(
        self,
        storage: Storage,
        *,
        name: str = "wal",
        segment_size_bytes_max: int = 65536,
        files: type[SegmentedLog] = SegmentedLog,
    ) -> None:
        self._files = files(storage, name, segment_size_bytes_max)
        self._entries: list[LogEntry] = []
        self.compacted_index = 0
        self._compacted_generation = 0

    def recover(self, snapshot_index: int = 0, snapshot_generation: int = 0) -> None:
        """Read the log from disk; must come first. Raises `CorruptLog` when stored entries changed or are missing.

        The state up to the entry of that index and generation is in a snapshot. A log that does not hold this entry was
        about to be replaced by the snapshot, and starts after it.
        """
        self._files.recover(snapshot_index + 1)
        first = self._files.first_index
        self._entries = [
            _decoded(index, payload) for index, payload in enumerate(self._files.read_from(first), start=first)
        ]
        self.compacted_index = first - 1
        self._compacted_generation = snapshot_generation if first == snapshot_index + 1 else COMPACTED
        if first == 1:
            self._compacted_generation = 0
        # The crash came between publishing an installed snapshot and dropping the log that it replaced.
        if self.generation_at(snapshot_index) != snapshot_generation:
            self.restart_after(snapshot_index, snapshot_generation)
            self.flush()

    @property
    def last_index(self) -> int:
        """The index of the newest entry; of the newest one discarded when the log is empty, 0 for a new log."""
        return self.compacted_index + len(self._entries)

    @property
    def last_generation(self) -> int:
        """The generation of the entry at `last_index`, 0 for a new log."""
        return self._entries[-1].generation if self._entries else self._compacted_generation

    def append(self, entry: LogEntry) -> None:
        """Add the next entry; it is durable after the next `flush`.

        Raises ValueError when its index is not the next one, `LogUnusable` when the disk failed.
        """
        if entry.index != self.compacted_index + len(self._entries) + 1:
            raise ValueError(f"entry {entry.index} does not follow entry {self.last_index}")
        # The disk first: when it fails, memory has not changed, and the log takes no more.
        self._files.append(_ENCODER.encode(entry))
        self._entries.append(entry)

    def append_data(self, data: bytes) -> None:
        """Add `data` as the next entry of a log that no leader writes, which has no generations."""
        self.append(LogEntry(self.last_index + 1, 0, DATA, data))

    def flush(self) -> None:
        """Make all appends and truncations so far durable before messages that are sent from now on.

        Free without any.
        """
        self._files.flush()

    def entry(self, index: int) -> LogEntry:
        """Return the entry at `index`.

        Raises `EntryCompacted` when it was discarded, `EntryAbsent` when there is none.
        """
        offset = index - self.compacted_index
        if 0 < offset <= len(self._entries):
            return self._entries[offset - 1]
        self._refuse_compacted(index)
        raise EntryAbsent(f"no entry at index {index}; the log ends at {self.last_index}")

    def generation_at(self, index: int) -> int:
        """Return the generation of the entry at `index`: 0 for index 0 (before the log), -1 where there is no entry.

        `COMPACTED` where an entry was discarded; the generation of the last one discarded is still known, unless the
        process was restarted since.
        """
        offset = index - self.compacted_index
        if 0 < offset <= len(self._entries):
            return self._entries[offset - 1].generation
        if offset == 0:
            return self._compacted_generation
        if index == 0:
            return 0
        return COMPACTED if 0 < index < self.compacted_index else -1

    def was_discarded_after(self, index: int) -> bool:
        """Return whether the entries after `index`, or the generation of the one at `index`, are not known any more."""
        return index < self.compacted_index or self.generation_at(index) == COMPACTED

    def entries(self, start: int, count_max: int) -> list[LogEntry]:
        """Return up to `count_max` entries from index `start` on, in order; none beyond the end of the log.

        Raises `EntryCompacted` when the first of them were discarded.
        """
        first = start - self.compacted_index - 1
        if first < 0:
            self._refuse_compacted(start)
            first = 0
        return self._entries[first : first + max(0, count_max)]

    def truncate_from(self, index: int) -> None:
        """Drop the entries at `index` and above, durably at the next `flush`; harmless beyond the end of the log.

        Raises ValueError when `index` is below the first entry, `LogUnusable` when the disk failed.
        """
        self._files.truncate_from(index)
        del self._entries[index - self.compacted_index - 1 :]

    def closed_segments(self) -> list[ClosedSegment]:
        """Return the segments that take no more entries, oldest first."""
        return [
            ClosedSegment(segment.base, segment.next_index - 1, self.entry(segment.next_index - 1).time_us)
            for segment in self._files.segments[:-1]
        ]

    def discard_segments(self, count: int) -> None:
        """Drop the `count` oldest closed segments, files and entries. Raises OSError when the disk refuses one."""
        try:
            self._files.delete_first(count)
        finally:
            # Also when the disk refused a deletion: the files that are gone decide where the log begins.
            dropped = self._files.first_index - 1 - self.compacted_index
            if dropped > 0:
                self._compacted_generation = self._entries[dropped - 1].generation
                self.compacted_index += dropped
                del self._entries[:dropped]

    def restart_after(self, index: int, generation: int) -> None:
        """Drop all entries; the next one follows the entry of this index and generation, which is in a snapshot.

        Durable after the next `flush`. Raises `LogUnusable` when the disk failed.
        """
        self._files.restart_at(index + 1)
        self._entries.clear()
        self.compacted_index = index
        self._compacted_generation = generation

    def _refuse_compacted(self, index: int) -> None:
        if index <= self.compacted_index and self.compacted_index:
            raise EntryCompacted(f"entry {index} was discarded; the log begins at {self.compacted_index + 1}")


def _decoded(index: int, payload: bytes) -> LogEntry:
    try:
        entry = _DECODER.decode(payload)
    except msgspec.MsgspecError as error:
        raise CorruptLog(f"the record of entry {index} is no log entry: {error}") from error
    if entry.index != index:
        raise CorruptLog(f"the record of entry {index} holds entry {entry.index}")
    return entry
