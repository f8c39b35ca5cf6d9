"""Assigning to each unsure read one of its possible writes, so that the zones do not contradict each other.

Two zones contradict each other exactly when each must come before the other: `first_return(A) < last_call(B)` and
`first_return(B) < last_call(A)`. A read that is added to a zone can only make its first return earlier and its last
call later. So a contradiction stays one whatever is assigned later, and zones contradict already if they do without any
unsure read. The question is a constraint satisfaction problem whose constraints bind two zones each. It is searched by
backtracking, which these properties keep small:

- A zone is tried against all fixed ones in constant time: of those with a return before its last call, the one with the
  latest last call contradicts it if any does. Two are kept, since one of them may be the zone itself.
- Zones without a common read interact only where they overlap. They are joined into *components* by their common reads,
  and then where the intervals overlap that they span with all reads they may ever get. A component has an assignment or
  has none whatever the others do, so that choices in one are never taken back for another.
- Where all possible writes of a read fail, the search jumps back to the latest read without which one of them would not
  have failed (conflict-directed backjumping: Prosser, "Hybrid algorithms for the constraint satisfaction problem",
  1993). A try depends on the zones that it joins or that contradict them, and these on the reads added to them.
- A component without an assignment refutes the history. The core is all that contradicted, with its grounds.

An unsure compare-and-set joins its zone, of which it is the head, to the end of the one that it followed. Where it
joined two chains, or a pending compare-and-set is brought about, the search looks at less than the zones do. The zones
judge the whole assignment once more, and the slot search decides what they then refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from faultline.checkers.linearizability.engine.problem import NEVER
from faultline.checkers.linearizability.engine.read_mapping import Mapping, Naming
from faultline.checkers.linearizability.engine.zones import Cluster, Contradiction, Zone
from faultline.checkers.linearizability.operations import OBSERVE, SWAP, WRITE

__all__ = ["assign_all"]

TRIES_MIN, TRIES_PER_PAIR = 4096, 8
"""The budget of an assignment: the least number of tries, and the tries for each pair of a read and a possible write.
The kernel has the same numbers."""


class _Place(NamedTuple):
    """The place of a value in its chain: the number of values before it, their last call, the first return after."""

    rank: int
    last_call: int
    last_called: int | None
    first_return: int
    first_returning: int | None


@dataclass(slots=True)
class _Level:
    """One read of a component, with the writes not tried yet and the levels for which tries failed (a bit for each).

    Once it is assigned: the zone that it was added to, as it was before, and the one that was joined to it.
    """

    read: int
    untried: Iterator[int]
    culprits: int = 0
    root: int = 0
    joined: int | None = None
    before: Zone | None = None


class _Assignment:
    """Zones with the reads assigned so far. `fixed` are those without unsure reads, `now` those with them."""

    def __init__(self, mapping: Mapping, clusters: dict[int, Cluster], zones: list[Zone]) -> None:
        self.mapping, self.clusters = mapping, clusters
        problem, mapped = mapping.problem, mapping.mapped
        self.writer = {mapped.produce[i]: i for i, kind in enumerate(problem.kind) if kind >= WRITE}
        self.fixed = zones[:]
        self.zone_of = {value: z for z, zone in enumerate(zones) for value in zone.values}
        self.idle = {i for i in mapping.unsure if problem.is_pending(i) and mapped.produce[i] not in self.zone_of}
        self.latest = self._furthest_two(2 * len(problem.kind) + 1)
        self.places = {value: place for zone in zones for value, place in self._places(zone)}
        # A pending write that no sure read saw has no zone yet; it gets one when a read is assigned to it.
        for number in (number for possible in mapping.unsure.values() for number in possible):
            if number not in self.zone_of:
                self.zone_of[number] = len(self.fixed)
                self.fixed.append(Zone([number], NEVER, None, -1, None))
        self.now = self.fixed[:]
        self.into: dict[int, int] = {}
        self.follower: dict[int, int] = {}
        self.levels: list[_Level] = []
        self.blamed: set[int] = set()
        self.involved: set[int] = set()
        self.chosen: dict[int, int] = {}
        self.tries_left = TRIES_MIN + TRIES_PER_PAIR * sum(map(len, mapping.unsure.values()))
        self.naming = Naming(mapping)

    def _furthest_two(self, events: int) -> list[tuple[int, ...]]:
        """Return for each position, of the zones with a return before it, the two with the latest last calls."""
        begins: dict[int, int] = {zone.first_return: z for z, zone in enumerate(self.fixed)}
        best: tuple[int, ...] = ()
        furthest: list[tuple[int, ...]] = []
        for position in range(events):
            z = begins.get(position - 1)
            if z is not None:
                best = tuple(sorted((*best, z), key=lambda each: -self.fixed[each].last_call)[:2])
            furthest.append(best)
        return furthest

    def _places(self, zone: Zone) -> Iterator[tuple[int, _Place]]:
        """Yield for each value of `zone` what stands before and behind it."""
        last_call, last_called = -1, None
        before: list[tuple[int, int | None]] = []
        for value in zone.values:
            before.append((last_call, last_called))
            cluster = self.clusters[value]
            if cluster.last_call > last_call:
                last_call, last_called = cluster.last_call, cluster.last_called
        first_return, first_returning = NEVER, None
        for rank in reversed(range(len(zone.values))):
            yield zone.values[rank], _Place(rank, *before[rank], first_return, first_returning)
            cluster = self.clusters[zone.values[rank]]
            if cluster.first_return < first_return:
                first_return, first_returning = cluster.first_return, cluster.first_returning

    def root_of(self, z: int) -> int:
        """Return the zone that `z` was joined to, directly or not; itself if to none."""
        while z in self.into:
            z = self.into[z]
        return z

    def assign_component(self, reads: Sequence[int]) -> bool | None:
        """Search an assignment for `reads`, those of one component; None when that took too many tries."""
        self.naming, self.involved = Naming(self.mapping), set()
        levels = self.levels = [self._level(reads[0])]
        while True:
            level = levels[-1]
            number = next(level.untried, None)
            if number is None:
                if self._jump_back():
                    continue
                for i in filter(self.involved.__contains__, reads):
                    self.naming.add_in_chain(i)
                    # The chain of each possible write was tried for the read, so it counts how the write came there.
                    for number in self.mapping.unsure[i]:
                        self.naming.add_in_chain(self.writer.get(number))
                return False
            if self.tries_left <= 0:
                return None
            self.tries_left -= 1
            if not self._assign(level, number):
                self._blame(level)
            elif len(levels) < len(reads):
                levels.append(self._level(reads[len(levels)]))
            else:
                return True

    def _level(self, i: int) -> _Level:
        return _Level(i, iter(self.mapping.unsure[i]))

    def _blame(self, level: _Level) -> None:
        """Note the levels that made the zones to blame what they are: without a change there, the try fails again."""
        self.involved.add(level.read)
        for depth, earlier in enumerate(self.levels[:-1]):
            if self.root_of(earlier.root) in self.blamed:
                self.involved.add(earlier.read)
                level.culprits |= 1 << depth

    def _jump_back(self) -> bool:
        """Go back to the last level's latest culprit, which takes over the others; return False if it has none."""
        culprits = self.levels.pop().culprits
        if not culprits:
            return False
        target = culprits.bit_length() - 1
        for level in reversed(self.levels[target:]):
            self._take_back(level)
        del self.levels[target + 1 :]
        self.levels[target].culprits |= culprits ^ 1 << target
        return True

    def _assign(self, level: _Level, number: int) -> bool:
        """Assign the write of `number` to the read of `level`; return False when that contradicts what stands."""
        problem, i, writer = self.mapping.problem, level.read, self.writer.get(number)
        root, joined = self.root_of(self.zone_of[number]), None
        zone = self.now[root]
        if writer is not None:
            zone = _extended(zone, problem.return_at[writer], writer, problem.call_at[writer], writer)
        if problem.kind[i] == OBSERVE:
            self.blamed = {root}
            if self._is_out_of_chain(i, number):
                return False
            zone = _extended(zone, problem.return_at[i], i, problem.call_at[i], i)
        else:
            joined = self.root_of(self.zone_of[self.mapping.mapped.produce[i]])
            self.blamed = {root, joined}
            after = self.now[joined]
            if not self._may_follow(number, zone, after, is_same=root == joined):
                return False
            zone = _extended(zone, after.first_return, after.first_returning, after.last_call, after.last_called)
        if self._is_contradicted(zone, root, joined):
            return False
        level.root, level.joined, level.before = root, joined, self.now[root]
        self.now[root] = zone
        if joined is not None:
            self.into[joined] = root
            self.follower[number] = i
        self.chosen[i] = number
        return True

    def _is_out_of_chain(self, i: int, number: int) -> bool:
        """Return whether the read `i` of `number` contradicts what stands before or behind that in its chain."""
        problem, place = self.mapping.problem, self.places.get(number)
        if place is None:
            return False
        call_at, return_at = problem.call_at[i], problem.return_at[i]
        for is_against, named in (
            (return_at < place.last_call, place.last_called),
            (place.first_return < call_at, place.first_returning),
        ):
            if is_against:
                self.naming.add_in_chain(named)
                return True
        return any(
            return_at < problem.call_at[j] if rank < place.rank else problem.return_at[j] < call_at
            for j, rank in self._ranks_in_zone(self.zone_of[number])
            if rank != place.rank
        )

    def _ranks_in_zone(self, z: int) -> Iterable[tuple[int, int]]:
        """Return the reads assigned to values of the fixed zone `z`, with the ranks of these."""
        if len(self.fixed[z].values) == 1:
            return ()
        chosen = [(j, number) for j, number in self.chosen.items() if self.zone_of[number] == z]
        return [(j, self.places[number].rank) for j, number in chosen if self.mapping.problem.kind[j] == OBSERVE]

    def _may_follow(self, number: int, zone: Zone, after: Zone, *, is_same: bool) -> bool:
        """Return whether the zone `after` may follow the value `number`, at the end of `zone`; else name why not."""
        cluster = self.clusters.get(number)
        follower = cluster.follower if cluster is not None else None
        if follower is not None:
            self.naming.add_in_chain(follower)
        if follower is not None or number in self.follower:
            return False
        if is_same or after.first_return < zone.last_call:
            for i in (self.writer.get(number), after.first_returning, zone.last_called):
                self.naming.add_in_chain(i)
            return False
        return True

    def _is_contradicted(self, zone: Zone, root: int, joined: int | None) -> bool:
        """Return whether `zone`, made of `root` and `joined`, contradicts another one; name the ends of both."""
        other: Zone | None = None
        furthest = self.latest[zone.last_call] if zone.last_call >= 0 else ()
        # Both may be parts of this zone when more than two were joined: then the zones find the contradiction at last.
        z = next((z for z in furthest if self.root_of(z) not in (root, joined)), None)
        if z is not None and self.fixed[z].last_call > zone.first_return:
            other = self.fixed[z]
        for level in reversed(self.levels[:-1] if other is None else ()):
            z = level.root
            if z not in (root, joined) and z not in self.into and _contradict(self.now[z], zone):
                other = self.now[z]
                self.blamed.add(z)
                break
        if other is None:
            return False
        for i in (zone.first_returning, zone.last_called, other.first_returning, other.last_called):
            self.naming.add_in_chain(i)
        return True

    def _take_back(self, level: _Level) -> None:
        assert level.before is not None
        self.now[level.root] = level.before
        number = self.chosen.pop(level.read)
        if level.joined is not None:
            del self.into[level.joined], self.follower[number]

    def components(self) -> list[list[int]]:
        """Return the unsure reads that are not idle by component, each in order of call."""
        parent = list(range(len(self.fixed)))

        def root_of(z: int) -> int:
            while parent[z] != z:
                parent[z] = z = parent[parent[z]]
            return z

        reads = [i for i in self.mapping.unsure if i not in self.idle]
        zones_of = {i: self._zones_of(i) for i in reads}
        for zones in zones_of.values():
            for z in zones:
                parent[root_of(z)] = root_of(zones[0])
        span: dict[int, tuple[int, int]] = {}
        for i in reads:
            root = root_of(zones_of[i][0])
            positions = self._positions(i, zones_of[i])
            if root in span:
                positions += span[root]
            span[root] = (min(positions), max(positions))
        before, reached = None, -1
        for low, high, z in sorted((low, high, z) for z, (low, high) in span.items()):
            if before is not None and low < reached:
                parent[z] = before
            else:
                before = z
            reached = max(reached, high)
        by_root: dict[int, list[int]] = {}
        for i in reads:
            by_root.setdefault(root_of(zones_of[i][0]), []).append(i)
        return [by_root[z] for z in sorted(by_root)]

    def _zones_of(self, i: int) -> list[int]:
        """Return the zones that the read `i` may touch."""
        zones = [self.zone_of[number] for number in self.mapping.unsure[i]]
        if self.mapping.problem.kind[i] == SWAP:
            zones.append(self.zone_of[self.mapping.mapped.produce[i]])
        return zones

    def _positions(self, i: int, zones: list[int]) -> list[int]:
        """Return all calls and returns by which the zones of the read `i` may reach as far as they do."""
        problem = self.mapping.problem
        positions = [position for z in zones for position in (self.fixed[z].first_return, self.fixed[z].last_call)]
        writers = [self.writer[number] for number in self.mapping.unsure[i] if number in self.writer]
        for operation in (i, *writers):
            positions += (problem.call_at[operation], problem.return_at[operation])
        return [position for position in positions if position != NEVER]


