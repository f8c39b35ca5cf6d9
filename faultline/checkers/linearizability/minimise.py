"""Making an illegal history small without making it wrong.

Taking an operation out of a history may create an anomaly (a read of a value that nobody seems to write), so a smaller
history only proves something about the larger one when every change was a *relaxation*: one after which everything that
was a legal explanation still is. These are:

- leave out an operation that only observes;
- let an operation that changes the state become pending: it may happen later, or never;
- let it begin earlier;
- leave out a pending operation that could not help to explain what remains.

An illegal history that stays illegal under a relaxation is relaxed; when no single relaxation is possible any more,
what still constrains is the core. Chunks are tried before single operations, as in delta debugging (Zeller 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from faultline.checkers.porcupine import Budget, CheckResult

__all__ = ["ShrinkBudget", "minimise"]

Item = TypeVar("Item")

SHRINK_STEPS_MAX = 400_000
"""Steps of search that making one history small may cost: a second or two at the worst, a millisecond as a rule."""

Relax = Callable[[Item, Sequence[Item]], Sequence[Item | None]]
"""The relaxations of an item among others, strongest first; None leaves it out."""


class ShrinkBudget:
    """The steps left for a whole minimisation; `is_spent` once a check had to be given up."""

    def __init__(self, budget: Budget, steps_max: int = SHRINK_STEPS_MAX) -> None:
        self._deadline_s = budget.deadline_s
        self._steps_left = steps_max
        self.is_spent = False

    def next(self) -> Budget:
        """The budget of the next check: a tenth of all at most, so that one hard check cannot take everything."""
        return Budget(min(self._steps_left, SHRINK_STEPS_MAX // 10), self._deadline_s)

    def proves_illegal(self, result: CheckResult, steps: int) -> bool:
        """Whether a check that took `steps` steps was decided, and how."""
        self._steps_left = max(0, self._steps_left - steps)
        self.is_spent = self.is_spent or result is CheckResult.UNKNOWN
        return result is CheckResult.ILLEGAL


def minimise(
    items: Sequence[Item], is_illegal: Callable[[Sequence[Item]], bool], relax: Relax[Item], checks_max: int = 4000
) -> tuple[list[Item], bool]:
    """A core of the illegal history `items`, and whether it is minimal (False: `checks_max` checks were not enough)."""
    current = list(items)
    checks = 0
    size = max(1, len(current) // 2)
    while True:
        changed, position = False, 0
        while position < len(current):
            options = _relaxed(current, position, size, relax)
            if checks + len(options) > checks_max:
                return current, False
            smaller = next(filter(is_illegal, options), None)
            checks += len(options)
            position += size
            if smaller is not None:
                position -= len(current) - len(smaller)
                current, changed = smaller, True
        if size == 1 and not changed:
            return current, True
        size = max(1, size // 2)


def _relaxed(items: list[Item], position: int, size: int, relax: Relax[Item]) -> list[list[Item]]:
    """The history with the items from `position` on relaxed: as a chunk one way, a single item in every way."""
    chunk = items[position : position + size]
    options = [relax(item, items) for item in chunk]
    if len(chunk) == 1:
        return [_replaced(items, position, 1, [option]) for option in options[0]]
    if not any(options):
        return []
    strongest = [option[0] if option else item for item, option in zip(chunk, options, strict=True)]
    return [_replaced(items, position, size, strongest)]


def _replaced(items: list[Item], position: int, size: int, replacement: Sequence[Item | None]) -> list[Item]:
    kept = [item for item in replacement if item is not None]
    return items[:position] + kept + items[position + size :]
