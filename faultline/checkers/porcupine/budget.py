"""What a check may cost, and the three answers it can give within that.

Apart from the search, because the fast engine needs these words and nothing else of the port.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

__all__ = ["UNLIMITED", "Budget", "CheckResult"]


class CheckResult(enum.StrEnum):
    """What a check established. `UNKNOWN` means that the budget ended first, and says nothing about the history."""

    OK = "Ok"
    ILLEGAL = "Illegal"
    UNKNOWN = "Unknown"


STEPS_BETWEEN_DEADLINE_CHECKS = 64
"""Looking at the clock costs a tenth of a cheap step; a model with slow steps still stops soon after its deadline."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long one search may take: in steps for each part, and until a monotonic time for all of them."""

    steps_max: int | None = None
    deadline_s: float | None = None

    @classmethod
    def of(cls, steps_max: int | None = None, timeout_s: float | None = None) -> Budget:
        """A budget that begins now; None means no limit."""
        return cls(steps_max, None if timeout_s is None else time.monotonic() + timeout_s)

    def is_spent(self, steps: int) -> bool:
        """Whether a search that made `steps` steps must stop."""
        if self.steps_max is not None and steps >= self.steps_max:
            return True
        if self.deadline_s is None or steps % STEPS_BETWEEN_DEADLINE_CHECKS:
            return False
        return time.monotonic() >= self.deadline_s


UNLIMITED = Budget()
"""As long as it takes."""
