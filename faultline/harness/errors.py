"""The errors Faultline raises on purpose, and the exit code each one ends the command with.

    FaultlineError              never raised itself
    ├── UsageError       (2)    a name, option, plan or history that cannot be used
    ├── HarnessError     (4)    the harness or its machine failed: no Java, a port in use, a fault that did not bite
    └── Interrupted    (130)    the user pressed Ctrl-C; what was recorded has been kept

Every error says *what* went wrong and *where*, and carries the *next step* apart, so that the command line prints one
sentence and one hint, and a program can read both.
"""

from __future__ import annotations

__all__ = ["FaultlineError", "HarnessError", "Interrupted", "UsageError"]


class FaultlineError(Exception):
    """Base of all deliberate errors. `message` is one sentence, `next_step` what to do about it."""

    exit_code = 4

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class UsageError(FaultlineError):
    """The request cannot be carried out as given: an unknown name, contradictory options, malformed input."""

    exit_code = 2


class HarnessError(FaultlineError):
    """The harness, its machine or its network failed; the run says nothing about the system under test."""

    exit_code = 4


class Interrupted(FaultlineError):
    """The user interrupted the work; everything recorded until then is kept."""

    exit_code = 130
