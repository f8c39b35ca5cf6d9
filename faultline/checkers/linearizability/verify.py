"""Verifying configurations: one pass over a set, no search.

This module is what a verdict rests on, so it is short and plain, and knows nothing of the engines. A set of
configurations is looked at member by member: all that may come next must lead to members again. `value_rules` adds what
registers and strings are, of which `native/verify.c` is the fast twin, and `model_rules` the same for any model.

"May come next" is narrowed by rules. Say that a configuration can be *completed in n steps* when n more operations,
linearized in some order that respects real time, bring it behind the last return. Each rule keeps this: of a
configuration that can be completed in n steps, what remains under the rule can be completed in n steps or fewer. Every
step linearizes one operation more, so the n of a set that is closed would fall for ever; hence none of its members can
be completed, and as the beginning is among them, the history has no linearization.

R1  *A still operation, open and legal, that leaves the state as it is, is linearized at once.* Take it from its later
    place in a completion and put it in front: all others stay legal, and its call has passed. Operations that only
    observe are still in every state. Of others that is a guess, and R7 says where it must hold.
R2  *Of equal open operations the first to return is tried.* Equal ones demand and put the same, so in a completion
    that begins with the other, exchange the two: at the later place the other one is still before its return, because
    the first one was. Pending operations that are equal form a group, used in order of call, for the same reason.
R3  *A configuration is dominated by one with the same rank, state and operations ahead that used no more of any group.*
    What completes the first completes the second: a pending operation may stay unused, and where one of a group was
    called, those called before it were too. So a pending operation that changes nothing is not used.

R4 to R6 are those of `value_rules`, R7 is that of `model_rules`.

(Inductive invariants are the usual proof that a state cannot be reached; Lowe 2017 and Lee & Mathur, OOPSLA 2025,
describe configurations.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from faultline.checkers.linearizability.certificates import Configuration

__all__ = ["Available", "Groups", "Place", "Rules", "Timeline", "fault_of_set"]

Groups = tuple[tuple[int, int], ...]
"""Groups of pending operations with the number of members that were used, in order of group."""

Available = Sequence[tuple[int, int]]
"""Groups with a member that was called by now and is not used, with the first such member."""


class Place(NamedTuple):
    """A configuration for the rules: `used` counts by group."""

    rank: int
    state: int
    ahead: frozenset[int]
    used: Groups


class Timeline(Protocol):
    """The calls and returns of the operations; `by_return` leaves pending ones out."""

    @property
    def call_at(self) -> Sequence[float]: ...
    @property
    def return_at(self) -> Sequence[float]: ...
    @property
    def by_call(self) -> Sequence[int]: ...
    @property
    def by_return(self) -> Sequence[int]: ...


class Rules(ABC):
    """The rules for what may come next on one key, but for what its operations do to which state.

    `windows` has for each rank the completed operations open at that return, in order of return; `still_windows` those
    of them that are in `still`, and `still_opening` those of these that were called since the return before. `members`
    are the groups of pending operations, each in order of call.
    """

    def __init__(self, times: Timeline, initial: int, still: Collection[int]) -> None:
        self.initial, self.still = initial, still
        self.by_return, self.call_at, self.return_at = times.by_return, times.call_at, times.return_at
        opening, self.windows = self._windows(times.by_call)
        self.still_opening, self.still_windows = (
            [[i for i in operations if i in still] for operations in by_rank] for by_rank in (opening, self.windows)
        )
        self.group_of, self.members = self._groups(times.by_call)

    @abstractmethod
    def after(self, i: int, state: int, rank: int) -> int | None:
        """Return the state that `i` leads to from `state`; None when it is illegal there."""

    @abstractmethod
    def kind_of(self, i: int, after: int | None = None) -> Hashable:
        """Return what `i` has in common with the operations equal to it (R2), in all states or where it leads to
        `after`."""

    def seen_as(self, state: int, rank: int) -> int:
        """Return the state that stands from `rank` on for all that operations cannot tell from `state`."""
        return state

    def is_supplied(self, place: Place, waiting: Sequence[int], available: Available) -> bool:
        """Return whether what returns next is legal, or may become so."""
        return True

    def wanted(self, waiting: Sequence[int], available: Available) -> Callable[[int], bool]:
        """Return the test of the states to which a pending operation may lead."""
        return lambda _after: True

    def broken_in(self, place: Place) -> Collection[int]:
        """Return the operations that are taken for still, and are not where that matters."""
        return ()

    def _windows(self, by_call: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """Return for each rank the completed operations called since the return before, and all that are open."""
        rank_of = {i: rank for rank, i in enumerate(self.by_return)}
        called, position = [i for i in by_call if i in rank_of], 0
        opening: list[list[int]] = []
        windows: list[list[int]] = []
        for next_one in self.by_return:
            begin = position
            while position < len(called) and self.call_at[called[position]] <= self.return_at[next_one]:
                position += 1
            opening.append(called[begin:position])
            before = windows[-1][1:] if windows else []
            windows.append(sorted([*before, *opening[-1]], key=rank_of.__getitem__))
        return opening, windows

    def _groups(self, by_call: Sequence[int]) -> tuple[dict[int, int], list[list[int]]]:
        """Return the group of each pending operation, in order of call, and the members of each group."""
        completed, known, members = set(self.by_return), dict[Hashable, int](), list[list[int]]()
        group_of: dict[int, int] = {}
        for i in by_call:
            if i not in completed:
                group_of[i] = group = known.setdefault(self.kind_of(i), len(members))
                if group == len(members):
                    members.append([])
                members[group].append(i)
        return group_of, members

    def beginning(self) -> Place | None:
        """Return where every execution begins; None when that is the end as well."""
        return self._settled(0, self.initial, set(), ()) if self.windows else None

    def _settled(self, rank: int, state: int, ahead: set[int], used: Groups) -> Place | None:
        """Return the configuration once R1 was applied to it; None behind the last return."""
        fresh = self.still_windows[rank]
        while True:
            state = self.seen_as(state, rank)
            ahead.update([i for i in fresh if self.after(i, state, rank) == state])
            if self.by_return[rank] not in ahead:
                return Place(rank, state, frozenset(ahead), used)
            ahead.remove(self.by_return[rank])
            rank += 1
            if rank == len(self.by_return):
                return None
            # No other open operation becomes legal by a return, because the state stays.
            fresh = self.still_opening[rank]

    def steps(self, place: Place) -> Iterator[Place | None]:
        """Yield where each operation that may come next leads; None is the end."""
        rank, state, ahead, used = place
        waiting = [i for i in self.windows[rank] if i not in ahead]
        available = self._available(place)
        if not self.is_supplied(place, waiting, available):
            return
        tried: set[Hashable] = set()
        for i in waiting:
            after = self.after(i, state, rank)
            if after is not None and (kind := self.kind_of(i, after)) not in tried:
                tried.add(kind)
                yield self._settled(rank, after, {*ahead, i}, used)
        is_wanted = self.wanted(waiting, available) if available else None
        for group, i in available:
            after = self.after(i, state, rank)
            if after is not None and after != state and is_wanted is not None and is_wanted(after):
                yield self._settled(rank, after, set(ahead), _one_more(used, group))

    def _available(self, place: Place) -> Available:
        now, used = self.return_at[self.by_return[place.rank]], dict(place.used)
        found: list[tuple[int, int]] = []
        for group, members in enumerate(self.members):
            count = used.get(group, 0)
            if count < len(members) and self.call_at[members[count]] <= now:
                found.append((group, members[count]))
        return found

    def place(self, member: Configuration) -> Place | None:
        """Return `member`; None when it is no configuration, or not one to which R1 was applied."""
        rank, state, ahead, used = member
        if not 0 <= rank < len(self.windows) or len(set(used)) < len(used) or any(i not in self.group_of for i in used):
            return None
        placed, counts = set(ahead), Groups()
        if len(placed) < len(ahead) or not placed.issubset(self.windows[rank]):
            return None
        for i in used:
            counts = _one_more(counts, self.group_of[i])
        place = Place(rank, state, frozenset(placed), counts)
        return place if self._settled(rank, state, placed, counts) == place else None


def _one_more(used: Groups, group: int) -> Groups:
    counts = dict(used)
    counts[group] = counts.get(group, 0) + 1
    return tuple(sorted(counts.items()))


def fault_of_set(rules: Rules, members: Iterable[Configuration], hopeless: Collection[int] = ()) -> str:
    """Return why `members` do not refute the operations of `rules`, in words; nothing when they do.

    Nothing is looked at that may follow those numbered in `hopeless`.
    """
    known: dict[tuple[int, int, frozenset[int]], list[Groups]] = {}
    places: list[Place] = []
    for k, member in enumerate(members):
        place = rules.place(member)
        if place is None:
            return f"member {k} of its set is no configuration of these operations"
        places.append(place)
        known.setdefault(place[:3], []).append(place.used)
    if not _holds(known, rules.beginning()):
        return "its set does not hold the beginning"
    for k, place in enumerate(places):
        if rules.broken_in(place):
            return f"an operation that it calls still moves the state in member {k} of its set"
        if k not in hopeless and not all(_holds(known, after) for after in rules.steps(place)):
            return f"a step leads from member {k} of its set out of the set"
    return ""


def _holds(known: dict[tuple[int, int, frozenset[int]], list[Groups]], place: Place | None) -> bool:
    """Return whether a member dominates `place` (R3); the end is dominated by none."""
    if place is None:
        return False
    used = dict(place.used)
    return any(all(count <= used.get(group, 0) for group, count in before) for before in known.get(place[:3], ()))
