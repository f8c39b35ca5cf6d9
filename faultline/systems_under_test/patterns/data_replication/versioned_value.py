"""Versioned Value: store every update under a new version, so that the past can still be read.

*Problem.* A store that overwrites can tell neither what a key held a moment ago nor which of two values is newer. A
reader of several keys blocks the writers, or sees half of an update.

*Idea.* The version is a suffix of the key: each update adds an entry (key, version), and none is ever changed. The
entries are kept in the order of key, then version. To read a key *at* version v is to find the last entry not after
(key, v), the *floor*, and to check that it belongs to the key: the entry just below may be a neighbour's. A reader that
stays at one version has a snapshot, no matter what is written meanwhile, and neither readers nor writers wait.

    title@1 Nitroservices     title@2 Microservices     topic@3 Patterns

    title at 1 → Nitroservices    title at 2, 3, … → Microservices    topic at 2 → nothing    title at 0 → nothing

Versions are counted for the whole store (`CountedVersions`), one per update, when an entry of the replicated log is
applied: so every replica gives the same version to the same update. Any ordered type serves, hybrid timestamps too.
The scope of a version is the whole value of a key.

Two layouts answer alike. `OrderedVersions` is the ordered map of the text, here a sorted list under binary search;
`IndexedVersions` keeps a list of versions per key beside the data. `versioned_value_on_disk` is the third, in SQLite. A
deletion is an entry too. `compact` forgets the entries that only reads below a mark could need, and such reads are
refused.

*Invariants.* VVL-I1 the value of (key, version) never changes. VVL-I2 versions increase along the log and are the same
on all replicas. VVL-I3 a read at v gives the state after applying the log up to v. VVL-I4 reads of several keys at v
show one prefix of the log.

*Tolerates.* Any number of readers in the past; versions that arrive out of order; keys that are prefixes of others.

*Does not tolerate.* Unbounded growth, unless the store is compacted. Two updates of one key under one version.

*Workloads.* `follower-reads` with `store=versioned`.

*Checkers.* The invariants; the checker `follower-reads`.

*Planted bugs.* `floor-without-key-check`, `overwrite-in-place`, `version-at-propose`, `version-reset-on-restart`,
`versions-as-text`, `ceiling-for-floor`; an index that is updated before its data, as a component.

Deviations from the printed code: the key of the floor is compared, which the sample never does. Reversed bounds give an
empty range, where the sample throws. Ranges include both ends.

Sources: Patterns of Distributed Systems ch. 17; Reed's thesis (MIT 1978) on versions of objects; etcd's `mvcc` and
RocksDB's `SeekForPrev` as the stores of this kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

__all__ = [
    "DELETED",
    "CountedVersions",
    "IndexedVersions",
    "Ordered",
    "OrderedVersions",
    "PinnedSnapshot",
    "VersionCompacted",
    "VersionExists",
    "VersionedStore",
    "VersionedValue",
]


class Ordered(Protocol):
    """The operations of versions: whole numbers have them, and hybrid timestamps as tuples."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __le__(self, other: Any, /) -> bool: ...


V = TypeVar("V", bound=Ordered)
"""A version: any type whose values are ordered."""


class _Deleted:
    __slots__ = ()

    def __repr__(self) -> str:
        return "DELETED"


DELETED = _Deleted()
"""The value of a version at which a key was deleted."""


class VersionExists(ValueError):
    """The key has an entry under this version already, and entries are never changed."""


class VersionCompacted(LookupError):
    """The requested past was compacted away."""


class VersionedValue(NamedTuple, Generic[V]):
    """A value and the version under which it was written."""

    version: V
    value: Any


