"""Segmented log: one log, cut into files of limited size.

*Problem.* One ever-growing file is slow to read at start-up and can never be cleaned: its oldest entries cannot be
removed without writing the rest again.

*Idea.* Append to an open segment. When it has reached the size limit, flush it, close it, and open a new file named
after the index of the first entry it will hold; the names alone then say which file holds which entry, and old entries
can be removed by removing whole files. The limit is checked *before* an append, so a segment exceeds it by at most one
entry and no entry spans two files. Reading from an index reads the segment that holds it and all later ones, including
the open one. Each file begins with a header that names its format and version.

*Invariants.* SEG-I1 the segments in order are the log, without gaps, overlaps and duplicates. SEG-I2 the base of a
segment is the last index of the previous one plus one. SEG-I3 bases ascend. SEG-I4 every segment but the open one has
reached the limit, unless it was truncated. SEG-I5 the entries that are read do not depend on the size limit.

*Tolerates.* A crash between any two steps of a roll, a truncation or a cleaning: an unflushed tail is dropped, a new
file that is empty or torn is used again or removed. Files in the same folder that are not segments. Entries larger
than the limit. A file that cannot be deleted: it stays, and the log with it.

*Does not tolerate.* A changed record, the last one too, or a missing one before valid ones, in the same file or a later
one: `CorruptLog`. A file of another program or of a later version under a segment's name: `ForeignLog`,
`FutureLogVersion`. All are left as they are. A changed record with 64 zero bytes in it is taken for a hole that a crash
left, and what follows is dropped, and so is a last record that was acknowledged and never written (Alagappan et al.,
"Protocol-Aware Recovery", FAST 2018, tell that from a torn one). A torn record of 256 bytes or more that lost two
units, one with the first bytes of its length, is taken for a changed one. A last file that vanished looks like a log
that ended before it. A disk that makes a new file's name durable before an earlier `fsync`. A failed write: the log
refuses all further ones until it is recovered (WAL-R16), as the content of the disk is unknown.

*Workloads.* `register`, with kill and restart.

*Checkers.* Linearizability: an entry lost at a boundary is a lost write. Invariants LOG-I1, LOG-I2 and LWM-I2.

*Planted bugs.* `damage-taken-for-torn` (WAL-M12), `only-last-checksum-compared` (WAL-M13), `roll-without-flush`
(SEG-M4), `recovered-not-synced` (SEG-M7), `segment-name-not-synced` (SEG-M8).
SEG-M1 to SEG-M6 are also subclasses in the tests, each beside the correct log; all but SEG-M4 break any run's first
restart, so no system carries them. A journaled disk hides SEG-M7 to SEG-M12; the tests break the log with each on a
disk behind a page cache.

Deviations from the printed code: a base is the index of the first entry (the sample passes the last index), and reading
includes the open segment (the sample leaves it out when its base is above the start). Entries below the first segment
were cleaned, and reading them raises `EntryCompacted`.

Sources: Patterns of Distributed Systems ch. 4; Kafka's log segments and Raft implementations name files the same way.
"""

from __future__ import annotations

from typing import NamedTuple

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.file_format import (
    FILE_HEADER_BYTES,
    CorruptLog,
    FileHeader,
    LogUnusable,
    encode_record,
    read_record,
    record_positions,
    was_torn,
)

__all__ = [
    "EntryCompacted",
    "ForeignLog",
    "FutureLogVersion",
    "LogPosition",
    "LogUnusable",
    "Segment",
    "SegmentedLog",
    "base_of",
    "file_name",
]

FIRST_INDEX = 1


class EntryCompacted(LookupError):
    """The entry is below the first one the log still holds: it was discarded, its effect is in a snapshot."""


class ForeignLog(CorruptLog):
    """A file has the name of a segment, but its header is not that of a log."""


class FutureLogVersion(CorruptLog):
    """A segment was written by a later version of this program, in a format that this one does not know."""


_HEADER = FileHeader(b"FLTLOG", version=1, foreign=ForeignLog, future=FutureLogVersion)


