"""The store of one server: the logged store whose values are versions, which a file keeps in order of their bytes.

The version of a value is the index of its entry. A file holds all versions and the answers for repetitions as of one
entry; the log holds what is newer.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from zlib import crc32

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.patterns.data_replication.logged_store import Applied, LoggedStore
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot
from faultline.systems_under_test.patterns.data_replication.versioned_value_on_disk import OnDiskVersions

__all__ = ["NewestValues", "VersionedLoggedStore"]


class NewestValues(MutableMapping[str, str]):
    """The newest value of each key; a new one is written under `version`."""

    def __init__(self, versions: OnDiskVersions) -> None:
        self.versions = versions
        self.version = 0

    def __getitem__(self, key: str) -> str:
        newest = self.versions.latest(key)
        if newest is None:
            raise KeyError(key)
        value: str = newest.value
        return value

    def __setitem__(self, key: str, value: str) -> None:
        self.versions.put(key, self.version, value)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.versions.latest(key) is not None

    def __delitem__(self, key: str) -> None:
        self.versions.delete(key, self.version)

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self.versions.keys())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _State(msgspec.Struct, frozen=True, array_like=True):
    """The content of a file: the table of versions, and the sessions of clients."""

    versions: bytes
    sessions: dict[int, tuple[int, dict[int, str]]]


class VersionedLoggedStore(LoggedStore):
    """The store; `versions_kept` says how many entries back the past stays readable, 0 for ever."""

    def __init__(
        self,
        storage: Storage,
        *,
        segment_size_bytes_max: int,
        sessions: ClientSessions[str],
        versions: OnDiskVersions,
        versions_kept: int = 0,
    ) -> None:
        super().__init__(storage, segment_size_bytes_max=segment_size_bytes_max, sessions=sessions)
        self._newest = NewestValues(versions)
        self._values = self._newest
        self._versions_kept = versions_kept
        self.found_index = 0
        """The last entry of the log that was recovered, before it was replayed."""

    def at(self, key: str, version: int) -> str | None:
        """Return the value of `key` at `version`, or None. Raise `VersionCompacted`."""
        seen = self._newest.versions.get(key, version)
        return None if seen is None else seen.value

    def checksum(self) -> int:
        """Return a checksum of all values."""
        return crc32(msgspec.msgpack.encode(sorted(self._values.items())))

    def apply(self, entry: LogEntry) -> Applied:
        """Execute the command of `entry` under a version of its own."""
        self._newest.version = entry.index
        applied = super().apply(entry)
        if self._versions_kept:
            self._newest.versions.compact(max(0, entry.index - self._versions_kept))
        return applied

    def left_to_replay(self) -> list[LogEntry]:
        """Return the recovered entries that the state does not have yet, and note where the log ends."""
        self.found_index = self.log.last_index
        return super().left_to_replay()

    def initialise_from_snapshot(self, snapshot: Snapshot) -> None:
        """Replace this state with that of a file."""
        state = msgspec.msgpack.decode(snapshot.state, type=_State)
        self._newest.versions.read(state.versions)
        self._sessions.restore(state.sessions)
        self.last_applied = snapshot.index

    def take_snapshot(self) -> Snapshot:
        """Return the content of a file, under the index of the last command applied."""
        state = msgspec.msgpack.encode(_State(self._newest.versions.table(), self._sessions.content()))
        return Snapshot(self.last_applied, self.log.generation_at(self.last_applied), state)
