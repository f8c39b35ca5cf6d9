"""Making an illegal history small without making it wrong.

Taking an operation out of a history may create an anomaly (a read of a value that no operation seems to write), so a
smaller history only proves something about the larger one when every change was a *relaxation*: one after which each
legal explanation still is one. These are:

- leave out an operation that only observes;
- let an operation that changes the state become pending: it may happen later, or never;
- let it begin earlier;
- leave out a pending operation that could not help to explain what remains.

An illegal history that stays illegal under a relaxation is relaxed; when no single relaxation is possible any more, the
operations that still constrain are the core. Chunks are tried before single operations, as in delta debugging (Zeller
1999).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.porcupine.budget import Budget

__all__ = ["ShrinkBudget", "minimise"]

Item = TypeVar("Item")

SHRINK_STEPS_MAX = 400_000
"""Steps of search that making one history small may cost: a second or two at the worst, a millisecond as a rule."""

Relax = Callable[[Item, Sequence[Item]], Iterable[Item | None]]
"""The relaxations of an item among others, strongest first; None leaves it out."""


class ShrinkBudget:
    """The steps left for a whole minimisation; `is_spent` once a check had to be given up."""

    def __init__(self, budget: Budget, steps_max: int = SHRINK_STEPS_MAX) -> None:
        self._deadline_s = budget.deadline_s
        self._steps_left = steps_max
        self.is_spent = False

    def next(self) -> Budget:
        """Return the budget of the next check: a tenth of all at most, so that a hard check cannot take everything."""
        return Budget(min(self._steps_left, SHRINK_STEPS_MAX // 10), self._deadline_s)

    def proves_illegal(self, checked: Decision) -> bool:
        """Return whether a check came out illegal; take its steps off, and note when it had to be given up."""
        self._steps_left = max(0, self._steps_left - checked.steps)
        self.is_spent = self.is_spent or checked.is_unknown
        return checked.is_illegal


def minimise(
    items: Sequence[Item], is_illegal: Callable[[Sequence[Item]], bool], relax: Relax[Item], checks_max: int = 4000
) -> tuple[list[Item], bool]:
    """Return a core of the illegal history `items`, and if it is minimal (not if `checks_max` checks were too few)."""
    current = list(items)
    checks = 0
    size = max(1, len(current) // 2)
    while True:
        changed, position = False, 0
        while position < len(current):
            smaller = None
            for option in _relaxed(current, position, size, relax):
                if checks == checks_max:
                    return current, False
                checks += 1
                if is_illegal(option):
                    smaller = option
                    break
            position += size
            if smaller is not None:
                # Items that were left out have moved the next ones forward.
                position -= len(current) - len(smaller)
                current, changed = smaller, True
        # One relaxation may make another possible, so single items are tried until a whole pass changes nothing.
        if size == 1 and not changed:
            return current, True
        size = max(1, size // 2)


def _relaxed(items: list[Item], position: int, size: int, relax: Relax[Item]) -> Iterator[list[Item]]:
    """Yield histories with the items from `position` on relaxed: a chunk in one way, a single item in every way."""
    chunk = items[position : position + size]
    if len(chunk) == 1:
        for option in relax(chunk[0], items):
            yield _replaced(items, position, 1, [option])
        return
    strongest = [list(islice(relax(item, items), 1)) for item in chunk]
    if any(strongest):
        replacement = [option[0] if option else item for item, option in zip(chunk, strongest, strict=True)]
        yield _replaced(items, position, size, replacement)


def _replaced(items: list[Item], position: int, size: int, replacement: Sequence[Item | None]) -> list[Item]:
    kept = [item for item in replacement if item is not None]
    return items[:position] + kept + items[position + size :]
