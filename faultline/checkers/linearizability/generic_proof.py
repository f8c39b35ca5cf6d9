"""The proof that a part has no linearization: a set of configurations that no order of operations leaves.

A configuration is the rank of the next operation that must return, the operations linearized *ahead* of their return,
the state, and the pending operations used up. A set of them refutes a part when it covers the beginning and, with each
of its configurations, all that can follow; no configuration is complete, so no order is. One configuration stands for
many, by these rules:

- of equal open operations the one that returns first is linearized first, of equal pending ones the one called first:
  two such can be exchanged in any order;
- a pending operation that changes nothing is not used; and a configuration with fewer pending operations used up
  covers the same one with more, since it can go on in every way that the other can;
- *still* operations are linearized as soon as they are legal. An order may have left one for later, and be in the same
  state; it has then done nothing that was called after the return of the one it left. So the class of an operation that
  is done here, and returned after all those calls, must be illegal here or leave the state as it is: then the order
  that places it later goes on as the one that placed it at once.

`refutes` is plain on purpose, and shares with the searches only the model's steps. It takes one pass: for each
configuration a look at the operations that are open in it.

(Inductive invariants are the usual proof that a state cannot be reached; Lowe 2017 and Lee & Mathur, OOPSLA 2025,
describe configurations.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.generic_tables import ILLEGAL
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["Refutation", "broken_guesses", "derivation", "refutes"]

NextState = Callable[[int, int], int]
"""The number of the state that a class leads to from a state, or ILLEGAL."""


class _Place(NamedTuple):
    """A configuration with its positions as sets."""

    rank: int
    ahead: frozenset[int]
    used: frozenset[int]
    state: int
    is_hopeless: bool


class Refutation(NamedTuple):
    """The operations with their classes, and the configurations that are said to refute them.

    `next_state` is the model on numbers, `initial` the first state, and `still` the classes that are linearized as soon
    as they are legal. `hopeless` numbers the configurations in which the hook `can_reach` promises that an operation
    which must be linearized will never be legal, so nothing that follows was looked at.
    """

    operations: Sequence[Operation[Any, Any]]
    class_of: Sequence[int]
    next_state: NextState
    initial: int
    still: Collection[int]
    configurations: Sequence[Configuration]
    hopeless: Collection[int] = ()


def refutes(refutation: Refutation) -> bool:
    """Return whether the configurations prove that there is no linearization.

    Configurations that this history cannot have prove nothing. A hopeless one is taken at its word.
    """
    return _Proof(refutation).holds()


def derivation(refutation: Refutation) -> list[tuple[int, int, int]]:
    """Return how the states of the configurations come about: each as the state before, an operation, the state.

    A configuration is reached from one of an earlier return, or with fewer operations ahead and used.
    """
    return _Proof(refutation).derivation()


def broken_guesses(refutation: Refutation) -> set[int]:
    """Return the classes of `still` that change a state where one of them may have been left for later."""
    return _Proof(refutation).broken_guesses()


class _Proof:
    """One check of a refutation."""

    def __init__(self, refutation: Refutation) -> None:
        self._operations, self._class_of = refutation.operations, refutation.class_of
        self._next_state, self._initial, self._still = refutation.next_state, refutation.initial, refutation.still
        self._configurations = [
            _Place(rank, frozenset(ahead), frozenset(used), state, number in refutation.hopeless)
            for number, (rank, state, ahead, used) in enumerate(refutation.configurations)
        ]
        positions = range(len(self._operations))
        returned = [position for position in positions if self._operations[position].return_ != PENDING]
        self._by_return = sorted(returned, key=lambda position: self._operations[position].return_)
        self._open = list(self._opened())
        calls = sorted(positions, key=lambda position: self._operations[position].call)
        self._pending = [position for position in calls if self._operations[position].return_ == PENDING]
        self._used: dict[tuple[int, frozenset[int], int], list[frozenset[int]]] = {}
        for each in self._configurations:
            self._used.setdefault((each.rank, each.ahead, each.state), []).append(each.used)

    def _opened(self) -> Iterable[list[int]]:
        """Yield, for each rank, the completed operations that are open then, in order of return."""
        rank_of = {position: rank for rank, position in enumerate(self._by_return)}
        calls = sorted(self._by_return, key=lambda position: self._operations[position].call, reverse=True)
        open_: list[int] = []
        for position in self._by_return:
            while calls and self._operations[calls[-1]].call <= self._operations[position].return_:
                open_.append(calls.pop())
            open_.sort(key=rank_of.__getitem__)
            yield list(open_)
            open_.remove(position)

    def holds(self) -> bool:
        """Return whether the beginning is covered, and with every configuration all that can follow."""
        if not all(map(self._is_possible, self._configurations)):
            return False
        start = self._is_covered(0, frozenset(), frozenset(), self._initial)
        return start and all(map(self._is_closed, self._configurations))

    def _is_possible(self, here: _Place) -> bool:
        """Return whether `here` is a configuration of these operations."""
        if not 0 <= here.rank < len(self._by_return):
            return False
        next_one = self._by_return[here.rank]
        if next_one in here.ahead or not here.ahead.issubset(self._open[here.rank]):
            return False
        used, end = [self._operations[i] for i in here.used], self._operations[next_one].return_
        return all(each.return_ == PENDING and each.call <= end for each in used)

    def derivation(self) -> list[tuple[int, int, int]]:
        """Return the steps that lead to new states, in an order in which each begins at a known one."""
        known, steps = {self._initial}, list[tuple[int, int, int]]()
        for here in sorted(self._configurations, key=lambda here: (here.rank, len(here.ahead) + len(here.used))):
            for position in (*self._open[here.rank], *self._pending) if here.state in known else ():
                reached = self._next_state(here.state, self._class_of[position])
                if reached != ILLEGAL and reached not in known:
                    known.add(reached)
                    steps.append((here.state, position, reached))
        return steps

    def broken_guesses(self) -> set[int]:
        """Return the classes that are not still."""
        return set().union(*map(self._broken_in, self._configurations))

    def _broken_in(self, here: _Place) -> set[int]:
        classes = {self._class_of[position] for position in self._delayed(here)}
        return {each for each in classes if self._next_state(here.state, each) not in (ILLEGAL, here.state)}

    def _delayed(self, here: _Place) -> Iterable[int]:
        """Yield the still operations done here that some order may have left for later."""
        movers = [position for position in here.ahead if self._class_of[position] not in self._still]
        yield from here.ahead.difference(movers)
        calls = [self._needed_call(here, position) for position in movers]
        latest = max([*calls, *(self._operations[position].call for position in here.used)], default=-math.inf)
        rank = here.rank - 1
        if not movers and not here.used:
            # Nothing but what was open when the last one that moved the state returned can have come before that.
            while rank >= 0 and self._class_of[self._by_return[rank]] in self._still:
                rank -= 1
            if rank < 0:
                return
            passed = set(self._by_return[rank + 1 : here.rank])
            yield from (position for position in self._open[rank] if position in passed)
        while rank >= 0 and self._operations[self._by_return[rank]].return_ >= latest:
            position = self._by_return[rank]
            if self._class_of[position] in self._still:
                yield position
            else:
                latest = max(latest, self._needed_call(here, position))
            rank -= 1

    def _needed_call(self, here: _Place, position: int) -> float:
        """Return the earliest call that an order may have needed for it: its own, or that of one exchanged with it."""
        twins = [each for each in self._open[here.rank] if each not in here.ahead]
        calls = [self._operations[each].call for each in twins if self._class_of[each] == self._class_of[position]]
        return min([self._operations[position].call, *calls])

    def _is_closed(self, here: _Place) -> bool:
        """Return whether all that can follow `here` is covered, and what is called still is still."""
        if self._broken_in(here):
            return False
        return here.is_hopeless or all(self._is_covered(*following) for following in self._following(here))

    def _following(self, here: _Place) -> Iterable[tuple[int, frozenset[int], frozenset[int], int]]:
        rank, ahead, used, state, _ = here
        seen: set[int] = set()
        for position in self._open[rank]:
            class_ = self._class_of[position]
            if position in ahead or class_ in seen:
                continue
            seen.add(class_)
            reached = self._next_state(state, class_)
            if reached != ILLEGAL:
                yield rank, ahead | {position}, used, reached
        end, tried = self._operations[self._by_return[rank]].return_, set[int]()
        for position in self._pending:
            class_ = self._class_of[position]
            if position in used or class_ in tried or self._operations[position].call > end:
                continue
            tried.add(class_)
            reached = self._next_state(state, class_)
            if reached not in (ILLEGAL, state):
                yield rank, ahead, used | {position}, reached

    def _is_covered(self, rank: int, ahead: frozenset[int], used: frozenset[int], state: int) -> bool:
        """Return whether the set has this configuration, once returns and still operations are dealt with."""
        while True:
            while rank < len(self._by_return) and self._by_return[rank] in ahead:
                ahead -= {self._by_return[rank]}
                rank += 1
            if rank == len(self._by_return):
                return False
            ahead |= {position for position in self._open[rank] if self._is_still_here(position, state)}
            if self._by_return[rank] not in ahead:
                return any(fewer <= used for fewer in self._used.get((rank, ahead, state), ()))

    def _is_still_here(self, position: int, state: int) -> bool:
        class_ = self._class_of[position]
        return class_ in self._still and self._next_state(state, class_) == state
