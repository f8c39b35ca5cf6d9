"""One result from those of parts of a history that were checked apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from faultline.checkers.common.words import counted
from faultline.harness.verdict import CheckResult, Finding, Verdict, merge

__all__ = ["FINDINGS_MAX", "merged", "renumbered"]

FINDINGS_MAX = 5
"""The number of findings that are kept of all parts together."""


def renumbered(result: CheckResult, numbers: Sequence[int]) -> CheckResult:
    """Return a result whose findings name operations by their numbers in the whole history."""
    findings = tuple(_renumbered_finding(finding, numbers) for finding in result.findings)
    detail = result.detail
    if detail.get("undecided"):
        detail = detail | {"undecided": [_renumbered_key(known, numbers) for known in detail["undecided"]]}
    return msgspec.structs.replace(result, findings=findings, detail=detail)


def _renumbered_key(known: dict[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    """Return the record of an undecided key (see `linearizability.undecided`) with other row numbers."""
    rows = {name: [numbers[row] for row in known[name]] for name in ("order", "open", "beginning", "ruled_out")}
    return known | rows | {"stuck": None if known["stuck"] is None else numbers[known["stuck"]]}


def _renumbered_finding(finding: Finding, numbers: Sequence[int]) -> Finding:
    return msgspec.structs.replace(finding, operations=tuple(numbers[row] for row in finding.operations))


def merged(results: Sequence[CheckResult], operations: int) -> CheckResult:
    """Return the worst verdict with its sentence, the first findings of all parts, and the sums of their figures.

    A part in which nothing was to be judged does not count beside others, as in a history that is checked whole.
    """
    telling = [result for result in results if result.verdict is not Verdict.VACUOUS] or results
    verdict = merge(result.verdict for result in telling)
    worst = next(result for result in telling if result.verdict is verdict)
    findings = [finding for result in results for finding in result.findings]
    parts = f"{operations:,} operations, checked by key in {counted(len(results), 'part')}"
    sentence = f"{worst.sentence} (The worst of {parts}.)"
    if verdict is Verdict.PASS:
        sentence = f"All {parts}, pass; of the first: {worst.sentence}"
    return CheckResult(
        checker=worst.checker,
        verdict=verdict,
        sentence=sentence,
        findings=tuple(findings[:FINDINGS_MAX]),
        reason=worst.reason,
        detail=_summed([result.detail for result in results]) | {"parts": len(results)},
    )


def _summed(details: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the details together: numbers added, tables joined, and of everything else the first."""
    total: dict[str, Any] = {}
    for detail in details:
        for name, value in detail.items():
            known: Any = total.get(name)
            if isinstance(known, bool) or known.__class__ is not value.__class__:
                total.setdefault(name, value)
            elif isinstance(value, int | float):
                total[name] = known + value
            elif isinstance(value, dict):
                total[name] = known | value
            elif isinstance(value, list):
                total[name] = [*known, *value][:FINDINGS_MAX]
    return total
