"""The rules of any model for `verify`: its steps on numbers, and operations that are guessed to change nothing.

R7  *What is called still is still where it matters.* A still operation is linearized as soon as it is legal and leaves
    the state as it is. An order may have left one for later, and be in the same state; it has then done nothing that
    was called after the return of the one it left. So the class of an operation that is done here, and returned after
    all those calls, must be illegal here or leave the state as it is: then the order that places it later goes on as
    the one that placed it at once.

Operations of one class, those with the same input and answer, are equal. They share with the searches only the model's
steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.generic_tables import ILLEGAL
from faultline.checkers.linearizability.verify import Place, Rules, fault_of_set
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["ModelRules", "Refutation"]

NextState = Callable[[int, int], int]
"""The number of the state that a class leads to from a state, or ILLEGAL."""


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

    def fault(self) -> str:
        """Return why the configurations do not prove that there is no linearization, in words; nothing when they do.

        Configurations that this history cannot have prove nothing. A hopeless one is taken at its word.
        """
        return fault_of_set(ModelRules(self), self.configurations, self.hopeless)

    def derivation(self) -> list[tuple[int, int, int]]:
        """Return the steps that lead to the states of the configurations: the state before, an operation, the state.

        A configuration is reached from one of an earlier return, or with fewer operations ahead and used.
        """
        rules = ModelRules(self)
        known, steps = {self.initial}, list[tuple[int, int, int]]()
        for here in sorted(self.configurations, key=lambda here: (here.rank, len(here.ahead) + len(here.used))):
            for i in (*rules.windows[here.rank], *rules.group_of) if here.state in known else ():
                reached = self.next_state(here.state, self.class_of[i])
                if reached != ILLEGAL and reached not in known:
                    known.add(reached)
                    steps.append((here.state, i, reached))
        return steps

    def broken_guesses(self) -> set[int]:
        """Return the classes of `still` that change a state where one of them may have been left for later."""
        rules = ModelRules(self)
        places = filter(None, map(rules.place, self.configurations))
        return set().union(*map(rules.broken_in, places))


class _Times(NamedTuple):
    """The times of operations under a model."""

    call_at: Sequence[float]
    return_at: Sequence[float]
    by_call: Sequence[int]
    by_return: Sequence[int]

    @classmethod
    def of(cls, operations: Sequence[Operation[Any, Any]]) -> _Times:
        """Return the times of `operations`."""
        calls, returns = [each.call for each in operations], [each.return_ for each in operations]
        positions = range(len(operations))
        completed = [i for i in positions if returns[i] != PENDING]
        return cls(calls, returns, sorted(positions, key=calls.__getitem__), sorted(completed, key=returns.__getitem__))


class ModelRules(Rules):
    """The rules of the operations of one refutation (R1 to R3 and R7)."""

    def __init__(self, refutation: Refutation) -> None:
        self._class_of, self._next_state = refutation.class_of, refutation.next_state
        still = {i for i, class_ in enumerate(self._class_of) if class_ in refutation.still}
        super().__init__(_Times.of(refutation.operations), refutation.initial, still)

    def after(self, i: int, state: int, rank: int) -> int | None:
        """Return the state that `i` leads to from `state`; None when it is illegal there."""
        reached = self._next_state(state, self._class_of[i])
        return None if reached == ILLEGAL else reached

    def kind_of(self, i: int, after: int | None = None) -> Hashable:
        """Return the class of `i`."""
        return self._class_of[i]

    def broken_in(self, place: Place) -> set[int]:
        """Return the classes that are called still, move the state, and may have been left for later (R7)."""
        classes = {self._class_of[i] for i in self._delayed(place)}
        return {each for each in classes if self._next_state(place.state, each) not in (ILLEGAL, place.state)}

    def _delayed(self, here: Place) -> Iterable[int]:
        """Yield the still operations done here that some order may have left for later."""
        movers = [i for i in here.ahead if i not in self.still]
        yield from here.ahead.difference(movers)
        calls = [self._needed_call(here, i) for i in movers]
        calls += [self.call_at[self.members[group][count - 1]] for group, count in here.used]
        latest, rank = max(calls, default=-math.inf), here.rank - 1
        if not calls:
            # Nothing but what was open when the last one that moved the state returned can have come before that.
            while rank >= 0 and self.by_return[rank] in self.still:
                rank -= 1
            if rank < 0:
                return
            passed = set(self.by_return[rank + 1 : here.rank])
            yield from (i for i in self.windows[rank] if i in passed)
        while rank >= 0 and self.return_at[self.by_return[rank]] >= latest:
            i = self.by_return[rank]
            if i in self.still:
                yield i
            else:
                latest = max(latest, self._needed_call(here, i))
            rank -= 1

    def _needed_call(self, here: Place, i: int) -> float:
        """Return the earliest call that an order may have needed for `i`: its own, or that of one exchanged with it."""
        class_ = self._class_of[i]
        twins = [each for each in self.windows[here.rank] if each not in here.ahead and self._class_of[each] == class_]
        return min(self.call_at[each] for each in (i, *twins))
