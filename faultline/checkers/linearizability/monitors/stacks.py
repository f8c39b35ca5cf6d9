"""A monitor for stacks onto which every value is pushed once.

Some value lies at the bottom: when it is pushed, and when it is popped, no other value need be on the stack. A value
with two such moments can be taken out of the history, and what remains is linearizable exactly when the whole is (Lee &
Mathur, OOPSLA 2025, section on stacks; Abdulla et al., PLDI 2025, peel in the same way). So values are peeled off until
none is left (linearizable) or none can be (not linearizable, and those that are left show it).

A value is certainly on the stack after its push returned and before its pop is called. How many values are, is counted
for every moment at which something begins or ends; no other moment is ever needed. Many values are peeled at once while
that pays, with one pass over all moments (numpy); after that one by one, each taking its interval off the counts and
waking the values around the moments that became free.

The linearization comes with the peeling. A value is pushed at the last free moment its push allows and popped at the
first its pop allows; at the same moment pops come before pushes, and of what was peeled later, pops come first and
pushes last. So what is peeled later always ends up inside, or beside, what was peeled before.

Limits: a value that is peeled alone costs the length of its interval, so n values that are all nested in each other
cost n^2, at numpy's speed: 10^5 of them some seconds. Pops whose answer was not seen: see `lifetimes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.linearizability.minimise import minimise
from faultline.checkers.linearizability.monitors.lifetimes import (
    NEVER,
    Container,
    Lifetime,
    Lifetimes,
    empty_moments,
    read_container,
    stretched,
    with_guessed_removals,
)
from faultline.checkers.linearizability.monitors.native_containers import arrange_natively
from faultline.checkers.porcupine.model import Operation

if TYPE_CHECKING:
    import numpy as np

__all__ = ["monitor_stack"]

CORE_CHECKS_MAX = 600
"""The most times that a part of an illegal history is judged while its core is looked for."""

PAYING_SHARE = 64
"""Values are peeled all at once as long as a round takes more than one in so many."""


def monitor_stack(operations: Sequence[Operation[Call, Any]]) -> Decision:
    """Decide a history of push and pop. Needs hashable values, each pushed once."""
    container = read_container(operations, "push")
    if isinstance(container, Decision):
        return container
    decided = _decide(container.lifetimes, container, operations)
    if decided.is_legal or not container.unanswered:
        return decided
    at_best = _decide(stretched(container, operations), container, operations)
    if at_best.is_illegal:
        return at_best
    guessed = _decide(with_guessed_removals(container, operations, newest_first=True), container, operations)
    if guessed.is_legal:
        return guessed
    return hand_over("which values the pops without an answer took has to be searched")


def _decide(lifetimes: Lifetimes, container: Container, operations: Sequence[Operation[Call, Any]]) -> Decision:
    moments = empty_moments(lifetimes, operations, container.empties)
    if isinstance(moments, tuple):
        empty, inside = moments
        return illegal(
            [empty, *_positions(inside, container, operations)],
            "a pop found nothing although something was on the stack all the time",
            Contradiction("never empty", (empty, *(lifetime.put for lifetime in inside))),
        )
    stuck, order = _peeled(lifetimes, container, operations, moments)
    if stuck:
        core = _core(stuck, container, operations)
        values = ", ".join(repr(operations[lifetime.put].input[1]) for lifetime in core[:4])
        reason = f"no order of pushes and pops is that of a stack, among the {len(core)} values {values}"
        contradiction = Contradiction("no bottom", tuple(lifetime.put for lifetime in core))
        return illegal(_positions(core, container, operations), reason, contradiction)
    return legal(order)


def _peeled(
    lifetimes: Lifetimes,
    container: Container,
    operations: Sequence[Operation[Call, Any]],
    moments: Mapping[int, float],
) -> tuple[list[Lifetime], list[int]]:
    """Return the values that cannot be peeled, and, when there are none, an order of the operations."""
    natively = arrange_natively(lifetimes, container, operations, moments, is_stack=True)
    if natively is not None:
        return natively[1], natively[0]
    stuck, cuts = _peel(lifetimes, container.end)
    cuts += [_Cut(moment, 0, operations[position].call, position) for position, moment in moments.items()]
    return stuck, [cut.position for cut in sorted(cuts) if cut.position != NEVER]


def _positions(
    lifetimes: Sequence[Lifetime], container: Container, operations: Sequence[Operation[Call, Any]]
) -> list[int]:
    """Return the operations of `lifetimes`, and as many unanswered removals as may have taken one of them."""
    stayed = sum(lifetime.take == NEVER for lifetime in lifetimes)
    optional = sorted(container.unanswered, key=lambda position: operations[position].call)[:stayed]
    return [*(position for lifetime in lifetimes for position in lifetime.operations()), *optional]


def _core(
    stuck: Sequence[Lifetime], container: Container, operations: Sequence[Operation[Call, Any]]
) -> list[Lifetime]:
    """Return few of the stuck values of which none can be peeled either."""

    def is_stuck(some: Sequence[Lifetime]) -> bool:
        return bool(_peeled(Lifetimes.of(some), container, operations, {})[0])

    found, _ = minimise(stuck, is_stuck, lambda _value, _all: [None], CORE_CHECKS_MAX)
    return found


class _Cut(NamedTuple):
    """An operation placed at a moment; `tie` and `call` order what shares it: pops, empty pops, pushes."""

    moment: float
    tie: int
    call: float
    position: int


def _peel(lifetimes: Lifetimes, end: float) -> tuple[list[Lifetime], list[_Cut]]:
    """Return the values that cannot be peeled, and the places of the operations of those that can."""
    import numpy as np

    # A value that can come out at the moment it goes in is on the stack at no moment that another one needs.
    nested = [lifetime for lifetime in lifetimes if lifetime.put_return < lifetime.take_call]
    times = np.array([lifetime[:4] for lifetime in nested], dtype=float).reshape(-1, 4)
    times = np.minimum(times, [[end, end, end + 1, end + 1]])
    moments, index = np.unique(times, return_inverse=True)
    peeling = _Peeling(index.reshape(-1, 4), len(moments))
    peeling.run()
    stuck = [nested[number] for number in np.flatnonzero(peeling.alive).tolist()]
    cuts: list[_Cut] = []
    for tie, (value, put, take) in enumerate(peeling.peeled, start=1):
        cuts.append(_Cut(float(moments[put]), tie, 0, nested[value].put))
        cuts.append(_Cut(float(moments[take]), -tie, 0, nested[value].take))
    tie = len(cuts) + 1
    for lifetime in lifetimes:
        if lifetime.put_return >= lifetime.take_call:
            moment, tie = max(lifetime.put_call, lifetime.take_call), tie + 2
            cuts += [_Cut(moment, tie, 0, lifetime.put), _Cut(moment, tie + 1, 0, lifetime.take)]
    return stuck, cuts


class _Peeling:
    """The peeling of values that have a time inside; `times` holds, for each, four indexes into all moments.

    `peeled` lists, in order, the values with the moments at which they are pushed and popped.
    """

    def __init__(self, times: np.ndarray[Any, Any], moments: int) -> None:
        import numpy as np

        self.times, self.size = times, moments
        self.alive = np.ones(len(times), dtype=bool)
        self.peeled: list[tuple[int, int, int]] = []
        change = np.zeros(moments + 1, dtype=np.int64)
        np.add.at(change, times[:, 1] + 1, 1)
        np.add.at(change, times[:, 2], -1)
        self.cover = np.cumsum(change)[:moments]

    def run(self) -> None:
        """Peel until nothing can be peeled any more."""
        left = len(self.times)
        while left:
            peeled = self._round()
            left -= peeled
            if peeled * PAYING_SHARE < left:
                # A round costs a pass over all moments, whatever it peels; one that peels nothing is the last.
                return self._one_by_one() if peeled else None
        return None

    def _round(self) -> int:
        """Peel every value that can be peeled now; return how many were."""
        import numpy as np

        # A value may be pushed at the last moment of its push at which nothing is certainly on the stack, and popped at
        # the first such moment of its pop. Values peeled in one round do not get in each other's way.
        alive = np.flatnonzero(self.alive)
        put_call, put_return, take_call, take_return = self.times[alive].T
        moments = np.arange(self.size)
        last_free = np.maximum.accumulate(np.where(self.cover == 0, moments, -1))[put_return]
        next_free = np.where(self.cover == 0, moments, self.size)
        next_free = np.minimum.accumulate(next_free[::-1])[::-1][take_call]
        chosen = (last_free >= put_call) & (next_free <= take_return)
        peeled = alive[chosen]
        self.alive[peeled] = False
        self.peeled += zip(peeled.tolist(), last_free[chosen].tolist(), next_free[chosen].tolist())
        change = np.zeros(self.size + 1, dtype=np.int64)
        np.add.at(change, self.times[peeled, 1] + 1, -1)
        np.add.at(change, self.times[peeled, 2], 1)
        self.cover += np.cumsum(change)[: self.size]
        return len(peeled)

    def _one_by_one(self) -> None:
        """Peel a value, see which moments became free, and look again at the values around them."""
        import numpy as np

        neighbours = _Neighbours(self.times)
        todo = np.flatnonzero(self.alive).tolist()
        while todo:
            value = todo.pop()
            if not self.alive[value] or not self._peel_one(value):
                continue
            begin, end = self.times[value, 1] + 1, self.times[value, 2]
            self.cover[begin:end] -= 1
            freed = begin + np.flatnonzero(self.cover[begin:end] == 0)
            for run in np.split(freed, np.flatnonzero(np.diff(freed) > 1) + 1) if len(freed) else ():
                todo += neighbours.around(int(run[0]), int(run[-1]))

    def _peel_one(self, value: int) -> bool:
        import numpy as np

        put_call, put_return, take_call, take_return = self.times[value].tolist()
        puts = np.flatnonzero(self.cover[put_call : put_return + 1] == 0)
        takes = np.flatnonzero(self.cover[take_call : take_return + 1] == 0)
        if not len(puts) or not len(takes):
            return False
        self.alive[value] = False
        self.peeled.append((value, put_call + int(puts[-1]), take_call + int(takes[0])))
        return True


class _Neighbours:
    """The values by the moments at which their operations were open.

    They are searched by call, no further back than the longest operation lasts.
    """

    def __init__(self, times: np.ndarray[Any, Any]) -> None:
        import numpy as np

        calls, returns = times[:, (0, 2)].ravel(), times[:, (1, 3)].ravel()
        self._order = np.argsort(calls, kind="stable")
        self._calls, self._returns = calls[self._order], returns[self._order]
        self._longest = int((returns - calls).max(initial=0))

    def around(self, first: int, last: int) -> list[int]:
        """Return the values with an operation that overlaps the moments from `first` to `last`."""
        begin, end = self._calls.searchsorted((first - self._longest, last + 1)).tolist()
        open_ = self._returns[begin:end] >= first
        return list(dict.fromkeys((self._order[begin:end][open_] >> 1).tolist()))
