"""Versioned values on disk: the ordered map of the versioned value pattern as it stands in a file, in order of bytes.

*Problem.* A store that is rebuilt from the whole log at every start takes longer each time, and keeps the log for ever.

*Idea.* Embedded stores keep *bytes* in order, so (key, version) is encoded such that the order of the bytes is the
order of the pairs. A key ends with a mark that sorts below everything a longer key could go on with; versions are
big-endian, their sign bit flipped. Keys may contain NUL, and one key may be the beginning of another.

The file is a sorted table: all pairs in order, each with its value. It is read and written as a whole, as the state of
a snapshot (`snapshot_store`), which is complete or absent. Later changes are in the write-ahead log.

*Invariants.* VVL-R14 bytes(a) < bytes(b) exactly when a < b. Otherwise those of the versioned value, VVL-I1 to VVL-I4.

*Tolerates.* A crash at any time: the table under its name is complete, and the log has the newer changes. A table with
pairs out of order, or a file that is no table, is refused (`UnusableVersions`).

*Does not tolerate.* Versions outside 64 bits. Histories that outgrow memory; LSM trees merge tables without reading
them whole.

*Workloads.* Those of `logged-store`, which stores its versions so.

*Checkers.* Linearizability, `follower-reads` for reads at versions, the invariant WAL-I3.

*Planted bugs.* `versions-in-the-order-of-text` encodes versions as they are printed, which breaks their order.

Sources: Patterns of Distributed Systems ch. 17, "Ordering of versioned keys"; Chang et al., "Bigtable" (OSDI 2006) on
SSTables; FoundationDB's tuple layer for strings that keep their order.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.versioned_value import DELETED, VersionedStore

__all__ = ["OnDiskVersions", "UnusableVersions", "decode_versioned_key", "encode_versioned_key"]

_END = b"\x00\x01"
_NUL = b"\x00\xff"
_SIGN = 1 << 63


def encode_versioned_key(key: str, version: int) -> bytes:
    """Return the bytes of (key, version), in the order of the pairs.

    Raises OverflowError for a version beyond 64 bits.
    """
    return _prefix(key) + (version + _SIGN).to_bytes(8, "big")


def decode_versioned_key(place: bytes) -> tuple[str, int]:
    """Return the pair that was encoded as `place`."""
    key = place[: -8 - len(_END)].replace(_NUL, b"\x00")
    return key.decode("utf-8", "surrogatepass"), int.from_bytes(place[-8:], "big") - _SIGN


def _prefix(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass").replace(b"\x00", _NUL) + _END


class UnusableVersions(ValueError):
    """The bytes are damaged, or were written by something else."""


class _Table(msgspec.Struct, frozen=True, array_like=True):
    """The content of a file: the mark of the last compaction, and all pairs in order, None for a deletion."""

    compacted: int | None
    entries: list[tuple[bytes, bytes | None]]


_DECODER = msgspec.msgpack.Decoder(_Table)


class OnDiskVersions(VersionedStore[int]):
    """The layout of a file: one sorted list of encoded pairs, and the encoded values beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._order: list[bytes] = []
        self._values: dict[bytes, bytes | None] = {}

    def table(self) -> bytes:
        """Return the content of the file, for all entries as they are now."""
        return msgspec.msgpack.encode(_Table(self.compacted, [(place, self._values[place]) for place in self._order]))

    def read(self, table: bytes) -> None:
        """Take the entries of a file in place of these. Raise `UnusableVersions`."""
        try:
            content = _DECODER.decode(table)
        except msgspec.MsgspecError as error:
            raise UnusableVersions(f"this is no table of versioned values: {error}") from error
        order = [place for place, _ in content.entries]
        if any(earlier >= later for earlier, later in itertools.pairwise(order)):
            raise UnusableVersions("the versioned values of this table are not in the order of their keys")
        self.compacted = content.compacted
        self._order, self._values = order, dict(content.entries)

    def keys(self) -> Iterator[str]:
        """Return all keys by a skip scan: one search per key."""
        at = 0
        while at < len(self._order):
            key, _ = self.pair(self._order[at])
            yield key
            at = bisect_left(self._order, _behind(key))

    def versions(self, key: str) -> list[int]:
        return self._versions_from(_prefix(key), _behind(key))

    # Methods of their own, so that a planted bug can override them.

    def place(self, key: str, version: int) -> bytes:
        """Return the bytes by which the entry is ordered."""
        return encode_versioned_key(key, version)

    def pair(self, place: bytes) -> tuple[str, int]:
        """Return the key and the version of the entry at `place`."""
        return decode_versioned_key(place)

    def _holds(self, key: str, version: int) -> bool:
        return self.place(key, version) in self._values

    def _add(self, key: str, version: int, value: Any) -> None:
        place = self.place(key, version)
        insort(self._order, place)
        self._values[place] = None if value is DELETED else msgspec.msgpack.encode(value)

    def _remove(self, key: str, version: int) -> None:
        place = self.place(key, version)
        del self._order[bisect_left(self._order, place)]
        del self._values[place]

    def _value(self, key: str, version: int) -> Any:
        data = self._values[self.place(key, version)]
        return DELETED if data is None else msgspec.msgpack.decode(data)

    def _floor(self, key: str, at: int) -> int | None:
        return self._if_of(key, bisect_right(self._order, self.place(key, at)))

    def _newest(self, key: str) -> int | None:
        return self._if_of(key, bisect_left(self._order, _behind(key)))

    def _between(self, key: str, first: int, last: int) -> list[int]:
        return self._versions_from(self.place(key, first), self.place(key, last) + b"\x00")

    def _if_of(self, key: str, end: int) -> int | None:
        """Return the version just before `end`, if there is one and it is one of `key` (VVL-R7)."""
        if end == 0:
            return None
        found, version = self.pair(self._order[end - 1])
        return version if found == key else None

    def _versions_from(self, low: bytes, high: bytes) -> list[int]:
        places = self._order[bisect_left(self._order, low) : bisect_left(self._order, high)]
        return [self.pair(place)[1] for place in places]


def _behind(key: str) -> bytes:
    """Return the place at which the next key can begin: above every version of this one."""
    return _prefix(key)[:-1] + b"\x02"