def file_name(name: str, base: int) -> str:
    """Return the name of the segment of log `name` whose first entry has index `base`."""
    return f"{name}_{base}.log"


def base_of(name: str, file: str) -> int:
    """Return the index of the first entry of segment `file` of log `name`; -1 when `file` is no segment of that log."""
    digits = file.removeprefix(f"{name}_").removesuffix(".log")
    if not (digits.isascii() and digits.isdecimal()):
        return -1
    return int(digits) if file_name(name, int(digits)) == file else -1


class LogPosition(NamedTuple):
    """The other way to number entries: by the file, named by its base, and the byte at which the record begins.

    It finds a record without a search, but does not tell how many entries lie in between.
    """

    base: int
    offset: int


class Segment:
    """One file of the log: the index of its first entry, where each entry begins, and its size in bytes."""

    __slots__ = ("base", "file", "positions", "size")

    def __init__(self, base: int, file: str) -> None:
        self.base = base
        self.file = file
        self.positions: list[int] = []
        self.size = 0

    @property
    def next_index(self) -> int:
        """The index the next entry of this segment would get."""
        return self.base + len(self.positions)


class SegmentedLog:
    """A log of byte strings with contiguous indexes from 1, kept in segment files of one node's storage."""

    __slots__ = ("_dirty", "_name", "_refusal", "_segments", "_size_max", "_storage", "_truncated")
    _payload = staticmethod(read_record)

    def __init__(self, storage: Storage, name: str, segment_size_bytes_max: int) -> None:
        if segment_size_bytes_max < 1:
            raise ValueError(f"segment_size_bytes_max must be at least 1, not {segment_size_bytes_max}")
        self._storage = storage
        self._name = name
        self._size_max = segment_size_bytes_max
        self._segments = [Segment(FIRST_INDEX, file_name(name, FIRST_INDEX))]
        self._dirty = False
        self._truncated = False
        self._refusal = "recover() was not called"

    @property
    def first_index(self) -> int:
        """The index of the oldest entry the log can hold."""
        return self._segments[0].base

    @property
    def last_index(self) -> int:
        """The index of the newest entry; one less than `first_index` when the log is empty."""
        return self._segments[-1].next_index - 1

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in order, the open one last; not to be changed."""
        return tuple(self._segments)

    def recover(self, first_index_max: int = FIRST_INDEX) -> None:
        """Find the segments on disk, drop the torn end that a crash left, and open the last one. Raises `CorruptLog`.

        A log that was cleaned begins later than with entry 1; `first_index_max` is the latest entry with which it may
        begin.

        The disk is not changed before everything has been read, so a log that is refused can still be examined, and a
        crash during recovery does no harm. The torn end is dropped durably, as a later append must not follow it; the
        kept entries are made durable.
        """
        loaded = [self._load(base, file) for base, file in self._files_in_order()]
        kept, leftover, torn = self._sort_out(loaded, first_index_max)
        for segment in leftover:
            self._storage.delete(segment.file)
        self._segments = kept or [Segment(first_index_max, file_name(self._name, first_index_max))]
        open_segment = self._segments[-1]
        if torn:
            self._storage.truncate(open_segment.file, open_segment.size)
        if loaded:
            # What a killed process had written but not synced is read like all else; it counts from now on.
            self._sync_recovered(open_segment)
        self._dirty = self._truncated = False
        self._refusal = ""

    def append(self, payload: bytes) -> int:
        """Add `payload` and return its index; it is durable after the next `flush`. Raises `LogUnusable`."""
        if self._refusal:
            raise LogUnusable(self._refusal)
        try:
            if self._truncated:
                self._part_from_truncation()
            segment = self._segments[-1]
            if segment.size >= self._size_max and segment.positions:
                segment = self._roll()
            position = segment.size or FILE_HEADER_BYTES
            record = encode_record(payload, segment.base, position)
            self._write(segment, record if segment.size else _HEADER.encoded + record)
        except Exception as error:
            raise self._refuse_from_now_on("append", error) from error
        segment.positions.append(position)
        segment.size = position + len(record)
        self._dirty = True
        return segment.next_index - 1

    def flush(self) -> None:
        """Make every append and truncation so far durable before messages sent from now on. Raises `LogUnusable`."""
        if not self._dirty:
            return
        if self._refusal:
            raise LogUnusable(self._refusal)
        try:
            self._fsync()
        except Exception as error:
            raise self._refuse_from_now_on("flush", error) from error

    def read_from(self, start: int) -> list[bytes]:
        """Return the payloads of all entries from index `start` on, in index order.

        Raises `EntryCompacted` when the first of them were cleaned, `CorruptLog` when stored entries changed.
        """
        if start < self.first_index and self.first_index > FIRST_INDEX:
            raise EntryCompacted(f"entry {start} was discarded; the log begins at {self.first_index}")
        payloads: list[bytes] = []
        for segment in self._segments:
            if segment.next_index > start and segment.positions:
                data = self._storage.read(segment.file)
                for position in segment.positions[max(0, start - segment.base) :]:
                    payload = self._payload(data, segment.base, position)
                    if payload is None:
                        raise CorruptLog(f"{segment.file}: the record at byte {position} changed after it was written.")
                    payloads.append(payload)
        return payloads

    def position_of(self, index: int) -> LogPosition:
        """Return the place of the entry at `index`.

        Raises `EntryCompacted` below the log, LookupError beyond its end.
        """
        if index < self.first_index:
            raise EntryCompacted(f"entry {index} was discarded; the log begins at {self.first_index}")
        for segment in self._segments:
            if index < segment.next_index:
                return LogPosition(segment.base, segment.positions[index - segment.base])
        raise LookupError(f"no entry at index {index}; the log ends at {self.last_index}")

    def read_at(self, position: LogPosition) -> bytes:
        """Return the payload of the record at `position`, without a search. Raises `EntryCompacted`, `CorruptLog`."""
        if position.base < self.first_index:
            raise EntryCompacted(f"segment {position.base} was discarded; the log begins at {self.first_index}")
        file = file_name(self._name, position.base)
        payload = self._payload(self._storage.read(file), position.base, position.offset)
        if payload is None:
            raise CorruptLog(f"{file}: there is no record at byte {position.offset}.")
        return payload

    def truncate_from(self, index: int) -> None:
        """Drop the entries at `index` and above, durably after the next `flush`; harmless above the last index.

        Raises ValueError when the log does not reach back to `index`, and `LogUnusable`.
        """
        if index < self.first_index:
            raise ValueError(f"cannot truncate from index {index}: the log begins at {self.first_index}")
        if index > self.last_index:
            return
        if self._refusal:
            raise LogUnusable(self._refusal)
        later = [segment for segment in self._segments if segment.base > index]
        segment = self._segments[-1 - len(later)]
        size = segment.positions[index - segment.base]
        try:
            if later:
                self._replace_all_after(segment, size, later)
            else:
                self._storage.truncate(segment.file, size)
        except Exception as error:
            raise self._refuse_from_now_on("truncation", error) from error
        del self._segments[len(self._segments) - len(later) :]
        del segment.positions[index - segment.base :]
        segment.size = size
        self._dirty = self._truncated = True

    def delete_first(self, count: int) -> None:
        """Remove the `count` oldest segments, oldest first and never the open one; durable after a later flush.

        Raises OSError when the disk refuses; segments that were not removed still belong to the log.
        """
        for _ in range(min(count, len(self._segments) - 1)):
            self._storage.delete(self._segments[0].file)
            del self._segments[0]

    def restart_at(self, first_index: int) -> None:
        """Drop every entry and go on with `first_index`, durably after the next `flush`. Raises `LogUnusable`.

        Newest first, so that a crash on the way leaves a log that ends too early, and never one that begins too late.
        The new file is made at once: without it an empty log could not tell where it begins.
        """
        if self._refusal:
            raise LogUnusable(self._refusal)
        segment = Segment(first_index, file_name(self._name, first_index))
        try:
            self._delete_all(self._segments)
            self._storage.append(segment.file, _HEADER.encoded)
        except Exception as error:
            raise self._refuse_from_now_on("restart", error) from error
        segment.size = FILE_HEADER_BYTES
        self._segments = [segment]
        self._dirty = self._truncated = True

    def _replace_all_after(self, segment: Segment, size: int, later: list[Segment]) -> None:
        """Truncate over several files by names alone.

        Cutting one file and deleting others could become durable in either order, and a cut file before a full one is a
        gap. So the remaining part is written under another name first. Then deletions, newest first, and the rename
        follow each other in the directory, and every state in between is a readable log.
        """
        replacement = f"{segment.file}.new"
        self._storage.write(replacement, self._storage.read(segment.file)[:size])
        self._storage.fsync(replacement)
        self._delete_all(later)
        self._storage.rename(replacement, segment.file)

    def _delete_all(self, segments: list[Segment]) -> None:
        """Delete from the newest to the oldest, so that a crash on the way leaves no gap."""
        for old in reversed(segments):
            self._storage.delete(old.file)

    def _write(self, segment: Segment, record: bytes) -> None:
        self._storage.append(segment.file, record)

    def _part_from_truncation(self) -> None:
        """Make the truncation durable before new bytes are written in its place (HWM-R10)."""
        self._fsync()

    def _roll(self) -> Segment:
        if self._dirty:
            self._fsync()
        base = self._segments[-1].next_index
        self._segments.append(Segment(base, file_name(self._name, base)))
        return self._segments[-1]

    def _was_torn(self, data: bytes, base: int, position: int) -> bool:
        """Return whether a crash left the invalid bytes at `position`; else stored, acknowledged data changed."""
        return was_torn(data, base, position)

    def _sync_recovered(self, open_segment: Segment) -> None:
        """Make durable what was found on disk. Closed segments are: the open one was begun after their sync."""
        self._storage.fsync(open_segment.file)
        self._sync_names()

    def _sync_names(self) -> None:
        """Make durable the names of new segments, and the renames and deletions of a truncation."""
        self._storage.fsync_folder()

    def _fsync(self) -> None:
        self._storage.fsync(self._segments[-1].file)
        self._sync_names()
        self._dirty = self._truncated = False

    def _refuse_from_now_on(self, step: str, error: Exception) -> LogUnusable:
        self._refusal = f"log {self._name}: a failed {step} left unknown bytes on disk ({error}); recover the log first"
        return LogUnusable(self._refusal)

    def _files_in_order(self) -> list[tuple[int, str]]:
        based = [(base_of(self._name, file), file) for file in self._storage.files()]
        return sorted((base, file) for base, file in based if base >= 0)

    def _load(self, base: int, file: str) -> tuple[Segment, bool]:
        """Return the segment in `file`, and whether bytes that are not a record follow its last one."""
        data = self._storage.read(file)
        segment = Segment(base, file)
        if _HEADER.is_complete_in(data, file):
            segment.positions, segment.size = record_positions(data, base, FILE_HEADER_BYTES, self._payload)
        damaged = segment.size < len(data)
        if damaged and not self._was_torn(data, base, segment.size):
            raise CorruptLog(f"{file}: the record at byte {segment.size} changed; valid ones follow it.")
        return segment, damaged

    def _sort_out(
        self, loaded: list[tuple[Segment, bool]], first_index_max: int
    ) -> tuple[list[Segment], list[Segment], bool]:
        """Return the segments that join up, the empty ones that a crash left, and whether the last of the former is
        torn.
        """
        kept: list[Segment] = []
        leftover: list[Segment] = []
        torn = False
        for segment, damaged in loaded:
            expected = kept[-1].next_index if kept else min(segment.base, first_index_max)
            if segment.base == expected and not torn:
                kept.append(segment)
                torn = damaged
            # Only a file without entries may be out of place: it is what a crash in the middle of a roll leaves.
            elif segment.positions or not kept:
                raise CorruptLog(f"{segment.file} does not join what comes before it, which ends at {expected - 1}.")
            else:
                leftover.append(segment)
        return kept, leftover, torn
