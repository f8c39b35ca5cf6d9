"""Verdicts, findings and how they merge.

A run's verdict is one of five words. When verdicts merge, a violation outranks everything, then a harness error, then
not knowing, then a test that tested nothing, and only then a pass: Jepsen's `test-all` lets *unknown* hide *invalid*,
and a red cell that turns grey is how a bug is missed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["Cause", "CheckResult", "Finding", "Reason", "Verdict", "exit_code", "merge"]


class Verdict(enum.StrEnum):
    """The five answers a check, a run or a campaign can give."""

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
    """The worst of `verdicts`; nothing at all merges to PASS, so callers must check that something was there."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.PASS)


def exit_code(verdict: Verdict) -> int:
    """The exit code a command ends with for `verdict`, when nothing else was expected."""
    return _EXIT[verdict]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a checker or an invariant has to say against the system.

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
        """What equal findings have in common: `linearizability/stale-read`."""
        return f"{self.checker}/{self.anomaly}"


class Cause(enum.StrEnum):
    """Why a check came to no verdict."""

    BUDGET = "budget"
    """The search spent its steps."""
    TIME = "time-limit"
    """The search spent its time."""
    SIZE = "size"
    """There was too much of something to begin with."""
    NOTHING_SEEN = "nothing-seen"
    """Nothing that the check judges was there, or succeeded."""
    INDEFINITE = "indefinite-outcomes"
    """Operations whose outcome nobody knows may explain what was seen."""
    NOT_READ_OUT = "not-read-out"
    """Something was not seen to be there or gone, as the run ended before everything had been read."""
    REPEATED_VALUES = "repeated-values"
    """Values that were written twice do not tell whose they are."""
    ENDED_EARLY = "ended-early"
    """The run ended before what comes after the heal."""
    HARNESS = "harness-failed"
    """The harness failed, which is enough to explain what was seen."""
    CHECKER = "checker-failed"
    """The checker itself failed."""
    LEFT_OUT = "left-out"
    """The check was not run, as something that it needs is missing."""
    NO_LOGS = "no-logs"
    """There were no logs to look at."""


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a check is *unknown*; where an option of the checker is to blame, its name and what its value was.

    For a size, `value` is the one that it would take.
    """

    cause: Cause
    option: str = ""
    value: int = 0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one checker established: its verdict, one sentence, the findings behind it, and plain data for reports.

    `reason` says why the verdict is *unknown*; other verdicts have none.
    """

    checker: str
    verdict: Verdict
    sentence: str
    findings: tuple[Finding, ...] = ()
    detail: dict[str, Any] = {}
    reason: Reason | None = None
