"""The checks of a stored run now, compared with the `verdict.json` that the run itself wrote.

A stored verdict is never lost, and never improved silently:

| then          | now                     | verdict                                                     |
|---------------|-------------------------|-------------------------------------------------------------|
| violation     | violation               | violation                                                   |
| violation     | pass                    | harness error that names both: one of the two is wrong      |
| violation     | unknown, not judged     | violation                                                   |
| anything else | violation               | violation, and a note that they disagree                    |
| anything      | cannot be judged again  | the stored verdict                                          |

The last line is for facts that only the run itself could observe: breaches of invariants, the effect of faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faultline.harness.checks import judged_nothing, left_out
from faultline.harness.judgement import Judgement
from faultline.harness.verdict import CheckResult, Finding, Verdict, merge

__all__ = ["as_one", "beyond", "disagreement"]

_GRAVE = (Verdict.VIOLATION, Verdict.HARNESS_ERROR)
_DENIES = (Verdict.PASS, Verdict.VACUOUS)


def beyond(checks: Sequence[CheckResult], stored: Judgement) -> list[CheckResult]:
    """Return the checks that the `stored` judgement adds to the `checks` of now."""
    again: dict[str, list[CheckResult]] = {}
    for check in checks:
        again.setdefault(check.checker, []).append(check)
    added: list[CheckResult] = []
    for then in [*stored.checks, *_unnamed(stored)]:
        now = again.get(then.checker)
        added += _compared(then, now.pop(0) if now else None, checks)
    ran = {check.checker for check in (*checks, *stored.checks)}
    added += [
        left_out(name, "it did not run then, and the workload does not have it now")
        for name in stored.checks_due
        if name not in ran
    ]
    return added


def _compared(then: CheckResult, now: CheckResult | None, checks: Sequence[CheckResult]) -> Iterator[CheckResult]:
    """Yield `then` where it still counts, or the contradiction of the two."""
    if then.checker == judged_nothing().checker:
        return
    if now is None:
        by_all = merge(check.verdict for check in checks)
        is_denied = then.checker == _UNNAMED and then.verdict is Verdict.VIOLATION and by_all in _DENIES
        yield _contradiction(then, by_all, "the checkers") if is_denied else then
    elif then.verdict is Verdict.VIOLATION and now.verdict in _DENIES:
        yield _contradiction(then, now.verdict, then.checker)
    elif then.verdict is Verdict.VIOLATION and now.verdict is not Verdict.VIOLATION:
        yield then


_UNNAMED = "verdict.json"


def _unnamed(stored: Judgement) -> list[CheckResult]:
    """Return the stored verdict, where it is graver than all of its checks and no error of the harness explains it."""
    if stored.verdict not in _GRAVE or stored.errors or stored.verdict in [check.verdict for check in stored.checks]:
        return []
    findings = tuple(stored.findings) if stored.verdict is Verdict.VIOLATION else ()
    return [CheckResult(checker=_UNNAMED, verdict=stored.verdict, sentence=stored.sentence, findings=findings)]


def _contradiction(then: CheckResult, now: Verdict, judges: str) -> CheckResult:
    said = then.findings[0].sentence if then.findings else then.sentence
    return CheckResult(
        checker=then.checker,
        verdict=Verdict.HARNESS_ERROR,
        sentence=f"verdict.json says violation and {judges} now: {now.value}, of the same history. It says: {said}",
    )


def disagreement(stored: Judgement, verdict: Verdict) -> str:
    """Return a sentence when the `stored` judgement differs from `verdict`; '' when it does not."""
    if stored.verdict is verdict:
        return ""
    disagree = "They disagree: " if verdict is Verdict.VIOLATION else ""
    return f"{disagree}verdict.json says {stored.verdict.value}: {stored.sentence}"


def as_one(checks: Sequence[CheckResult], verdict: Verdict = Verdict.PASS, sentence: str = "") -> CheckResult:
    """Return all `checks` as one result, with the details of the check that decided.

    `verdict` and `sentence` are those of a judgement which covers some of the checks; graver ones replace them.
    """
    worst = merge([verdict, *(check.verdict for check in checks)])
    telling = next((check for check in checks if check.verdict is worst), None)
    findings: dict[str, Finding] = {repr(finding): finding for check in checks for finding in check.findings}
    if telling is not None and (worst is not verdict or not sentence):
        sentence = telling.findings[0].sentence if telling.findings else telling.sentence
    return CheckResult(
        checker=telling.checker if telling else "harness",
        verdict=worst,
        sentence=sentence,
        findings=tuple(findings.values()),
        detail=telling.detail if telling else {},
        reason=telling.reason if telling else None,
    )
