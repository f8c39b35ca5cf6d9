"""Breaches of invariants, which were observed while the run went on, as findings."""

from __future__ import annotations

from faultline.harness.history import History
from faultline.harness.invariant import Breach
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Finding, Verdict

__all__ = ["InvariantChecker"]


class InvariantChecker:
    """A violation when an invariant of the system did not hold; findings are named by the invariant's id."""

    name = "invariants"
    judges_the_test = True  # inside the system, which is a help for its authors; clients are promised nothing by it

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Return one finding for each breach in `run`, in order of time."""
        findings = tuple(map(_finding, sorted(run.breaches, key=lambda breach: (breach.time_us, breach.invariant))))
        return CheckResult(
            checker=self.name,
            verdict=Verdict.VIOLATION if findings else Verdict.PASS,
            sentence=findings[0].sentence if findings else "No invariant was seen broken.",
            findings=findings,
        )


def _finding(breach: Breach) -> Finding:
    return Finding(
        checker=InvariantChecker.name,
        anomaly=breach.invariant,
        sentence=breach.sentence,
        time_us=breach.time_us,
        node=breach.node,
    )
