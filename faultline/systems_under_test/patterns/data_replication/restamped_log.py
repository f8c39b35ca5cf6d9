"""Restamped log: a write-ahead log whose unsettled end can be replaced in one step that a crash cannot divide.

*Problem.* A leader that collects entries stamps them anew with its own generation, in its log and in its followers'. A
file cannot be overwritten in one step: it is cut, and the new entries are appended. A crash in between would forget
entries that this server had accepted, and the next leader counts on every server to remember them.

*Idea.* The new end is written to a file of its own first, and made durable. Then the log is cut, the entries are
appended and flushed, and the file is deleted. A server that finds the file when it starts carries the replacement out
again, unless it was done: a redo log for the log.

*Invariants.* HWM-I5: nothing that is settled, which is known to be committed, is replaced. HWM-I2, WAL-I1.

*Tolerates.* A crash between any two effects, and a deletion that did not reach the disk.

*Does not tolerate.* A log that is flushed later than it is acknowledged, and one that is cleaned: the file names the
entries by their index, and a snapshot would have to be kept in step with it.

*Workloads.* `register`, `transfer` with kills and lost power. *Checkers.* Linearizability; the invariants of the log.

*Planted bugs.* Those of the collecting election.

Sources: Patterns of Distributed Systems ch. 2 ("Multiple failures need a Generation Clock") and ch. 3.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.file_format import CorruptLog, encode_record, read_record
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = ["RestampedLog"]

_FILE = "replacement.log"
_SALT = 0
_DECODER = msgspec.msgpack.Decoder(list[LogEntry])


class RestampedLog(WriteAheadLog):
    """A write-ahead log with an end that can be replaced; `settled_index` is where it begins."""

    __slots__ = ("_storage", "settled_index")

    def __init__(self, storage: Storage, *, segment_size_bytes_max: int, files: type[SegmentedLog]) -> None:
        super().__init__(storage, segment_size_bytes_max=segment_size_bytes_max, files=files)
        self._storage = storage
        self.settled_index = 0

    def recover(self, snapshot_index: int = 0, snapshot_generation: int = 0) -> None:
        """Read the log, and finish a replacement that a crash interrupted. Raises `CorruptLog`."""
        super().recover(snapshot_index, snapshot_generation)
        if _FILE not in self._storage.files():
            return
        entries = _decoded(self._storage.read(_FILE))
        # The file outlives a replacement that was done, when its deletion did not reach the disk.
        if self.generation_at(entries[-1].index) < entries[-1].generation:
            self._rewrite(entries)
        self._storage.delete(_FILE)

    def settle(self, index: int) -> None:
        """Note that the entries up to `index` are committed, so that they are never replaced."""
        self.settled_index = index

    def replace_after(self, index: int, entries: list[LogEntry]) -> None:
        """Put `entries` in the place of all entries after `index`, durably, before messages that are sent from now on.

        Raises ValueError for settled entries, `LogUnusable` when the disk failed.
        """
        if index < self.settled_index:
            raise ValueError(f"cannot replace entry {index + 1}: entries up to {self.settled_index} are settled")
        if index < self.last_index:
            self._write_down(entries)
        self._rewrite(entries)
        if index < self.last_index:
            self._storage.delete(_FILE)

    def _write_down(self, entries: list[LogEntry]) -> None:
        new = f"{_FILE}.new"
        self._storage.write(new, encode_record(msgspec.msgpack.encode(entries), _SALT, 0))
        self._storage.fsync(new)
        self._storage.rename(new, _FILE)
        self._storage.fsync_folder()

    def _rewrite(self, entries: list[LogEntry]) -> None:
        self.truncate_from(entries[0].index)
        for entry in entries:
            self.append(entry)
        self.flush()


def _decoded(data: bytes) -> list[LogEntry]:
    payload = read_record(data, _SALT, 0)
    if payload is None:
        raise CorruptLog(f"{_FILE} changed after it was written.")
    return _DECODER.decode(payload)