class VersionedStore(ABC, Generic[V]):
    """The common part of all layouts: reads, from the places of a key's entries."""

    def __init__(self) -> None:
        self.compacted: V | None = None

    def put(self, key: str, version: V, value: Any) -> None:
        """Add `value` under (key, version). Raises VersionExists when there is such an entry."""
        if self._holds(key, version):
            raise VersionExists(f"{key} has a value under version {version} already")
        self._add(key, version, value)

    def delete(self, key: str, version: V) -> None:
        """Delete the value of the key from `version` on; its past stays readable."""
        self.put(key, version, DELETED)

    def compact(self, mark: V) -> None:
        """Forget every entry that no read at `mark` or later can find. A mark below the last one changes nothing."""
        if self.compacted is not None and mark <= self.compacted:
            return
        for key in list(self.keys()):
            older = [version for version in self.versions(key) if version <= mark]
            # The newest version at or below the mark stays: reads at the mark still see it.
            kept = older.pop() if older else None
            if kept is not None and self._value(key, kept) is DELETED:
                # A deletion without anything before it reads like no entry.
                older.append(kept)
            for version in older:
                self._remove(key, version)
        self.compacted = mark

    def get(self, key: str, at: V) -> VersionedValue[V] | None:
        """Return the value of the key at version `at`: the entry with the greatest version up to `at`, None if it has
        none.

        Raises VersionCompacted below the mark of the last compaction.
        """
        self._refuse_compacted(at)
        return self._seen(key, self._floor(key, at))

    def latest(self, key: str) -> VersionedValue[V] | None:
        """Return the present value of the key, None if it has none."""
        return self._seen(key, self._newest(key))

    def range(self, key: str, first: V, last: V) -> list[VersionedValue[V]]:
        """Return all entries of the key from version `first` to `last`, both included, in order.

        Deletions appear as `DELETED`. Empty for an unknown key and for bounds that run backwards. Raises
        VersionCompacted when `first` lies in the past that was compacted: a list with holes would look complete.
        """
        self._refuse_compacted(first)
        return [VersionedValue(version, self._value(key, version)) for version in self._between(key, first, last)]

    def since(self, key: str, first: V) -> list[VersionedValue[V]]:
        """Return all entries of the key from version `first` on, for a watcher that saw all earlier ones."""
        newest = self._newest(key)
        return [] if newest is None else self.range(key, first, newest)

    def pinned(self, at: V) -> PinnedSnapshot[V]:
        """Return a reader that stays at version `at`."""
        return PinnedSnapshot(self, at)

    def entries(self) -> Iterator[tuple[str, V, Any]]:
        """Return all entries, in the order of key and version."""
        for key in self.keys():
            for version in self.versions(key):
                yield key, version, self._value(key, version)

    def _seen(self, key: str, version: V | None) -> VersionedValue[V] | None:
        if version is None:
            return None
        value = self._value(key, version)
        return None if value is DELETED else VersionedValue(version, value)

    def _refuse_compacted(self, at: V) -> None:
        if self.compacted is not None and at < self.compacted:
            raise VersionCompacted(f"versions below {self.compacted} were compacted; {at} cannot be read any more")

    @abstractmethod
    def keys(self) -> Iterator[str]:
        """Return all keys that have an entry, in order."""

    @abstractmethod
    def versions(self, key: str) -> list[V]:
        """Return the versions of the key, in order."""

    @abstractmethod
    def _holds(self, key: str, version: V) -> bool: ...

    @abstractmethod
    def _add(self, key: str, version: V, value: Any) -> None: ...

    @abstractmethod
    def _remove(self, key: str, version: V) -> None: ...

    @abstractmethod
    def _value(self, key: str, version: V) -> Any: ...

    @abstractmethod
    def _floor(self, key: str, at: V) -> V | None: ...

    @abstractmethod
    def _newest(self, key: str) -> V | None: ...

    @abstractmethod
    def _between(self, key: str, first: V, last: V) -> list[V]: ...


