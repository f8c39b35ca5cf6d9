"""Snapshots on disk: the state after one entry of the log, in one file, so that the log before it can be deleted.

*Problem.* A log from which the state is rebuilt can never be shortened, and replaying it takes longer every day. A copy
of the state could replace it. But a half-written copy, or one that belongs to another entry, is worse than none.

*Idea.* A snapshot is the serialised state, with the index and generation of the last entry that was *applied* to it. It
is written under another name, flushed, read back and compared, and then renamed. So there is a whole snapshot or none
under its own name, which carries the index. A header names format and version, and a checksum covers everything. The
two newest snapshots are kept, and so is the log after the older one: if the newest snapshot cannot be read, the older
one and the log still give the same state.

*Invariants.* LWM-I1 a snapshot and the log after it give the full state: the restored state reaches at least as far as
the newest snapshot that was ever published (`require_reach`).

*Tolerates.* A crash at any step (a file that was not renamed is ignored, and overwritten next time). A newest snapshot
that was damaged or cut short afterwards, as long as an older one and the log cover it.

*Does not tolerate.* All retained snapshots damaged: `CorruptSnapshot`, the node must not start. Files of another
program or a later version under a snapshot's name: `ForeignSnapshot`, `FutureSnapshotVersion`; they are never skipped
in favour of an older snapshot, because another program put them there, and are left as they are. A state that does not
fit into memory twice.

*Workloads.* `register` in the campaign `compaction`.

*Checkers.* Invariants LWM-I1 and LWM-I5; linearizability.

*Planted bugs.* `snapshot-index-of-last-appended` (LWM-M1), `clean-before-snapshot-is-durable` (LWM-M2),
`snapshot-without-answers` (LWM-M9), `snapshot-not-synced` (LWM-M10). LWM-M10 and LWM-M11 are subclasses in the tests.

Sources: Patterns of Distributed Systems ch. 5, "Snapshot based Low-Water Mark"; Ongaro and Ousterhout (2014) 7; the
snapshot files of etcd and ZooKeeper, which also keep older ones.
"""

from __future__ import annotations

import struct
from zlib import crc32

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.file_format import FILE_HEADER_BYTES, FileHeader

__all__ = [
    "CorruptSnapshot",
    "ForeignSnapshot",
    "FutureSnapshotVersion",
    "Snapshot",
    "SnapshotStore",
    "UnusableSnapshot",
    "decode_snapshot",
    "encode_snapshot",
]


class UnusableSnapshot(Exception):
    """A snapshot file cannot be used, and its state must not be lost silently."""


class CorruptSnapshot(UnusableSnapshot):
    """A snapshot was cut short or changed after it was written."""


class ForeignSnapshot(UnusableSnapshot):
    """A file has the name of a snapshot, but is not one."""


class FutureSnapshotVersion(UnusableSnapshot):
    """A snapshot was written by a later version of this program, in a format that this one does not know."""


_HEADER = FileHeader(b"FLTSNP", version=1, foreign=ForeignSnapshot, future=FutureSnapshotVersion)
_ABOUT = struct.Struct(">QQQI")
_STATE_AT = FILE_HEADER_BYTES + _ABOUT.size


