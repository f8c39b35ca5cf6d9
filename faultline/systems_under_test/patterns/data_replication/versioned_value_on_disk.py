"""Versioned values on disk: the ordered map of the versioned value pattern in an embedded store, SQLite.

*Problem.* Histories outgrow memory, and a store that is rebuilt from the whole log at every start takes longer each
time.

*Idea.* Embedded stores keep *bytes* in order, so (key, version) is encoded such that the order of the bytes is the
order of the pairs. A key ends with a mark that sorts below everything a longer key could go on with; versions are
big-endian, their sign bit flipped. Keys may contain NUL, and one key may be the beginning of another.

The table is a clustered index (`WITHOUT ROWID`): the rows lie in the order of their keys, so a floor or a range is one
descent into a B-tree and a walk along its leaves. Each update is a transaction, flushed before it returns
(`synchronous=FULL`); within `transaction()` many share one flush.

*Invariants.* VVL-R14 bytes(a) < bytes(b) exactly when a < b. Otherwise those of the versioned value, VVL-I1 to VVL-I4.

*Tolerates.* A crash at any time: a transaction is stored wholly or not at all, and the counter resumes from it.

*Does not tolerate.* Versions outside 64 bits. Several processes that write; SQLite allows them, the counter does not.

*Workloads.* None of its own: nodes touch nothing but their ports, and SQLite wants a real file. It is a component,
held to the same tests as the layouts in memory.

*Checkers.* The tests of the versioned value.

*Planted bugs.* `versions-as-text` encodes versions as they are printed, which breaks their order.

Why SQLite: it comes with Python and is the best tested of the candidates. Measured on one core, 20,000 updates of 100
keys in one transaction, then as many floors: SQLite 0.08 s and 0.17 s, the package lmdb 0.02 s and 0.03 s, the sorted
list in memory 0.03 s and 0.02 s. LMDB reads faster, but is a dependency with native code, for a part whose speed no
campaign needs.

Sources: Patterns of Distributed Systems ch. 17, "Ordering of versioned keys"; SQLite's documentation of `WITHOUT
ROWID`; FoundationDB's tuple layer for strings that keep their order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.versioned_value import DELETED, VersionedStore

__all__ = ["OnDiskVersions", "UnusableVersions", "decode_versioned_key", "encode_versioned_key"]

_END = b"\x00\x01"
_NUL = b"\x00\xff"
_SIGN = 1 << 63
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (place BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, version INTEGER) WITHOUT ROWID;
"""


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
    """The file is damaged, or was written by something else."""


class OnDiskVersions(VersionedStore[int]):
    """The layout in the SQLite file at `path`; `":memory:"` keeps it in memory. Raises UnusableVersions."""

    def __init__(self, path: Path | str) -> None:
        super().__init__()
        self._database = sqlite3.connect(path, isolation_level=None)
        try:
            self.compacted = self._opened()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise UnusableVersions(f"{path} holds no versioned values: {error}; move the file away") from error

    def _opened(self) -> int | None:
        """Set the file up and check it, and return the mark of its last compaction."""
        database = self._database
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.executescript(_SCHEMA)
        for (found,) in database.execute("PRAGMA quick_check"):
            if found != "ok":
                raise sqlite3.DatabaseError(found)
        row = self._row("SELECT version FROM marks WHERE name = 'compacted'")
        return None if row is None else row[0]

    def close(self) -> None:
        """Close the database file."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Store all updates made within together, or none when the block raises or the process dies."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def compact(self, mark: int) -> None:
        """Forget old versions; the mark is durable together with the deletions."""
        before = self.compacted
        try:
            with self.transaction():
                super().compact(mark)
                self._database.execute("REPLACE INTO marks VALUES ('compacted', ?)", (self.compacted,))
        except BaseException:
            self.compacted = before
            raise

    def keys(self) -> Iterator[str]:
        """Return all keys by a skip scan: one descent into the tree per key."""
        row = self._row("SELECT place FROM entries ORDER BY place LIMIT 1")
        while row is not None:
            key, _ = decode_versioned_key(row[0])
            yield key
            row = self._row("SELECT place FROM entries WHERE place >= ? ORDER BY place LIMIT 1", _behind(key))

    def versions(self, key: str) -> list[int]:
        return self._versions_from(_prefix(key), _behind(key))

    def _holds(self, key: str, version: int) -> bool:
        return self._row("SELECT 1 FROM entries WHERE place = ?", encode_versioned_key(key, version)) is not None

    def _add(self, key: str, version: int, value: Any) -> None:
        data = None if value is DELETED else msgspec.msgpack.encode(value)
        self._database.execute("INSERT INTO entries VALUES (?, ?)", (encode_versioned_key(key, version), data))

    def _remove(self, key: str, version: int) -> None:
        self._database.execute("DELETE FROM entries WHERE place = ?", (encode_versioned_key(key, version),))

    def _value(self, key: str, version: int) -> Any:
        row = self._row("SELECT value FROM entries WHERE place = ?", encode_versioned_key(key, version))
        if row is None:
            raise KeyError((key, version))
        return DELETED if row[0] is None else msgspec.msgpack.decode(row[0])

    def _floor(self, key: str, at: int) -> int | None:
        row = self._row(
            "SELECT place FROM entries WHERE place <= ? ORDER BY place DESC LIMIT 1", encode_versioned_key(key, at)
        )
        return self._if_of(key, row)

    def _newest(self, key: str) -> int | None:
        row = self._row("SELECT place FROM entries WHERE place < ? ORDER BY place DESC LIMIT 1", _behind(key))
        return self._if_of(key, row)

    def _between(self, key: str, first: int, last: int) -> list[int]:
        return self._versions_from(encode_versioned_key(key, first), encode_versioned_key(key, last) + b"\x00")

    def _if_of(self, key: str, row: tuple[Any, ...] | None) -> int | None:
        """Return the version in `row`, if there is one and it is one of `key` (VVL-R7)."""
        if row is None:
            return None
        found, version = decode_versioned_key(row[0])
        return version if found == key else None

    def _versions_from(self, low: bytes, high: bytes) -> list[int]:
        rows = self._database.execute(
            "SELECT place FROM entries WHERE place >= ? AND place < ? ORDER BY place", (low, high)
        )
        return [decode_versioned_key(place)[1] for (place,) in rows]

    def _row(self, query: str, *values: bytes) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(query, values).fetchone()
        return row


def _behind(key: str) -> bytes:
    """Return the place at which the next key can begin: above every version of this one."""
    return _prefix(key)[:-1] + b"\x02"
