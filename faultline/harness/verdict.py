"""Verdicts, findings and how they merge.

A run's verdict is one of five words. When verdicts merge, a violation outranks everything, then a harness error, then
*unknown*, then a test that tested nothing, and only then a pass. Jepsen's `test-all` lets *unknown* hide *invalid*, and
a bug is missed when a red cell turns grey.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["Cause", "CheckResult", "Finding", "Reason", "Verdict", "exit_code", "merge"]


class Verdict(enum.StrEnum):
    """The five verdicts of a check, a run or a campaign."""

    PASS = "pass"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    HARNESS_ERROR = "harness-error"
    VIOLATION = "violation"


_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}
_EXIT = {
    Verdict.PASS: 0,
    Verdict.VIOLATION: 1,
    Verdict.UNKNOWN: 3,
    Verdict.VACUOUS: 3,
    Verdict.HARNESS_ERROR: 4,
}


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of `verdicts`; none at all merge to PASS, so callers must check that there was one."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.PASS)


def exit_code(verdict: Verdict) -> int:
    """Return the exit code of a command for `verdict`, when no other one was expected."""
    return _EXIT[verdict]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that a checker or an invariant reports against the system.

    `anomaly` is a stable class name (`stale-read`, `LDR-I2`), `sentence` one sentence for a reader who has never seen
    this tool, `operations` the rows of the history that suffice to show it (in order of invocation), `time_us` when it
    became visible, `detail` plain data for reports.
    """

    checker: str
    anomaly: str
    sentence: str
    key: str | None = None
    operations: tuple[int, ...] = ()
    time_us: int = 0
    node: str | None = None
    detail: dict[str, Any] = {}

    @property
    def signature(self) -> str:
        """The kind that equal findings share: `linearizability/stale-read`."""
        return f"{self.checker}/{self.anomaly}"


class Cause(enum.StrEnum):
    """A reason why a check did not decide."""

    BUDGET = "budget"
    """The search spent its steps."""
    TIME = "time-limit"
    """The search spent its time."""
    SIZE = "size"
    """The input was too large for the search to begin."""
    NOTHING_SEEN = "nothing-seen"
    """No operation that the check judges occurred, none succeeded, or nothing was there to compare it with."""
    INDEFINITE = "indefinite-outcomes"
    """Operations with an unknown outcome may explain the answers."""
    NOT_READ_OUT = "not-read-out"
    """The run ended before everything had been read: a key that was changed, or elements that may still be there."""
    REPEATED_VALUES = "repeated-values"
    """Values that were written twice do not identify their writer."""
    ENDED_EARLY = "ended-early"
    """The run ended before the part after the heal."""
    HARNESS = "harness-failed"
    """The harness failed, which is enough to explain the answers."""
    CHECKER = "checker-failed"
    """The checker itself failed."""
    LEFT_OUT = "left-out"
    """The check did not run, as something that it needs is missing."""
    NO_LOGS = "no-logs"
    """There were no logs to look at, or not those of every node."""


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason why a check is *unknown* or *vacuous*.

    Where an option of the checker is the cause, `option` has its name and `value` its value. For a size, `value` is the
    one that the check would need.
    """

    cause: Cause
    option: str = ""
    value: int = 0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one checker: its verdict, one sentence, the findings behind it, and plain data for reports.

    `reason` says why the verdict is *unknown*, or *vacuous* as nothing was seen; other verdicts have none.
    """

    checker: str
    verdict: Verdict
    sentence: str
    findings: tuple[Finding, ...] = ()
    detail: dict[str, Any] = {}
    reason: Reason | None = None
