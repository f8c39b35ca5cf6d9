"""What the engine answers for one key, and how many steps keys get in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faultline.checkers.porcupine.budget import CheckResult

__all__ = ["FIRST_STEPS", "PATIENCE", "KeyResult"]

FIRST_STEPS = 500
"""The steps of search that every key gets before any gets more."""

PATIENCE = 8
"""How many times as many steps an undecided key gets in the next round."""


@dataclass(frozen=True, slots=True)
class KeyResult:
    """The result for one key.

    `decided_by` is `zones` or `slots`; `furthest` counts the completed operations that can be placed, in order of
    return, before one cannot (all of them when OK, -1 when the monitor refused: it does not look in that order);
    `certificate` are the operations, at most four, that the monitor found contradicting each other. `order` is the
    linearization found, or the longest one, and `state` the number of the value after it, -1 for one that nobody looks
    at. Operations are numbers in the columns.
    """

    result: CheckResult
    decided_by: str
    steps: int
    furthest: int
    state: int
    certificate: tuple[int, ...]
    order: Sequence[int]
