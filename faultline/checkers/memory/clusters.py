"""The staleness of the reads of one register: in versions (k-atomicity) and in time (Δ-atomicity).

A *cluster* is a write with the reads that saw it; values are unique. A history is k-atomic when some order that keeps
real time lets each read see one of the k latest writes before it (Aiyer, Alvisi, Bazzi 2005); 1-atomic is
linearizable. It is Δ-atomic when it becomes linearizable once every read may begin Δ earlier (Golab, Li, Shah, PODC
2011).

A write takes effect before the first of its reads ends, so its end is moved there; nothing else depends on that end.
Then two clusters *conflict* when each has an end before the last beginning in the other one: `f1 < s2 and f2 < s1`. A
history is linearizable when no two clusters conflict (Gibbons & Korach 1997, whose zones these are), and the earlier
reads begin, the fewer do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Cluster", "Read", "Staleness", "is_2_atomic", "staleness_of", "versions_needed"]

STEPS_MAX = 1_000_000
"""The writes that the search for a 2-atomic order of one key places, tries included."""


class Read(NamedTuple):
    """A read with its moments and its row."""

    begin: int
    end: int
    row: int


@dataclass(slots=True)
class Cluster:
    """A write, from `begin` to `end`, and the reads that saw it; the initial value was written before all moments."""

    row: int
    begin: int
    end: int
    reads: list[Read] = field(default_factory=list)

    def zone(self, shift: int) -> tuple[int, int]:
        """Return the first end and the last beginning, of reads that begin `shift` earlier."""
        return self.end, max([self.begin, *(read.begin - shift for read in self.reads)])


@dataclass(frozen=True, slots=True)
class Staleness:
    """The smallest shift of reads that makes a history linearizable, and why a smaller one does not.

    `read` is a row that needs the whole shift, `newer` the row of a write that it then no longer misses; both are -1
    for a linearizable history.
    """

    shift: int
    read: int = -1
    newer: int = -1


def staleness_of(clusters: Sequence[Cluster], unit: int) -> Staleness:
    """Return the staleness of a key's `clusters`, as a multiple of `unit`, by bisection.

    No two conflict when all reads begin before their writes, so the bisection has an end.
    """
    if _conflict(clusters, 0) is None:
        return Staleness(0)
    low, high = 0, 1 + max(read.begin for cluster in clusters for read in cluster.reads) // unit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _conflict(clusters, middle * unit) is None else (middle, high)
    pair = _conflict(clusters, low * unit)
    assert pair is not None, "a smaller shift leaves a conflict"
    return Staleness(high * unit, *_needing(*pair))


def _conflict(clusters: Sequence[Cluster], shift: int) -> tuple[Cluster, Cluster] | None:
    """Return two clusters that conflict when reads begin `shift` earlier.

    At least one of two is a *forward* zone, whose first end lies before its last beginning. Among the forward zones
    that end first, the one that begins last conflicts if any does.
    """
    zones = [(*cluster.zone(shift), cluster) for cluster in clusters]
    forward = sorted((zone for zone in zones if zone[0] < zone[1]), key=lambda zone: zone[:2])
    ends, longest = [zone[0] for zone in forward], list[tuple[int, int, Cluster]]()
    for zone in forward:
        if longest and zone[0] < longest[-1][1]:
            return longest[-1][2], zone[2]
        longest.append(max([*longest[-1:], zone], key=lambda each: each[1]))
    for end, last, cluster in zones:
        at = bisect_left(ends, last)
        if end >= last and at and end < longest[at - 1][1]:
            return longest[at - 1][2], cluster
    return None


def _needing(one: Cluster, other: Cluster) -> tuple[int, int]:
    """Return the rows of the read that must begin earlier for the two not to conflict, and of the write it misses.

    Either's last read may. A cluster whose write itself begins after the other's end cannot go before it.
    """
    ways = [
        (max(read.begin for read in late.reads) - early.end, max(late.reads).row, early.row)
        for late, early in ((one, other), (other, one))
        if late.begin <= early.end and late.reads
    ]
    return min(ways)[1:]


def versions_needed(clusters: Sequence[Cluster]) -> tuple[int, int, int]:
    """Return bounds of the smallest k for which the key is k-atomic, and the row of a read that sees so old a value.

    They are equal when k is 1 or 2 (Golab et al., SIAM J. Comput. 2015) or when a read shows it: all writes that come
    after the one it saw, and before it, in real time. Above, the order of the writes by their beginnings and by their
    ends are two ways to place the reads, and the better one is an upper bound.
    """
    if _conflict(clusters, 0) is None:
        return 1, 1, -1
    # A search that gives up leaves 2 possible.
    small = is_2_atomic(clusters)
    low, row = _forced(clusters)
    high, placed = min(
        _placed(sorted(clusters, key=lambda each: (each.begin, each.end))),
        _placed(sorted(clusters, key=lambda each: (each.end, each.begin))),
    )
    if small:
        return 2, 2, row if low == 2 else placed
    low = max(low, 2 if small is None else 3)
    return low, max(low, high), row if row >= 0 else placed


def _forced(clusters: Sequence[Cluster]) -> tuple[int, int]:
    """Return the largest k that one read needs by itself, with its row: writes in real time between it and its own."""
    begins, ends = sorted(each.begin for each in clusters), sorted(each.end for each in clusters)
    found = (1, -1)
    for cluster in clusters:
        for read in cluster.reads:
            between = bisect_left(ends, read.begin) - bisect_right(begins, cluster.end)
            found = max(found, (1 + between, read.row))
    return found


def _placed(order: Sequence[Cluster]) -> tuple[int, int]:
    """Return the largest k, and its read, when the writes are put in `order` and each read as early as it can be."""
    by_end, latest = sorted((cluster.end, place) for place, cluster in enumerate(order)), [-1]
    for _, place in by_end:
        latest.append(max(latest[-1], place))
    ends = [end for end, _ in by_end]
    reads = sorted((read, place) for place, cluster in enumerate(order) for read in cluster.reads)
    ended = sorted((read.end, number) for number, (read, _) in enumerate(reads))
    worst, places, at, passed = (1, -1), list[int](), 0, 0
    for read, place in reads:
        # Reads that had ended before this one began come before it, wherever they are.
        while at < len(ended) and ended[at][0] < read.begin:
            passed, at = max(passed, places[ended[at][1]]), at + 1
        places.append(max(place, passed, latest[bisect_left(ends, read.begin)]))
        worst = max(worst, (places[-1] - place + 1, read.row))
    return worst


def is_2_atomic(clusters: Sequence[Cluster], steps_max: int = STEPS_MAX) -> bool | None:
    """Return whether the clusters are 2-atomic, None when that takes more steps.

    This is LBT of Golab et al.: the order is made from its end. A write is tried as the last one. Reads that begin
    after it has ended come behind it, so all that did not see it saw the write before, which is then the next to be
    tried. Where no read forces the next one, an *epoch* ends: what is left does not depend on it, so that the search
    never goes back behind it.
    """
    order = _FromTheEnd(clusters)
    while not order.is_complete():
        if not any(order.has_epoch(first) for first in order.candidates()):
            return False
        if order.steps > steps_max:
            return None
    return True


class _FromTheEnd:
    """Writes and reads that are put in an order from its end: a write `gone` has its place, with all of its reads."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.clusters, self.steps = clusters, 0
        self.by_begin = sorted(range(len(clusters)), key=lambda number: clusters[number].begin)
        self.by_end = sorted(range(len(clusters)), key=lambda number: clusters[number].end)
        self.reads = sorted((read.begin, number) for number, each in enumerate(clusters) for read in each.reads)
        self.gone: set[int] = set()

    def is_complete(self) -> bool:
        """Return whether all writes are placed; forget those that come last by beginning or end."""
        for numbers in (self.by_begin, self.by_end):
            while numbers and numbers[-1] in self.gone:
                numbers.pop()
        return not self.by_begin

    def candidates(self) -> list[int]:
        """Return the writes that may be the last of those left, as they precede none of them."""
        latest = self.clusters[self.by_begin[-1]].begin
        found = []
        for number in reversed(self.by_end):
            if self.clusters[number].end < latest:
                break
            if number not in self.gone:
                found.append(number)
        return found

    def has_epoch(self, first: int) -> bool:
        """Place an epoch that begins with `first`; return False, with nothing changed, at a contradiction."""
        placed, at = {first}, len(self.reads)
        number = first
        while True:
            self.steps += 1
            end = self.clusters[number].end
            behind: set[int] = set()
            while at and self.reads[at - 1][0] > end:
                at -= 1
                behind.add(self.reads[at][1])
            behind -= placed | self.gone
            if self._latest_begin(placed) > end or len(behind) > 1:
                return False
            if not behind:
                self.gone |= placed
                del self.reads[at:]
                return True
            number = behind.pop()
            placed.add(number)

    def _latest_begin(self, placed: set[int]) -> int:
        """Return the last beginning of a write that is left beside `placed`; before all moments when none is."""
        for number in reversed(self.by_begin):
            if number not in placed and number not in self.gone:
                return self.clusters[number].begin
        return -1
