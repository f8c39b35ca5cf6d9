"""The duties of a checker: accept correct histories, refuse violations, always equally, and name the rows that show
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from faultline.harness.history import History
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Checker
from faultline.testing.problem import Check, place_of

__all__ = ["CHECKER_CHECKS", "CheckerSubject"]

Found = Iterator[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerSubject:
    """The subject of the kit for checkers: the checker's maker, histories it must accept and histories it must
    refuse."""

    make: Callable[[], Checker]
    accepts: Sequence[History]
    refuses: Sequence[History]

    def place(self) -> str:
        """Return where the checker is defined."""
        return place_of(self.make(), "check")

    def result(self, history: History) -> CheckResult:
        """Return the result of a fresh checker for `history`."""
        return self.make().check(history, _record(history))


def _record(history: History) -> RunRecord:
    plan = Plan(system="none", workload="none", seed=0, nodes=(), workers=1, operations=(), heal_us=0, end_us=0)
    return RunRecord(plan=plan, world="simulated", history=history)


def _has_examples(subject: CheckerSubject) -> Found:
    for name, histories in (("accepts", subject.accepts), ("refuses", subject.refuses)):
        if not histories:
            yield f"no history that it {name} is given", subject.place(), f"Set `{name}`: at least one, by hand."


def _accepts(subject: CheckerSubject) -> Found:
    for number, history in enumerate(subject.accepts):
        result = subject.result(history)
        if result.verdict is not Verdict.PASS:
            where = f"{subject.place()}, history {number} of `accepts`"
            yield (
                f"{result.verdict.value}: {result.sentence}",
                where,
                "Report only what no correct store could show.",
            )


def _refuses(subject: CheckerSubject) -> Found:
    for number, history in enumerate(subject.refuses):
        result = subject.result(history)
        where = f"{subject.place()}, history {number} of `refuses`"
        if result.verdict is not Verdict.VIOLATION:
            yield f"{result.verdict.value}: {result.sentence}", where, "Find the violation in this history."
        for finding in result.findings:
            if any(not 0 <= row < len(history) for row in finding.operations) or not finding.operations:
                yield f"a finding points at the rows {finding.operations}", where, "Name rows that suffice to show it."
            if not (finding.anomaly and finding.sentence):
                yield (
                    "a finding has no anomaly or no sentence",
                    where,
                    "Write both for a reader who never saw this tool.",
                )
        if result.verdict is Verdict.VIOLATION and not result.findings:
            yield "a violation without a finding", where, "Give the finding that shows it."


def _is_steady(subject: CheckerSubject) -> Found:
    for history in [*subject.accepts, *subject.refuses]:
        before = history.digest()
        first, second = subject.result(history), subject.result(history)
        if msgspec.json.encode(first) != msgspec.json.encode(second):
            yield (
                "the same history is judged differently the second time",
                subject.place(),
                "Do not depend on the order of a set.",
            )
        if history.digest() != before:
            yield "the history is changed while it is judged", subject.place(), "Copy what you sort or fill in."
        if first.checker != subject.make().name:
            yield f"the result is signed {first.checker!r}", subject.place(), "Sign it with the checker's own name."


def _bears_nothing(subject: CheckerSubject) -> Found:
    verdict = subject.result(History()).verdict
    if verdict is Verdict.VIOLATION:
        yield "a history without operations is a violation", subject.place(), "Answer pass, vacuous or unknown."


CHECKER_CHECKS: tuple[Check[CheckerSubject], ...] = (
    Check("the checker has histories that it accepts and refuses", _has_examples),
    Check("the checker accepts correct histories", _accepts),
    Check("the checker refuses violations, and names their rows", _refuses),
    Check("the checker judges the same way twice and changes nothing", _is_steady),
    Check("the checker bears a history without operations", _bears_nothing),
)
