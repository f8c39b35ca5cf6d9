"""From the cases that a checker counted to its result: cases become findings, doubts become *unknown* or *vacuous*.

A checker collects *cases*, each one thing that went wrong with the rows that suffice to show it. All cases of one
anomaly on one key make one finding: the sentence tells the first and says how many there are, and `detail` holds a few
examples, because no reader gets through a report with ten thousand findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faultline.checkers.common.words import Composite, counted, listed, token, told
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["EXAMPLES_MAX", "FINDINGS_MAX", "Case", "Conclusion"]

EXAMPLES_MAX = 8
"""The number of cases of one anomaly that a finding shows."""

FINDINGS_MAX = 25
"""The number of findings that a result holds: anomalies of further keys are only counted."""


class Case(NamedTuple):
    """One thing that went wrong: the value it is about, and the rows that suffice to show it."""

    what: Any
    rows: tuple[int, ...]


@dataclass(slots=True)
class Conclusion:
    """All that a checker has established so far about `history`."""

    checker: str
    history: History
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)

    def accuse(
        self,
        anomaly: str,
        cases: Sequence[Case],
        sentence: Callable[[Case], str],
        *,
        noun: str,
        key: str | None = None,
        tell: Callable[[Any], str] = told,
    ) -> None:
        """Add a finding for `cases`, if there are any; `sentence` tells the first, `noun` names what they are about.

        `tell` puts what a further case is about in words.
        """
        self.counts[anomaly] += len(cases)
        if not cases:
            return
        first = cases[0]
        self.findings.append(
            Finding(
                checker=self.checker,
                anomaly=anomaly,
                sentence=_sentence(sentence(first), cases, noun, key, tell),
                key=key,
                operations=tuple(sorted(set(first.rows))),
                time_us=self._time_us(first.rows),
                detail={"count": len(cases), "examples": [_example(case) for case in cases[:EXAMPLES_MAX]]},
            )
        )

    def doubt(self, sentence: str, cause: Cause = Cause.NOTHING_SEEN) -> None:
        """Note a reason why nothing can be said for certain, in words, and the kind of that reason."""
        self.doubts.append(sentence)
        self.causes.append(cause)

    def doubt_unread(self, reads: Collection[str]) -> None:
        """Doubt the keys that were changed, with an acknowledgement, and never read by one of the functions `reads`.

        Keys are judged apart, so what other keys answered says nothing about them.
        """
        history = self.history
        changed: dict[str | None, None] = {}
        read: set[str | None] = set()
        for key, f, outcome in zip(history.key, history.f, history.outcome, strict=True):
            if outcome == "ok" and f in reads:
                read.add(key)
            elif outcome == "ok":
                changed[key] = None
        if not read:
            cause = Cause.NOT_READ_OUT if changed else Cause.NOTHING_SEEN
            self.doubt(f"No read succeeded among {counted(len(history), 'operation')}, so nothing is known.", cause)
            return
        unread = [key for key in changed if key not in read]
        if unread:
            told_of = f"{counted(len(unread), 'key')} ({listed(unread, len(unread))})"
            self.doubt(f"Nothing is known about {told_of}: changed, and never read.", Cause.NOT_READ_OUT)

    def result(self, passed: str) -> CheckResult:
        """Return VIOLATION with findings, UNKNOWN or VACUOUS with doubts alone, else PASS with the sentence `passed`.

        VACUOUS means that the run showed nothing that the checker judges: it decided all that it saw.
        """
        verdict = self._verdict()
        return CheckResult(
            checker=self.checker,
            verdict=verdict,
            sentence=self._sentence(passed),
            findings=tuple(self.findings[:FINDINGS_MAX]),
            detail={"counts": dict(self.counts), "doubts": self.doubts[:EXAMPLES_MAX]} | self.detail,
            reason=Reason(cause=self._cause()) if verdict is not Verdict.VIOLATION and self.doubts else None,
        )

    def _verdict(self) -> Verdict:
        if self.findings:
            return Verdict.VIOLATION
        if not len(self.history):
            return Verdict.VACUOUS
        if not self.doubts:
            return Verdict.PASS
        return Verdict.VACUOUS if self._cause() is Cause.NOTHING_SEEN else Verdict.UNKNOWN

    def _cause(self) -> Cause:
        """Return the cause of the first doubt about something that was seen, else `NOTHING_SEEN`."""
        return next((cause for cause in self.causes if cause is not Cause.NOTHING_SEEN), Cause.NOTHING_SEEN)

    def _sentence(self, passed: str) -> str:
        if self.findings:
            more = len(self.findings) - 1
            return self.findings[0].sentence + (f" {counted(more, 'more finding')}." if more else "")
        if not len(self.history):
            return "No operation was invoked."
        return self.doubts[self.causes.index(self._cause())] if self.doubts else passed

    def _time_us(self, rows: Sequence[int]) -> int:
        """Return the time at which the last of `rows` ended, or began if it never ended."""
        return max((max(self.history.complete_us[row], self.history.invoke_us[row]) for row in rows), default=0)


def _sentence(first: str, cases: Sequence[Case], noun: str, key: str | None, tell: Callable[[Any], str]) -> str:
    place = f"On {key}: " if key is not None else ""
    if not place:
        first = first[:1].upper() + first[1:]
    if len(cases) == 1:
        return f"{place}{first}."
    whats: dict[Any, Any] = {}
    for case in cases[: 4 * EXAMPLES_MAX]:
        whats.setdefault(token(case.what), case.what)
    examples = f": {listed(whats.values(), max(len(whats), len(cases)), tell)}" if len(whats) > 1 else ""
    return f"{place}{first}; {counted(len(cases), noun)} in all{examples}."


def _example(case: Case) -> dict[str, Any]:
    return {"what": _plain(case.what), "operations": list(case.rows)}


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Composite) else value