def _extended(
    zone: Zone, first_return: int, first_returning: int | None, last_call: int, last_called: int | None
) -> Zone:
    if first_return < zone.first_return:
        zone = zone._replace(first_return=first_return, first_returning=first_returning)
    if last_call > zone.last_call:
        zone = zone._replace(last_call=last_call, last_called=last_called)
    return zone


def _contradict(a: Zone, b: Zone) -> bool:
    """Return whether each of two zones must come before the other."""
    return a.first_return < b.last_call and b.first_return < a.last_call


def assign_all(mapping: Mapping, clusters: dict[int, Cluster], zones: list[Zone]) -> bool:
    """Assign a write to every unsure read of `mapping`, which constrains what is mapped then; return if it succeeded.

    Raises Contradiction when one component has no assignment.
    """
    assignment = _Assignment(mapping, clusters, zones)
    is_decided = True
    for reads in assignment.components():
        found = assignment.assign_component(reads)
        if found is False:
            raise Contradiction(*assignment.naming.named)
        is_decided = is_decided and found is not None
    if is_decided:
        problem, mapped = mapping.problem, mapping.mapped
        for i in mapping.unsure:
            # A pending compare-and-set that no sure read saw did not happen here. If a read was assigned to it after
            # all, the zones refuse the assignment, for want of what it demanded.
            mapped.kind[i] = problem.kind[i]
            mapped.demand[i] = assignment.chosen.get(i, mapping.not_put)
    return is_decided
