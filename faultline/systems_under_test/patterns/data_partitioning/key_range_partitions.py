"""Key-range partitions: each partition holds the keys between two others, so that a range query asks few of them.

*Problem.* A store whose data do not fit on one server divides them. Dividing by a hash spreads the keys evenly but
separates neighbours: a query for all keys from `a` to `d` must then go to every partition.

*Idea.* Sort the keys and cut the order into ranges. A range begins with a key and ends before another. The first begins
with the lowest key of all, the last has no end. The table of ranges gives the one partition of a key, and the few that
overlap a query.

    ["", b) on athens     [b, d) on byzantium     [d, MAX) on cyrene

The cuts are given beforehand (*predefined splits*) or found while the store runs. A partition that has reached the
maximum size is split at the key at which half of its bytes are reached. A partition that gets too many requests is
split at the key at which half of its requests are reached. The coordinator keeps the table in a log of its own. It
changes the table first, and then tells the host of the partition to split its data, repeatedly until the host confirms.

Clients keep a copy of the table and are not told when it changes. So each partition has a *generation*, which counts
its splits and moves. A request carries the generation that its client knows, and a host serves no other. A client that
is refused fetches the table again. It never takes half of a range for the whole.

*Invariants.* KRP-I1 the ranges cover the key space without gap or overlap after every change of the table. KRP-I2 a
stored key lies within the range of its partition. KRP-I3 a scan returns each stored key once, in order. KRP-I4
generations grow; no request is served under another generation than the host's. KRP-I5 once the system is quiet, every
partition is below the maximum or cannot be split. KRP-I6 each key stays linearizable through splits and moves.

*Tolerates.* Clients with tables of any age. A trigger that comes twice: the second names a generation that has passed.
A command that comes twice: the host sees that it has carried it out, and keeps later writes. A crash of any node at any
step: table and data are in logs, a split is one entry of the host's log, and open tasks are sent again.

*Does not tolerate.* The loss of a host: each partition has one copy here, on one server. The loss of the coordinator
stops splits and the correction of clients until it is back, while clients whose table is right go on.

*Workloads.* `read-write`; `register`; `scans`.

*Checkers.* Linearizability; `scans`; the invariants.

*Planted bugs.* The file `reference/range_kv/planted_bugs.py` holds them.

Sources: Patterns of Distributed Systems ch. 20; Chang et al., "Bigtable" (OSDI 2006); the regions of TiKV and HBase,
the tablets of YugabyteDB. Deviations from the printed code: the end of the last range is a value of its own and not the
empty string; a split happens at the maximum and not at half of it; a split key lies strictly inside the range with keys
on both sides, or there is no split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

__all__ = [
    "EVERYTHING",
    "MAX_KEY",
    "MIN_KEY",
    "KeyRange",
    "Partition",
    "PartitionMap",
    "UnsuitableSplit",
    "arranged",
    "least_loaded",
    "ranges_between",
]

MIN_KEY = ""
"""The lowest key: a key like any other."""

MAX_KEY = None
"""The end above all keys, which is not a key itself."""


class UnsuitableSplit(ValueError):
    """A range cannot be split at that key: one side would be empty, or the splits are not in order."""


class KeyRange(msgspec.Struct, frozen=True, array_like=True):
    """The keys from `start` up to `end`, without `end`. Keys are ordered by code point, as their UTF-8 bytes are."""

    start: str = MIN_KEY
    end: str | None = MAX_KEY

    def contains(self, key: str) -> bool:
        """Return whether `key` lies in the range."""
        return self.start <= key and (self.end is None or key < self.end)

    def overlaps(self, other: KeyRange) -> bool:
        """Return whether some key lies in both ranges."""
        return self.contains(other.start) or other.contains(self.start)

    def intersection(self, other: KeyRange) -> KeyRange:
        """Return the keys that lie in both of two ranges that overlap."""
        ends = [end for end in (self.end, other.end) if end is not None]
        return KeyRange(max(self.start, other.start), min(ends, default=MAX_KEY))

    def can_split_at(self, key: str) -> bool:
        """Return whether both sides of a split at `key` would be ranges: it must lie inside, above the start."""
        return key > self.start and self.contains(key)

    def split(self, key: str) -> tuple[KeyRange, KeyRange]:
        """Return the keys below `key`, and those from `key` on. Raises UnsuitableSplit when one side would be empty."""
        if not self.can_split_at(key):
            raise UnsuitableSplit(f"{self} cannot be split at {key!r}: one side would be empty")
        return KeyRange(self.start, key), KeyRange(key, self.end)

    def __str__(self) -> str:
        return f"[{self.start!r}, {'MAX' if self.end is None else repr(self.end)})"


EVERYTHING = KeyRange()
"""The whole key space."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """A row of the table: the range, the generation and the host's address of one partition."""

    id: int
    range: KeyRange
    generation: int
    address: str


class PartitionMap:
    """The partition of each key: the part of the table that clients have."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self.partitions: dict[int, Partition] = {partition.id: partition for partition in partitions}

    def partition_for(self, key: str) -> Partition | None:
        """Return the partition of `key`; None in an empty table."""
        return next((each for each in self.partitions.values() if each.range.contains(key)), None)

    def partitions_in(self, wanted: KeyRange) -> list[Partition]:
        """Return the partitions that overlap `wanted`, in the order of their keys."""
        return sorted((each for each in self.partitions.values() if each.range.overlaps(wanted)), key=_start)


def _start(partition: Partition) -> str:
    return partition.range.start


def ranges_between(splits: Sequence[str]) -> list[KeyRange]:
    """Return the ranges that `splits` cut the key space into.

    Raises UnsuitableSplit unless they ascend and none is empty.
    """
    if MIN_KEY in splits or any(one >= other for one, other in pairwise(splits)):
        raise UnsuitableSplit(f"the splits {list(splits)} must ascend, and none may be empty or repeated")
    bounds = [MIN_KEY, *splits]
    return [KeyRange(start, end) for start, end in zip(bounds, [*splits, MAX_KEY], strict=True)]


def arranged(ranges: Sequence[KeyRange], members: Sequence[str]) -> list[Partition]:
    """Return the first table: the ranges are dealt to the members in turn, and numbered from 1."""
    return [Partition(number + 1, each, 1, members[number % len(members)]) for number, each in enumerate(ranges)]


def least_loaded(members: Iterable[str], partitions: Mapping[int, Partition]) -> str | None:
    """Return the member with the fewest partitions, the first by name among several; None when there is no member."""
    hosted = [partition.address for partition in partitions.values()]
    return min(sorted(members), key=hosted.count, default=None)
