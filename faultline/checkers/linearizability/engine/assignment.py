"""Assigning to each unsure read one of its possible writes, so that the zones do not contradict each other.

Two zones contradict each other exactly when each must come before the other: `first_return(A) < last_call(B)` and
`first_return(B) < last_call(A)`. A read that is added to a zone can only make its first return earlier and its last
call later. So a contradiction stays one whatever is assigned later, and zones contradict already if they do without any
unsure read. The question is a constraint satisfaction problem whose constraints bind two zones each. It is searched by
backtracking, which three properties keep small:

- A zone is tried against all fixed ones in constant time: of those with a return before its last call, the one with the
  latest last call contradicts it if any does. Two are kept, since one of them may be the zone itself.
- Zones without a common read interact only where they overlap. They are joined into *components* by their common reads,
  and then where the intervals overlap that they span with all reads they may ever get. A component has an assignment or
  has none whatever the others do, so that choices in one are never taken back for another.
- A component without an assignment refutes the history. The core is all that contradicted, with its grounds.

An unsure compare-and-set joins its zone, of which it is the head, to the end of the one that it followed. Where a read
is assigned to a value in the middle of a chain, or a pending compare-and-set is brought about, the search looks at less
than the zones do. The zones judge the whole assignment once more, and the slot search decides what they then refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from faultline.checkers.linearizability.engine.problem import NEVER
from faultline.checkers.linearizability.engine.read_mapping import Mapping, Naming
from faultline.checkers.linearizability.engine.zones import Cluster, Contradiction, Zone
from faultline.checkers.linearizability.operations import OBSERVE, SWAP, WRITE

__all__ = ["assign_all"]

TRIES_PER_COMPONENT, TRIES_PER_PAIR = 4096, 4
"""How often a write is tried for a read, in one component and in all; the kernel has the same numbers."""


class _Level(NamedTuple):
    """An assignment that may be taken back: the zone the read was added to as it was, and the one that was joined."""

    root: int
    joined: int | None
    before: Zone


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
        # A pending write that no sure read saw has no zone yet; it gets one when a read is assigned to it.
        for number in (number for possible in mapping.unsure.values() for number in possible):
            if number not in self.zone_of:
                self.zone_of[number] = len(self.fixed)
                self.fixed.append(Zone([number], NEVER, None, -1, None))
        self.now = self.fixed[:]
        self.into: dict[int, int] = {}
        self.follower: dict[int, int] = {}
        self.touched: list[int] = []
        self.chosen: dict[int, int] = {}
        self.tries_left = TRIES_PER_COMPONENT + TRIES_PER_PAIR * sum(map(len, mapping.unsure.values()))
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

    def root_of(self, z: int) -> int:
        """Return the zone that `z` was joined to, directly or not; itself if to none."""
        while z in self.into:
            z = self.into[z]
        return z

    def assign_component(self, reads: Sequence[int]) -> bool | None:
        """Search an assignment for `reads`, those of one component; None when that took too many tries."""
        self.naming, self.touched = Naming(self.mapping), []
        levels: list[_Level] = []
        choices = [iter(self.mapping.unsure[reads[0]])]
        tries = 0
        while choices:
            number = next(choices[-1], None)
            if number is None:
                choices.pop()
                if levels:
                    self._take_back(reads[len(levels) - 1], levels.pop())
                continue
            if tries == TRIES_PER_COMPONENT or self.tries_left <= 0:
                return None
            tries, self.tries_left = tries + 1, self.tries_left - 1
            level = self._assign(reads[len(levels)], number)
            if level is None:
                continue
            levels.append(level)
            if len(levels) == len(reads):
                return True
            choices.append(iter(self.mapping.unsure[reads[len(levels)]]))
        for i in reads:
            self.naming.add_read(i)
        return False

    def _assign(self, i: int, number: int) -> _Level | None:
        """Assign the write of `number` to the read `i`; None when that contradicts what stands."""
        problem, writer = self.mapping.problem, self.writer.get(number)
        root, joined = self.root_of(self.zone_of[number]), None
        zone = self.now[root]
        if writer is not None:
            zone = _extended(zone, problem.return_at[writer], writer, problem.call_at[writer], writer)
        if problem.kind[i] == OBSERVE:
            zone = _extended(zone, problem.return_at[i], i, problem.call_at[i], i)
        else:
            joined = self.root_of(self.zone_of[self.mapping.mapped.produce[i]])
            after = self.now[joined]
            if not self._may_follow(number, zone, after, is_same=root == joined):
                return None
            zone = _extended(zone, after.first_return, after.first_returning, after.last_call, after.last_called)
        if self._is_contradicted(zone, root, joined):
            return None
        level = _Level(root, joined, self.now[root])
        self.now[root] = zone
        self.touched.append(root)
        if joined is not None:
            self.into[joined] = root
            self.follower[number] = i
        self.chosen[i] = number
        return level

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
        for z in self.touched if other is None else ():
            if z not in (root, joined) and z not in self.into and _contradict(self.now[z], zone):
                other = self.now[z]
                break
        if other is None:
            return False
        for i in (zone.first_returning, zone.last_called, other.first_returning, other.last_called):
            self.naming.add_in_chain(i)
        return True

    def _take_back(self, i: int, level: _Level) -> None:
        self.now[level.root] = level.before
        self.touched.pop()
        number = self.chosen.pop(i)
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
