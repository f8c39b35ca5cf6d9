"""Key-range partitions: each partition holds the keys between two others, so that a range query asks few of them.

*Problem.* A store whose data do not fit on one server divides them. Dividing by a hash spreads the keys evenly and
tears neighbours apart: whoever asks for all keys from `a` to `d` must then ask every partition there is.

*Idea.* Sort the keys and cut the order into ranges. A range begins with a key and ends before one; the first begins
with the lowest key there is, the last ends nowhere. Whoever has the table of ranges finds the one partition of a key,
and the few that overlap a query.

    ["", b) on athens     [b, d) on byzantium     [d, MAX) on cyrene

Where to cut is known beforehand (*predefined splits*), or found out: a partition that has reached a size is split at
the key where half of its bytes are reached, one that is asked too often where half of its requests are. The coordinator
keeps the table in a log of its own. It changes the table first, and then tells the host of the partition to split what
it holds, again and again until the host says that it has.

Clients keep a copy of the table and are not told when it changes. So each partition has a *generation*, which counts
its splits and moves; a request carries the generation that its client knows, and a host serves no other. A client that
is refused fetches the table again. It never gets half of a range for the whole.

*Invariants.* KRP-I1 the ranges tile the key space after every change of the table. KRP-I2 a stored key lies within the
range of its partition. KRP-I3 a scan returns what is there, once, in order. KRP-I4 generations grow; nothing is served
under another generation than the host's. KRP-I5 once it is quiet, every partition is below the maximum or cannot be
split. KRP-I6 each key stays linearizable through splits and moves.

*Tolerates.* Clients with tables of any age. A trigger that comes twice: the second names a generation that has passed.
A command that comes twice: the host sees that it has done it, and keeps what was written since. A crash of any node at
any step: table and data are in logs, a split is one entry of the host's log, and open tasks are sent again.

*Does not tolerate.* The loss of a host: each partition has one copy here, on one server. The loss of the coordinator
stops splits and the correction of clients until it is back, while clients whose table is right go on.

*Workloads.* `read-write`; `register`; `scans`.

*Checkers.* Linearizability; `scans`; the invariants.

*Planted bugs.* See `reference/range_kv/planted_bugs.py`.

Sources: Patterns of Distributed Systems ch. 20; Chang et al., "Bigtable" (OSDI 2006); the regions of TiKV and HBase,
the tablets of YugabyteDB. Deviations from the printed code: the end of the last range is a value of its own and not the
empty string again; a split happens at the maximum and not at half of it; a split key lies strictly inside the range
with keys on both sides, or there is no split.
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
"""The lowest key there is: a key like any other."""

MAX_KEY = None
"""Above all keys, and no key itself."""


class UnsuitableSplit(ValueError):
    """A range cannot be split there: one side would be empty, or the splits are not in order."""


class KeyRange(msgspec.Struct, frozen=True, array_like=True):
    """The keys from `start` up to `end`, without `end`. Keys are ordered by code point, as their UTF-8 bytes are."""

    start: str = MIN_KEY
    end: str | None = MAX_KEY

    def contains(self, key: str) -> bool:
        """Whether `key` lies in the range."""
        return self.start <= key and (self.end is None or key < self.end)

    def overlaps(self, other: KeyRange) -> bool:
        """Whether some key lies in both."""
        return self.contains(other.start) or other.contains(self.start)

    def intersection(self, other: KeyRange) -> KeyRange:
        """The keys that lie in both of two ranges that overlap."""
        ends = [end for end in (self.end, other.end) if end is not None]
        return KeyRange(max(self.start, other.start), min(ends, default=MAX_KEY))

    def can_split_at(self, key: str) -> bool:
        """Whether both sides of a split at `key` would be ranges: it must lie inside, above the start."""
        return key > self.start and self.contains(key)

    def split(self, key: str) -> tuple[KeyRange, KeyRange]:
        """The keys below `key`, and those from `key` on. Raises UnsuitableSplit when one side would be empty."""
        if not self.can_split_at(key):
            raise UnsuitableSplit(f"{self} cannot be split at {key!r}: one side would be empty")
        return KeyRange(self.start, key), KeyRange(key, self.end)

    def __str__(self) -> str:
        return f"[{self.start!r}, {'MAX' if self.end is None else repr(self.end)})"


EVERYTHING = KeyRange()
"""The whole key space."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """What the table says of one partition: its range, its generation, and where it is."""

    id: int
    range: KeyRange
    generation: int
    address: str


class PartitionMap:
    """Which partition holds which keys: the part of the table that clients have."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self.partitions: dict[int, Partition] = {partition.id: partition for partition in partitions}

    def partition_for(self, key: str) -> Partition | None:
        """The partition of `key`; None in an empty table."""
        return next((each for each in self.partitions.values() if each.range.contains(key)), None)

    def partitions_in(self, wanted: KeyRange) -> list[Partition]:
        """The partitions that overlap `wanted`, in the order of their keys."""
        return sorted((each for each in self.partitions.values() if each.range.overlaps(wanted)), key=_start)


def _start(partition: Partition) -> str:
    return partition.range.start


def ranges_between(splits: Sequence[str]) -> list[KeyRange]:
    """The ranges that `splits` cut the key space into. Raises UnsuitableSplit unless they ascend and none is empty."""
    if MIN_KEY in splits or any(one >= other for one, other in pairwise(splits)):
        raise UnsuitableSplit(f"the splits {list(splits)} must ascend, and none may be empty or there twice")
    bounds = [MIN_KEY, *splits]
    return [KeyRange(start, end) for start, end in zip(bounds, [*splits, MAX_KEY], strict=True)]


def arranged(ranges: Sequence[KeyRange], members: Sequence[str]) -> list[Partition]:
    """A first table: the ranges dealt to the members in turn, numbered from 1."""
    return [Partition(number + 1, each, 1, members[number % len(members)]) for number, each in enumerate(ranges)]


def least_loaded(members: Iterable[str], partitions: Mapping[int, Partition]) -> str | None:
    """The member with the fewest partitions, the first by name among several; None when there is no member."""
    hosted = [partition.address for partition in partitions.values()]
    return min(sorted(members), key=hosted.count, default=None)
