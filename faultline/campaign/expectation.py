"""The expectations of a plan for a cell: the anomalies that it allows there, by name.

A weak configuration or a planted bug has *its* anomalies: a read without a quorum may be stale, but it may not lose an
acknowledged update. A plan that expected "a violation" would pass with any, so it names them as findings are named:
`stale-read`, or with its checker, `linearizability/stale-read`; an invariant by its id. A run is as expected when all
of its findings are allowed. Names are compared exactly, without wildcards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faultline.harness.errors import UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.verdict import Finding, Verdict

__all__ = [
    "PASS",
    "Expectation",
    "allowed_anomalies",
    "is_allowed",
    "is_expected_violation",
    "not_allowed",
    "telling_finding",
]

Expectation = tuple[str, ...]
"""The anomalies that are allowed in a cell; none of a cell that is expected to pass."""

PASS = "pass"
"""The word of a plan for an empty list of allowed anomalies."""

_WILDCARDS = frozenset("*?[")
_WHERE = "The anomalies that were seen are in the campaign's table `signatures` and in its report"


def allowed_anomalies(source: str, pattern: str, value: str | Sequence[str]) -> Expectation:
    """Return the anomalies that `value` of the plan `source` allows in the cells `pattern`. Raise UsageError for no
    list."""
    where = f"{source}: key expected: {pattern!r}"
    if value == PASS:
        return ()
    if isinstance(value, str):
        instead = '["stale-read"]' if value == Verdict.VIOLATION.value else f'["{value}"]'
        cause = (
            ": any violation would pass" if value == Verdict.VIOLATION.value else ", which is not a list of anomalies"
        )
        raise UsageError(
            f"{where} cannot be {value!r}{cause}.", f"Write the anomalies that are allowed, {instead}. {_WHERE}."
        )
    for name in value:
        if not name or _WILDCARDS & set(name):
            raise UsageError(
                f"{where} allows {name!r}, which is not the name of an anomaly: wildcards are for cells only.",
                f'Write each anomaly by its name, such as ["stale-read"]. {_WHERE}.',
            )
    return tuple(dict.fromkeys(value))


def is_allowed(checker: str, anomaly: str, expected: Expectation) -> bool:
    """Return whether this finding of this checker is allowed."""
    return anomaly in expected or f"{checker}/{anomaly}" in expected


def not_allowed(findings: Iterable[Finding], expected: Expectation) -> list[Finding]:
    """Return those findings that are not allowed, in order."""
    return [finding for finding in findings if not is_allowed(finding.checker, finding.anomaly, expected)]


def is_expected_violation(judgement: Judgement, expected: Expectation) -> bool:
    """Return whether the run violates, and all of its findings are allowed."""
    found = judgement.verdict is Verdict.VIOLATION and bool(judgement.findings)
    return found and not not_allowed(judgement.findings, expected)


def telling_finding(findings: Sequence[Finding], expected: Expectation) -> Finding | None:
    """Return the finding that represents a run: the first that is not allowed, else the first; None without any."""
    return next(iter([*not_allowed(findings, expected), *findings]), None)
