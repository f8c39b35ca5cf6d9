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

__all__ = ["Contradiction", "check_zones"]


class Contradiction(Exception):
    """At most four operations that cannot all be placed."""

    def __init__(self, *operations: int | None) -> None:
        super().__init__(operations)
        self.operations = tuple(dict.fromkeys(i for i in operations if i is not None))


@dataclass(slots=True)
class _Cluster:
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


class _Zone(NamedTuple):
    """A chain of clusters: its values in order, and the interval for which it needs the register."""

    values: list[int]
    first_return: int
    first_returning: int | None
    last_call: int
    last_called: int | None


def check_zones(problem: Problem) -> list[int] | None:
    """Return a linearization of `problem`; None when the monitor does not apply or does not know.

    Raises Contradiction when there is none.
    """
    writers = _writers(problem)
    if writers is None:
        return None
    clusters = _clusters(problem, writers)
    order = [i for zone in _lined_up(problem, clusters) for i in _written_down(clusters, zone)]
    return _with_failed(problem, order) if problem.has_failed else order


def _writers(problem: Problem) -> dict[int, int] | None:
    """Return the writer of each value; None when a value is put twice, or the initial one at all."""
    if problem.has_appends:
        return None
    writers: dict[int, int] = {}
    for i, kind in enumerate(problem.kind):
        if kind >= WRITE:
            value = problem.produce[i]
            if value == INITIAL or value in writers:
                return None
            writers[value] = i
    return writers


def _happened(problem: Problem, writers: dict[int, int]) -> list[bool]:
    """Return for each operation if it certainly took effect: it returned, or it is pending and was seen."""
    happened = [at != NEVER for at in problem.return_at]
    for i in range(len(happened)):
        # A pending compare-and-set that was seen has itself seen a value, whose writer therefore happened too.
        seer: int | None = i if problem.return_at[i] != NEVER else None
        while seer is not None and problem.kind[seer] in (OBSERVE, SWAP):
            seer = writers.get(problem.demand[seer])
            if seer is None or happened[seer]:
                break
            happened[seer] = True
    return happened


def _clusters(problem: Problem, writers: dict[int, int]) -> dict[int, _Cluster]:
    """Return the clusters of all values that were in the register, linked by compare-and-sets."""
    happened = _happened(problem, writers)
    clusters = {value: _Cluster(i) for value, i in writers.items() if happened[i]}
    clusters[INITIAL] = _Cluster(None)
    for i in problem.by_call:
        kind, return_at = problem.kind[i], problem.return_at[i]
        if kind == AVOID or not happened[i]:
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


def _lined_up(problem: Problem, clusters: dict[int, _Cluster]) -> list[_Zone]:
    """Return all chains in an order in which they can stand."""
    heads = [v for v, c in clusters.items() if c.writer is None or problem.kind[c.writer] == WRITE]
    zones = [_zone(problem, clusters, head) for head in heads]
    if sum(len(zone.values) for zone in zones) < len(clusters):
        raise _circle(problem, clusters, zones)
    forward: _Zone | None = None
    # Sorted by where they begin, a zone can only overlap the last forward zone before it: earlier ones end before that
    # one begins. A backward zone begins at its last call; it lies inside exactly when its first return does.
    zones.sort(key=lambda zone: min(zone.first_return, zone.last_call))
    for zone in zones:
        if forward is not None and zone.first_return < forward.last_call:
            raise Contradiction(zone.first_returning, zone.last_called, forward.first_returning, forward.last_called)
        if zone.first_return < zone.last_call:
            forward = zone
    return zones


def _zone(problem: Problem, clusters: dict[int, _Cluster], head: int) -> _Zone:
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
    return _Zone(values, first_return, first_returning, last_call, last_called)


def _circle(problem: Problem, clusters: dict[int, _Cluster], zones: list[_Zone]) -> Contradiction:
    """Return the contradiction of compare-and-sets that each needed the one before: they are in no chain."""
    chained = {value for zone in zones for value in zone.values}
    value = next(value for value in clusters if value not in chained)
    first, second = clusters[value].writer, clusters[value].follower
    third = None if second is None else clusters[problem.produce[second]].follower
    return Contradiction(first, second, third)


def _written_down(clusters: dict[int, _Cluster], zone: _Zone) -> Iterator[int]:
    for value in zone.values:
        writer = clusters[value].writer
        if writer is not None:
            yield writer
        yield from clusters[value].readers


def _with_failed(problem: Problem, order: list[int]) -> list[int] | None:
    """Return `order` with the failed compare-and-sets, each at the first place where it fits; None if one does not fit.

    Places are counted by how many operations of `order` stand before. A place fits if it is not within the cluster of
    the value that was not there, behind everything that had returned and before everything called later.
    """
    index = {i: place for place, i in enumerate(order)}
    clusters = _places_of_values(problem, order)
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
            # By its call everything that had returned has a place, so that `least` is final for it. Each value is in
            # the register for one stretch of places only, and the first place behind that stretch is the next to try.
            begin, end = clusters.get(problem.demand[i], (-1, -1))
            place = end + 1 if begin <= least <= end else least
            if place > latest[i]:
                return None
            place_of[i] = place
            placed.setdefault(place, []).append(i)
    merged: list[int] = []
    for place in range(len(order) + 1):
        merged += placed.get(place, ())
        merged += order[place : place + 1]
    return merged


def _places_of_values(problem: Problem, order: list[int]) -> dict[int, tuple[int, int]]:
    """Return the first and the last place at which the register holds each value."""
    places = {INITIAL: (0, 0)}
    state = INITIAL
    for place, i in enumerate(order, start=1):
        if problem.kind[i] >= WRITE:
            state = problem.produce[i]
        places[state] = (places.get(state, (place, place))[0], place)
    return places


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