class Snapshot(msgspec.Struct, frozen=True):
    """The serialised `state` after the entry at `index`, which is of `generation`, was applied to it."""

    index: int
    generation: int
    state: bytes


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the content of the file of `snapshot`."""
    index, generation, state = snapshot.index, snapshot.generation, snapshot.state
    return _HEADER.encoded + _ABOUT.pack(index, generation, len(state), _checksum(index, generation, state)) + state


def decode_snapshot(data: bytes, file: str) -> Snapshot:
    """Return the snapshot in `data`, the content of `file`. Raises one of the `UnusableSnapshot` errors."""
    if not _HEADER.is_complete_in(data, file) or len(data) < _STATE_AT:
        raise CorruptSnapshot(f"{file} was cut short: it has {len(data)} bytes, less than its header.")
    index, generation, length, checksum = _ABOUT.unpack_from(data, FILE_HEADER_BYTES)
    state = data[_STATE_AT:]
    if len(state) != length:
        raise CorruptSnapshot(f"{file} should hold {length} bytes of state and holds {len(state)}.")
    if _checksum(index, generation, state) != checksum:
        raise CorruptSnapshot(f"{file} changed after it was written: its checksum does not fit.")
    return Snapshot(index, generation, state)


def _checksum(index: int, generation: int, state: bytes) -> int:
    return crc32(state, crc32(struct.pack(">QQ", index, generation)))


class SnapshotStore:
    """The snapshots of one node: the files `name_<index>.snap`, of which the `retained` newest are kept."""

    __slots__ = ("_damaged", "_floor", "_indexes", "_name", "_retained", "_storage", "newest")

    def __init__(self, storage: Storage, *, name: str = "snapshot", retained: int = 2) -> None:
        if retained < 1:
            raise ValueError(f"at least 1 snapshot must be retained, not {retained}")
        self._storage = storage
        self._name = name
        self._retained = retained
        self._indexes: list[int] = []
        self._floor = 0
        self._damaged: dict[int, CorruptSnapshot] = {}
        self.newest: Snapshot | None = None

    @property
    def indexes(self) -> tuple[int, ...]:
        """The indexes of the snapshots that can be used, oldest first."""
        return tuple(self._indexes)

    @property
    def low_water_mark(self) -> int:
        """The index of the oldest snapshot, once there are as many as are retained: entries below are not needed."""
        return self._indexes[0] if len(self._indexes) >= self._retained else self._floor

    def recover(self) -> Snapshot | None:
        """Return the newest snapshot that can be read; None when there is none. Damaged ones are left in place.

        Raises `ForeignSnapshot` and `FutureSnapshotVersion`. Compare with the log by `require_reach` before using it.
        """
        self._indexes, self._floor, self._damaged, self.newest = [], 0, {}, None
        for index in sorted(index for file in self._storage.files() if (index := self._index_of(file)) > 0):
            try:
                self.newest = self._load(index)
            except CorruptSnapshot as error:
                self._damaged[index] = error
            else:
                self._indexes.append(index)
        # A name that a killed process left in the page cache alone must not vanish once promises rest on the snapshot.
        self._storage.fsync_folder()
        return self.newest

    def require_reach(self, last_index: int) -> None:
        """Raise `CorruptSnapshot` if a damaged snapshot lies beyond `last_index`, up to which the state can be
        restored.
        """
        for index, error in self._damaged.items():
            if index > last_index:
                raise CorruptSnapshot(
                    f"{error} Without it the state can be restored up to entry {last_index} only, and what it held had"
                    " been acknowledged. Restore the file, or empty the node's folder to let it join anew."
                ) from error

    def publish(self, snapshot: Snapshot) -> None:
        """Store `snapshot` durably before messages sent from now on. Raises `CorruptSnapshot` when it was not kept."""
        temporary, file = f"{self._name}.new", self._file(snapshot.index)
        self._write_durably(temporary, encode_snapshot(snapshot))
        # Read back before the rename: the log that this snapshot replaces is deleted soon, so a bad copy would lose
        # data.
        if decode_snapshot(self._storage.read(temporary), temporary) != snapshot:
            raise CorruptSnapshot(f"{temporary} does not read back as it was written.")
        self._storage.rename(temporary, file)
        self._sync_name(file)
        self.newest = snapshot
        self._indexes.append(snapshot.index)
        self._drop_oldest()

    def _write_durably(self, temporary: str, content: bytes) -> None:
        """Write `content` and sync it: a name that a reader trusts is given to bytes that are on the disk."""
        self._storage.write(temporary, content)
        self._storage.fsync(temporary)

    def _sync_name(self, file: str) -> None:
        self._storage.fsync(file)
        self._storage.fsync_folder()

    def drop_before(self, index: int) -> None:
        """Remove the snapshots below `index`: the log they would need is gone."""
        for old in [old for old in (*self._indexes, *self._damaged) if old < index]:
            self._storage.delete(self._file(old))
        self._indexes = [kept for kept in self._indexes if kept >= index]
        self._floor = index

    def _drop_oldest(self) -> None:
        while len(self._indexes) > self._retained:
            self._storage.delete(self._file(self._indexes.pop(0)))

    def _load(self, index: int) -> Snapshot:
        file = self._file(index)
        snapshot = decode_snapshot(self._storage.read(file), file)
        if snapshot.index != index:
            raise CorruptSnapshot(f"{file} holds the snapshot of entry {snapshot.index}.")
        return snapshot

    def _file(self, index: int) -> str:
        return f"{self._name}_{index}.snap"

    def _index_of(self, file: str) -> int:
        digits = file.removeprefix(f"{self._name}_").removesuffix(".snap")
        valid = digits.isascii() and digits.isdecimal() and self._file(int(digits)) == file
        return int(digits) if valid else -1
