"""The store of `follower-reads`, with or without versions: every update happens at the index of its log entry.

`StampedStore` is the key-value store whose map is a `CurrentValues`: whatever a command changes is collected and
written at once under one version, when the command is done. So no reader sees half of a command, and commands need not
know of versions. The index of the entry is the version: the same on every replica, after every restart (VVL-R2,
VVL-R17, FR-R19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import msgspec

from faultline.harness.world.ports import Trace
from faultline.systems_under_test.patterns.data_replication.follower_reads import checksum_of
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.versioned_value import DELETED, VersionedStore
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, Command

__all__ = ["CurrentValues", "StampedStore", "VersionOf", "VersionWritten", "index_is_version"]

VersionOf = Callable[[int], int]
"""From the index of an entry to the version of what it writes."""


def index_is_version(index: int) -> int:
    """Return the version of the entry at `index`: that index."""
    return index


class VersionWritten(msgspec.Struct, frozen=True):
    """Trace: applying the entry at `index` gave `key` a value of that `checksum` under `version`."""

    index: int
    key: str
    version: int
    checksum: int


class CurrentValues(MutableMapping[str, Any]):
    """The present value of each key; the past too, if there are `versions`. Changes are kept back until `commit`."""

    def __init__(self, versions: VersionedStore[int] | None = None, now: dict[str, Any] | None = None) -> None:
        self.versions = versions
        self._now: dict[str, Any] = now or {}
        self._changes: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        value = self._changes.get(key, _ABSENT)
        if value is _ABSENT:
            return self._now[key]
        if value is DELETED:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._changes[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._changes[key] = DELETED

    def __iter__(self) -> Iterator[str]:
        yield from (key for key in self._now if self._changes.get(key) is not DELETED)
        yield from (key for key in self._changes if key not in self._now and self._changes[key] is not DELETED)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def commit(self, version: int) -> dict[str, Any]:
        """Make all changes since the last commit under `version`; the changes."""
        changes = self._changes
        if not changes:
            return changes
        self._changes = {}
        for key, value in changes.items():
            if value is DELETED:
                self._now.pop(key, None)
            else:
                self._now[key] = value
            if self.versions is not None:
                self.versions.put(key, version, value)
        return changes

    def at(self, key: str, version: int) -> Any:
        """Return what `key` held at `version`, or None. Raise VersionCompacted for a past that is not kept."""
        assert self.versions is not None, "the options ask for versions whenever the past is read"
        seen = self.versions.get(key, version)
        return None if seen is None else seen.value


_ABSENT = object()


class _StampedState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a snapshot: the version, what every key holds, the past (with a flag for deletions), sessions."""

    version: int
    compacted: int | None
    now: dict[str, Any]
    past: list[tuple[str, int, bool, Any]]
    sessions: dict[int, tuple[int, dict[int, ClientResponse]]]


_STATE_DECODER = msgspec.msgpack.Decoder(_StampedState)


class StampedStore(KeyValueStore):
    """The key-value store with versions, of which `new_versions` makes the store of the past, if there is to be one.

    `version` is that of the newest command applied.
    """

    def __init__(
        self,
        sessions: ClientSessions[ClientResponse],
        trace: Trace,
        new_versions: Callable[[], VersionedStore[int]] | None,
        versions_kept: int,
    ) -> None:
        super().__init__(sessions)
        self.current = CurrentValues(new_versions() if new_versions else None)
        self.values = self.current
        self.version = 0
        self.version_of: VersionOf = index_is_version
        self._trace = trace
        self._new_versions = new_versions
        self._versions_kept = versions_kept
        self._applying = 0

    def snapshot(self) -> bytes:
        """Return the whole state, the past included."""
        versions = self.current.versions
        past = [] if versions is None else list(versions.entries())
        state = _StampedState(
            self.version,
            None if versions is None else versions.compacted,
            dict(self.current),
            [(key, version, value is DELETED, None if value is DELETED else value) for key, version, value in past],
            self.sessions.content(),
        )
        return msgspec.msgpack.encode(state)

    def restore(self, state: bytes) -> None:
        """Put the state of a snapshot in the place of this one. Raises msgspec.MsgspecError when it is none."""
        content = _STATE_DECODER.decode(state)
        versions = self._new_versions() if self._new_versions else None
        if versions is not None:
            for key, version, is_deleted, value in content.past:
                versions.put(key, version, DELETED if is_deleted else value)
            versions.compacted = content.compacted
        self.current = CurrentValues(versions, content.now)
        self.values = self.current
        self.version = content.version
        self.sessions.restore(content.sessions)

    def apply(self, index: int, data: bytes) -> Applied:
        """Apply the entry, under a version of its own."""
        self._applying = self._version_at(index)
        applied = super().apply(index, data)
        self.version = self._applying
        for key, value in self.current.commit(self.version).items():
            checksum = checksum_of(None if value is DELETED else value)
            self._trace.emit(VersionWritten(index, key, self.version, checksum))
        if self._versions_kept and self.current.versions is not None:
            self.current.versions.compact(self.version - self._versions_kept)
        return applied

    def _version_at(self, index: int) -> int:
        return self.version_of(index)

    def answer(self, request_number: int, key: str) -> ClientResponse:
        """Return the answer to a read of `key` that bypasses the log, with the version it is from."""
        return ClientResponse(request_number, None, self.values.get(key), self.version)

    def execute(self, request_number: int, command: Command) -> ClientResponse:
        """Execute `command`, and put the version into the answer, which the session keeps as it is."""
        response = super().execute(request_number, command)
        return msgspec.structs.replace(response, version=self._applying)
