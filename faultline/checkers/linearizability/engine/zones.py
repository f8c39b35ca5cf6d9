"""Chained zones: a near-linear monitor for registers on which no value is put twice.

When every value has one writer, the value that a read saw names the write that it followed. The *cluster* of a value is
its writer and its readers; a compare-and-set that replaced u by v makes the cluster of v follow that of u at once, so
that clusters form *chains*, each of which must stand in one piece. A chain needs the register from its first return to
its last call: if the return is earlier, it is a *forward zone*, which holds the register all that time; if it is later,
a *backward zone* can be squeezed in anywhere between (Gibbons & Korach, "Testing shared memories", 1997, section 4; the
chains are an addition). A must come before B exactly when some operation of A returns before one of B is called, that
is when `first_return(A) < last_call(B)`, and the history is linearizable exactly when no two chains must come before
each other: when forward zones do not overlap and no backward zone lies inside a forward one.

A refusal names at most four operations; an acceptance is a linearization. A pending operation happened exactly when
its value was seen. A failed compare-and-set observes that the state is *not* some value; since leaving one out never
makes a legal history illegal, the monitor first goes without them and then looks for a place for each in the order it
found. When one has no place there, the monitor does not know: another order, or a pending write that no operation
read, may help.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from faultline.checkers.linearizability.engine.problem import INITIAL, NEVER, Problem
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE

__all__ = ["Cluster", "Contradiction", "Zone", "lined_up", "seers_of", "with_failed", "written_down"]


class Contradiction(Exception):
    """Operations that cannot all be placed, whatever the others do: at most four where each value is put once."""

    def __init__(self, *operations: int | None) -> None:
        super().__init__(operations)
        self.operations = tuple(dict.fromkeys(i for i in operations if i is not None))


@dataclass(slots=True)
class Cluster:
    """The operations on one value, with the first to return and the last to be called."""

    writer: int | None
    readers: list[int] = field(default_factory=list)
    follower: int | None = None
    first_return: int = NEVER
    first_returning: int | None = None
    last_call: int = -1
    last_called: int | None = None

    def add(self, i: int, call_at: int, return_at: int) -> None:
        """Take in the next operation in order of call."""
        if return_at < self.first_return:
            self.first_return, self.first_returning = return_at, i
        self.last_call, self.last_called = call_at, i


class Zone(NamedTuple):
    """A chain of clusters: its values in order, and the interval for which it needs the register."""

    values: list[int]
    first_return: int
    first_returning: int | None
    last_call: int
    last_called: int | None


def lined_up(problem: Problem) -> tuple[dict[int, Cluster], list[Zone]]:
    """Return the clusters of `problem`, by value, and all chains in an order in which they can stand.

    Each value is put at most once, and the initial one never. Raises Contradiction when there is no such order.
    """
    writers = {problem.produce[i]: i for i, kind in enumerate(problem.kind) if kind >= WRITE}
    clusters = _clusters(problem, writers)
    return clusters, _in_order(problem, clusters)


def seers_of(problem: Problem, writers: dict[int, int]) -> dict[int, int]:
    """Return for each value that was certainly seen an operation that saw it.

    A pending operation took effect exactly when its value was seen; a pending compare-and-set has itself seen a value
    then.
    """
    seers: dict[int, int] = {}
    for i in range(len(problem.kind)):
        seer: int | None = i if problem.return_at[i] != NEVER else None
        while seer is not None and problem.kind[seer] in (OBSERVE, SWAP) and problem.demand[seer] not in seers:
            value = problem.demand[seer]
            seers[value] = seer
            writer = writers.get(value)
            seer = writer if writer is not None and problem.return_at[writer] == NEVER else None
    return seers


def _clusters(problem: Problem, writers: dict[int, int]) -> dict[int, Cluster]:
    """Return the clusters of all values that were in the register, linked by compare-and-sets."""
    seers = seers_of(problem, writers)
    clusters = {value: Cluster(i) for value, i in writers.items() if value in seers or problem.return_at[i] != NEVER}
    clusters[INITIAL] = Cluster(None)
    for i in problem.by_call:
        kind, return_at = problem.kind[i], problem.return_at[i]
        if kind == AVOID or (kind >= WRITE and problem.produce[i] not in clusters):
            continue
        if kind != WRITE:
            seen = clusters.get(problem.demand[i])
            # Seen, but never put; or seen by an operation that had returned before the writer was called.
            if seen is None or (seen.writer is not None and return_at < problem.call_at[seen.writer]):
                raise Contradiction(i, None if seen is None else seen.writer)
            if kind == OBSERVE:
                seen.readers.append(i)
                seen.add(i, problem.call_at[i], return_at)
                continue
            # The value was put once, and the first compare-and-set took it away: the second cannot have found it.
            if seen.follower is not None:
                raise Contradiction(i, seen.follower, seen.writer)
            seen.follower = i
        clusters[problem.produce[i]].add(i, problem.call_at[i], return_at)
    return clusters


def _in_order(problem: Problem, clusters: dict[int, Cluster]) -> list[Zone]:
    heads = [v for v, c in clusters.items() if c.writer is None or problem.kind[c.writer] == WRITE]
    zones = [_zone(problem, clusters, head) for head in heads]
    if sum(len(zone.values) for zone in zones) < len(clusters):
        raise _circle(problem, clusters, zones)
    forward: Zone | None = None
    # Sorted by where they begin, a zone can only overlap the last forward zone before it: earlier ones end before that
    # one begins. A backward zone begins at its last call; it lies inside exactly when its first return does.
    zones.sort(key=lambda zone: min(zone.first_return, zone.last_call))
    for zone in zones:
        if forward is not None and zone.first_return < forward.last_call:
            raise Contradiction(zone.first_returning, zone.last_called, forward.first_returning, forward.last_called)
        if zone.first_return < zone.last_call:
            forward = zone
    return zones


def _zone(problem: Problem, clusters: dict[int, Cluster], head: int) -> Zone:
    """Return the chain that begins with the value `head`.

    Raises Contradiction when an operation on a later value of it returned before one on an earlier value was called.
    """
    cluster = clusters[head]
    values, last_call, last_called = [head], cluster.last_call, cluster.last_called
    # The initial value was put before all operations, which makes the first chain a forward zone from the beginning.
    first_return = -1 if head == INITIAL else cluster.first_return
    first_returning = cluster.first_returning
    while cluster.follower is not None:
        values.append(problem.produce[cluster.follower])
        cluster = clusters[values[-1]]
        if cluster.first_return < last_call:
            raise Contradiction(cluster.first_returning, last_called)
        if cluster.first_return < first_return:
            first_return, first_returning = cluster.first_return, cluster.first_returning
        if cluster.last_call > last_call:
            last_call, last_called = cluster.last_call, cluster.last_called
    return Zone(values, first_return, first_returning, last_call, last_called)


def _circle(problem: Problem, clusters: dict[int, Cluster], zones: list[Zone]) -> Contradiction:
    """Return the contradiction of compare-and-sets that each needed the one before: they are in no chain."""
    chained = {value for zone in zones for value in zone.values}
    value = next(value for value in clusters if value not in chained)
    first, second = clusters[value].writer, clusters[value].follower
    third = None if second is None else clusters[problem.produce[second]].follower
    return Contradiction(first, second, third)


def written_down(clusters: dict[int, Cluster], zone: Zone) -> Iterator[int]:
    """Yield the operations of `zone` in the order in which they stand."""
    for value in zone.values:
        writer = clusters[value].writer
        if writer is not None:
            yield writer
        yield from clusters[value].readers


def with_failed(problem: Problem, order: list[int]) -> list[int] | None:
    """Return `order` with the failed compare-and-sets, each at the first place where it fits; None if one does not fit.

    Places are counted by how many operations of `order` stand before. A place fits if the register does not hold the
    value that was not there, behind everything that had returned and before everything called later.
    """
    index = {i: place for place, i in enumerate(order)}
    held, ends = _held(problem, order)
    latest = _latest_places(problem, index, len(order))
    placed: dict[int, list[int]] = {}
    place_of: dict[int, int] = {}
    least = 0
    for is_return, i in _events(problem):
        if problem.kind[i] != AVOID:
            if is_return:
                least = max(least, index[i] + 1)
        elif is_return:
            least = max(least, place_of[i])
        else:
            # By its call everything that had returned has a place, so that `least` is final for it. The first place
            # behind the stretch of places on which the register holds the value is the next to try.
            place = least
            if place <= len(order) and held[place] == problem.demand[i]:
                place = ends[place] + 1
            if place > latest[i]:
                return None
            place_of[i] = place
            placed.setdefault(place, []).append(i)
    merged: list[int] = []
    for place in range(len(order) + 1):
        merged += placed.get(place, ())
        merged += order[place : place + 1]
    return merged


def _held(problem: Problem, order: list[int]) -> tuple[list[int], list[int]]:
    """Return what the register holds at each place of `order`, and the last place up to which it holds that."""
    held = [INITIAL]
    for i in order:
        held.append(problem.produce[i] if problem.kind[i] >= WRITE else held[-1])
    ends = list(range(len(held)))
    for place in range(len(order) - 1, -1, -1):
        if held[place] == held[place + 1]:
            ends[place] = ends[place + 1]
    return held, ends


def _events(problem: Problem) -> list[tuple[bool, int]]:
    """Return all calls and returns in order, as pairs: if it is a return, and the operation."""
    events = [(at, False, i) for i, at in enumerate(problem.call_at)]
    events += [(at, True, i) for i, at in enumerate(problem.return_at) if at != NEVER]
    return [(is_return, i) for _, is_return, i in sorted(events)]


def _latest_places(problem: Problem, index: dict[int, int], size: int) -> dict[int, int]:
    """Return for each operation that returned the last place that is before everything called later."""
    latest: dict[int, int] = {}
    least = size
    for is_return, i in reversed(_events(problem)):
        if is_return:
            latest[i] = least
        elif i in index:
            least = min(least, index[i])
    return latest