class OrderedVersions(VersionedStore[V]):
    """One sorted list of (key, version), and the values beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._order: list[Any] = []
        self._values: dict[tuple[str, V], Any] = {}

    def keys(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for key, _ in self._order))

    def versions(self, key: str) -> list[V]:
        return [version for _, version in self._order[bisect_left(self._order, (key,)) : self._end(key)]]

    def _holds(self, key: str, version: V) -> bool:
        return (key, version) in self._values

    def _add(self, key: str, version: V, value: Any) -> None:
        self._values[key, version] = value
        insort(self._order, (key, version))

    def _remove(self, key: str, version: V) -> None:
        del self._order[bisect_left(self._order, (key, version))]
        del self._values[key, version]

    def _value(self, key: str, version: V) -> Any:
        return self._values[key, version]

    def _floor(self, key: str, at: V) -> V | None:
        return self._entry_before(bisect_right(self._order, (key, at)), key)

    def _newest(self, key: str) -> V | None:
        return self._entry_before(self._end(key), key)

    def _between(self, key: str, first: V, last: V) -> list[V]:
        order = self._order
        low, high = bisect_left(order, (key, first)), bisect_right(order, (key, last))
        return [version for _, version in order[low:high]]

    def _entry_before(self, place: int, key: str) -> V | None:
        """Return the version of the entry just before `place`, if it is one of `key` (VVL-R7)."""
        if place == 0:
            return None
        found, version = self._order[place - 1]
        return version if found == key else None

    def _end(self, key: str) -> int:
        """Return where the entries of `key` end: no string lies between a key and the same with a NUL behind it."""
        return bisect_left(self._order, (key + "\0",))


class IndexedVersions(VersionedStore[V]):
    """An index from each key to its versions, and the data by (key, version).

    The data are written before the index, so that a reader that finds a version in the index finds its value, without a
    lock. In a node no event comes between two steps of a handler, so that both are one step anyway (VVL-R10).
    """

    def __init__(self) -> None:
        super().__init__()
        self._index: dict[str, list[V]] = {}
        self._values: dict[tuple[str, V], Any] = {}

    def keys(self) -> Iterator[str]:
        return iter(sorted(self._index))

    def versions(self, key: str) -> list[V]:
        return list(self._index.get(key, ()))

    def _holds(self, key: str, version: V) -> bool:
        return (key, version) in self._values

    def _add(self, key: str, version: V, value: Any) -> None:
        self._values[key, version] = value
        insort(self._index.setdefault(key, []), version)

    def _remove(self, key: str, version: V) -> None:
        versions = self._index[key]
        versions.remove(version)
        if not versions:
            del self._index[key]
        del self._values[key, version]

    def _value(self, key: str, version: V) -> Any:
        return self._values[key, version]

    def _floor(self, key: str, at: V) -> V | None:
        versions = self._index.get(key, [])
        place = bisect_right(versions, at)
        return versions[place - 1] if place else None

    def _newest(self, key: str) -> V | None:
        versions = self._index.get(key)
        return versions[-1] if versions else None

    def _between(self, key: str, first: V, last: V) -> list[V]:
        versions = self._index.get(key, [])
        return versions[bisect_left(versions, first) : bisect_right(versions, last)]


class PinnedSnapshot(Generic[V]):
    """A reader that stays at one version: it reads the same values again, no matter what is committed meanwhile."""

    __slots__ = ("_store", "at")

    def __init__(self, store: VersionedStore[V], at: V) -> None:
        self._store = store
        self.at = at

    def get(self, key: str) -> Any:
        """Return the value of `key` in this snapshot; None if it had none."""
        seen = self._store.get(key, self.at)
        return None if seen is None else seen.value


class CountedVersions:
    """The text's store: one counter for all keys, which starts at 0 and increases with each applied update (VVL-R1).

    Give it the updates of the replicated log, up to the high-water mark and in the order of the log; then the counter
    is a function of the log. After a restart it goes on from the entries of a durable store, or from the log replayed.
    """

    def __init__(self, store: VersionedStore[int]) -> None:
        self.store = store
        self.version = max((version for _, version, _ in store.entries()), default=0)

    def apply(self, key: str, value: Any) -> int:
        """Write `value` under the next version, and return that version: the answer to the writer."""
        version = self.version + 1
        self.store.put(key, version, value)
        self.version = version
        return version
