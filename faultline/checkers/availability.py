"""Availability: operations succeed again once everything is healed, and how long each outage lasted is told.

A store may refuse service while a majority is cut off; that is no violation. Not answering any more after the network
is whole, the clocks are right and every node runs again is one: it is how deadlocked elections, lost timers and
poisoned logs show, which no consistency checker can see, because a system that never answers is never wrong.

An operation counts as *answered* when it succeeded, or when a compare-and-set was refused for its precondition. Times
are measured on operations that were invoked after the moment in question, so that an answer that was already under
way when a fault ended does not count as recovery from it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from faultline.harness.history import OPEN, History
from faultline.harness.recovery import RECOVERY_US_MAX, is_answered
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["LATE_RECOVERY", "NO_RECOVERY", "AvailabilityChecker"]

NO_RECOVERY = "no-recovery"
"""The anomaly of a system that answers nothing any more after everything was healed."""

LATE_RECOVERY = "late-recovery"
"""The anomaly of a system that answers again, but only after the bound."""

_WINDOWS_SHOWN = 5


class AvailabilityChecker:
    """A violation when nothing is answered after the final heal, or nothing within `recovery_us_max` of it.

    A store that takes longer by its nature says so: the bound is never less than what the run itself would wait for it
    (`serving_us_max` of its statistics), during which clients ask nothing.
    A run asks until something is answered, or the time for recovery is over (`faultline.harness.recovery`). One that
    was ended within `patience_us` of the heal leaves recovery *unknown*, as errors of the harness itself do.
    `detail` holds the recovery time after the heal and after each fault, and the longest windows without an answer.
    """

    name = "availability"
    judges_the_test = True

    def __init__(self, *, recovery_us_max: int = RECOVERY_US_MAX, patience_us: int = 500_000) -> None:
        self.recovery_us_max = recovery_us_max
        self.patience_us = patience_us

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return the verdict on how `run` recovered; *vacuous* when faults struck and no client asked afterwards."""
        heal_us = run.healed_us
        answers = _Answers(history)
        asked = [row for row, invoke_us in enumerate(history.invoke_us) if invoke_us >= heal_us]
        recovery_us = answers.recovery_us(heal_us)
        detail = {
            "recovery_us": recovery_us,
            "asked_after_heal": len(asked),
            "windows": _windows_without_answer(history, answers.completions),
            "faults": [_recovery_of(fault.kind, fault.start_us, fault.stop_us, answers) for fault in run.faults],
        }
        verdict, sentence = self._verdict(run, heal_us, asked, recovery_us)
        reason = Reason(cause=Cause.ENDED_EARLY) if verdict is Verdict.UNKNOWN else None
        if verdict is Verdict.VIOLATION and run.errors:
            # A client or a heal that failed is enough to explain the silence; the system must not be blamed for it.
            verdict, sentence = Verdict.UNKNOWN, f"Nothing is known about recovery, as the harness failed: {sentence}"
            reason = Reason(cause=Cause.HARNESS)
        anomaly = NO_RECOVERY if recovery_us is None else LATE_RECOVERY
        finding = _finding(history, anomaly, asked, sentence) if verdict is Verdict.VIOLATION else None
        findings = (finding,) if finding is not None else ()
        return CheckResult(
            checker=self.name, verdict=verdict, sentence=sentence, findings=findings, detail=detail, reason=reason
        )

    def _verdict(
        self, run: RunRecord, heal_us: int, asked: Sequence[int], recovery_us: int | None
    ) -> tuple[Verdict, str]:
        bound_us = max(self.recovery_us_max, run.statistics.get("serving_us_max", 0))
        had_faults = bool(run.plan.faults or run.faults)
        if not asked and not had_faults:
            return Verdict.PASS, "There was no fault to recover from, and no operation was invoked after the heal."
        if not asked:
            return Verdict.VACUOUS, "No operation was invoked after the heal, so recovery was not observed."
        if recovery_us is not None and recovery_us <= bound_us:
            return Verdict.PASS, f"The system answered {_ms(recovery_us)} after everything was healed."
        if recovery_us is not None:
            late = f"the system answered again only after {_ms(recovery_us)}, the bound is {_ms(bound_us)}"
            return Verdict.VIOLATION, f"After everything was healed, {late}."
        waited_us = run.history.end_us() - heal_us
        if waited_us < self.patience_us:
            return Verdict.UNKNOWN, f"The run ended {_ms(waited_us)} after the heal, before anything could be answered."
        return (
            Verdict.VIOLATION,
            f"The system never recovered: none of the {len(asked):,} operations invoked after everything was healed "
            f"was answered within {_ms(waited_us)}.",
        )


class _Answers:
    """The answered operations: when each completed, and the earliest answer to anything invoked since some time."""

    def __init__(self, history: History) -> None:
        rows = [row for row in range(len(history)) if is_answered(history, row)]
        completed = [history.complete_us[row] for row in rows]
        self.completions = sorted(completed)
        self._invoked = [history.invoke_us[row] for row in rows]
        self._earliest = list(accumulate(reversed(completed), min))[::-1]

    def recovery_us(self, since_us: int) -> int | None:
        """Return the time from `since_us` to the first answer of an operation invoked since then; None without one."""
        position = bisect_left(self._invoked, since_us)
        return self._earliest[position] - since_us if position < len(self._earliest) else None


def _recovery_of(kind: str, start_us: int, stop_us: int, answers: _Answers) -> dict[str, Any]:
    return {"kind": kind, "start_us": start_us, "stop_us": stop_us, "recovery_us": answers.recovery_us(stop_us)}


def _windows_without_answer(history: History, completions: Sequence[int]) -> list[dict[str, int]]:
    """Return the longest times during which clients waited and none was answered, longest first."""
    edges = [history.invoke_us[0] if len(history) else 0, *completions, history.end_us()]
    gaps = sorted(pairwise(edges), key=lambda gap: (gap[0] - gap[1], gap[0]))
    windows = [_waited(history, start_us, stop_us) for start_us, stop_us in gaps[: 2 * _WINDOWS_SHOWN]]
    windows.sort(key=lambda window: (window["start_us"] - window["stop_us"], window["start_us"]))
    return [window for window in windows if window["stop_us"] > window["start_us"]][:_WINDOWS_SHOWN]


def _waited(history: History, start_us: int, stop_us: int) -> dict[str, int]:
    """Return the part of a gap between answers from which on an operation was in flight."""
    end_us = stop_us
    waiting = [
        invoked
        for invoked, completed in zip(history.invoke_us, history.complete_us, strict=True)
        if invoked < stop_us and (completed > start_us or completed == OPEN)
    ]
    first_us = min(waiting, default=end_us)
    return {"start_us": max(start_us, first_us), "stop_us": stop_us}


def _finding(history: History, anomaly: str, asked: Sequence[int], sentence: str) -> Finding:
    return Finding(
        checker=AvailabilityChecker.name,
        anomaly=anomaly,
        sentence=sentence,
        operations=tuple(asked[:10]),
        time_us=history.end_us(),
        detail={"asked": len(asked)},
    )


def _ms(time_us: int) -> str:
    return f"{time_us / 1000:.0f} ms"
