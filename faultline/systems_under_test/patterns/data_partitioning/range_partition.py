"""The data of one key-range partition: a sorted map with its size, which can be scanned and split.

Size is the sum of the lengths of keys and values. A value that is not a text counts as its JSON text.

A partition is split at the key at which half of its bytes, or half of its requests, are reached. Both are one rule over
weighted keys. The key is never the first, so that both sides hold something. A partition with one key cannot be split,
however large it is (KRP-R11).

Sources: Patterns of Distributed Systems ch. 20, class Partition; CockroachDB splits ranges by load at a key that
divides the requests.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import KeyRange, Partition

__all__ = ["Entries", "RangePartition", "middle_key", "middle_of_requests", "size_of"]

Entries = list[tuple[str, Any]]
"""Keys with their values, in the order of the keys."""


def size_of(key: str, value: Any) -> int:
    """Return the number of bytes that `key` and `value` count for."""
    text = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return len(key.encode()) + len(text)


def middle_key(weights: Sequence[tuple[str, int]]) -> str | None:
    """Return the first key before which half of all weight lies, the last one at the latest.

    Return None for fewer than two keys.
    """
    half = sum(weight for _, weight in weights) / 2
    before = 0
    for number, (key, weight) in enumerate(weights):
        if number and (before >= half or number == len(weights) - 1):
            return key
        before += weight
    return None


def middle_of_requests(requests: Mapping[str, int]) -> str | None:
    """Return the key that halves the requests which were counted by key; None when all were for one key."""
    return middle_key(sorted(requests.items()))


class RangePartition:
    """One partition, as its host holds it."""

    def __init__(self, info: Partition, entries: Entries | None = None) -> None:
        self.info = info
        self._values: dict[str, Any] = dict(entries or ())
        self._keys = sorted(self._values)

    @property
    def keys(self) -> list[str]:
        """All keys, in order; not to be changed."""
        return self._keys

    def get(self, key: str) -> Any:
        """Return the value of `key`, None if there is none."""
        return self._values.get(key)

    def has(self, key: str) -> bool:
        """Return whether `key` is stored, with any value."""
        return key in self._values

    def put(self, key: str, value: Any) -> None:
        """Write `value` to `key`, which lies in the range."""
        if key not in self._values:
            insort(self._keys, key)
        self._values[key] = value

    def delete(self, key: str) -> None:
        """Remove `key`, if it is there."""
        if self._values.pop(key, _ABSENT) is not _ABSENT:
            del self._keys[bisect_left(self._keys, key)]

    def scan(self, wanted: KeyRange) -> Entries:
        """Return the entries that lie in both `wanted` and the partition, in order."""
        if not wanted.overlaps(self.info.range):
            return []
        part = wanted.intersection(self.info.range)
        first = bisect_left(self._keys, part.start)
        last = len(self._keys) if part.end is None else bisect_left(self._keys, part.end)
        return [(key, self._values[key]) for key in self._keys[first:last]]

    def entries(self) -> Entries:
        """Return all entries, in order."""
        return [(key, self._values[key]) for key in self._keys]

    def size(self) -> int:
        """Return the number of bytes that all keys and values count for."""
        return sum(size for _, size in self.sizes())

    def sizes(self) -> list[tuple[str, int]]:
        """Return each key with the bytes that it and its value count for, in order."""
        return [(key, size_of(key, self._values[key])) for key in self._keys]

    def is_divided_by(self, key: str) -> bool:
        """Return whether there are keys on both sides of `key`: some below, some from it on."""
        return bool(self._keys) and self._keys[0] < key <= self._keys[-1]

    def split(self, left: Partition, right: Partition) -> tuple[Self, Self]:
        """Return the two halves as partitions of their own."""
        return type(self)(left, self.scan(left.range)), type(self)(right, self.scan(right.range))


_ABSENT = object()
