"""The cost that a check may have, and the three answers that it can give within that.

Apart from the search, because the fast engine needs these words and nothing else of the port.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["UNLIMITED", "Budget", "CheckResult", "OutOfTime", "step_within"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")
Answer = TypeVar("Answer")


class CheckResult(enum.StrEnum):
    """The answer of a check. `UNKNOWN` means that the budget ended first, and says nothing about the history."""

    OK = "Ok"
    ILLEGAL = "Illegal"
    UNKNOWN = "Unknown"


class OutOfTime(Exception):
    """The time of a check was over before a step of its model, or during it: there is no answer of that step."""


STEPS_BETWEEN_DEADLINE_CHECKS = 64
"""Looking at the clock costs a tenth of a cheap step of an engine. Steps of a model look each time (`step_within`)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a search: steps for each part, and a monotonic time for all of them.

    To a model with `step_context` it is the context of a step, which may stop when `is_over()`.
    """

    steps_max: int | None = None
    deadline_s: float | None = None

    @classmethod
    def of(cls, steps_max: int | None = None, timeout_s: float | None = None) -> Budget:
        """Return a budget that begins now; None means no limit."""
        return cls(steps_max, None if timeout_s is None else time.monotonic() + timeout_s)

    def is_spent(self, steps: int) -> bool:
        """Return whether a search that made `steps` steps must stop."""
        if self.steps_max is not None and steps >= self.steps_max:
            return True
        if self.deadline_s is None or steps % STEPS_BETWEEN_DEADLINE_CHECKS:
            return False
        return self.is_over()

    def is_over(self) -> bool:
        """Return whether the time is up; it never is for a budget of steps alone."""
        return self.deadline_s is not None and time.monotonic() >= self.deadline_s

    def rest_s(self) -> float | None:
        """Return the seconds that are left, at least 0; None when there is no limit."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - time.monotonic())

    def kernel_timeout_s(self) -> float:
        """Return the seconds that are left as the native kernel takes them: 0 means no limit, so none left is tiny."""
        rest_s = self.rest_s()
        return 0.0 if rest_s is None else max(rest_s, 1e-6)


UNLIMITED = Budget()
"""As long as it takes."""


def step_within(
    step: Callable[[State, Input, Output], Answer],
    step_context: Callable[[Budget, State, Input, Output], Answer] | None,
    budget: Budget,
) -> Callable[[State, Input, Output], Answer]:
    """Return a model's `step`, or its `step_context` if any, which raises OutOfTime instead of answering late.

    It looks at the clock before every step. That costs a third of the cheapest steps, but one step of a model may take
    longer than the whole time that is left, and no number of quick ones tells that the next is quick.
    """
    deadline_s = budget.deadline_s
    if deadline_s is None:
        return step

    def timed(state: State, given: Input, answer: Output) -> Answer:
        if time.monotonic() >= deadline_s:
            raise OutOfTime
        if step_context is None:
            return step(state, given, answer)
        found = step_context(budget, state, given, answer)
        # The step may have stopped in its middle: its answer says nothing then.
        if time.monotonic() >= deadline_s:
            raise OutOfTime
        return found

    return timed
