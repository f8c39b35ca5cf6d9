"""The operations behind a violation, numbered and in words, for `faultline check`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from faultline.harness.history import OPEN, History
from faultline.harness.verdict import Finding
from faultline.reports.text import count, value_text, visible

if TYPE_CHECKING:
    from faultline.checkers.files import CheckedHistory

__all__ = ["explanation"]

_OPERATIONS_MAX = 20
_FINDINGS_MAX = 3
_VALUE_LENGTH = 120


def explanation(checked: CheckedHistory) -> Iterator[str]:
    """The first findings, each with its operations and the steps of its argument, as indented lines."""
    findings = checked.result.findings
    for number, finding in enumerate(findings[:_FINDINGS_MAX]):
        if number:
            yield f"  Also: {visible(finding.sentence)}"
        yield from _operations(checked, finding)
        yield from (f"     {visible(step)}" for step in _steps(finding))
    if len(findings) > _FINDINGS_MAX:
        yield f"  … and {count(len(findings) - _FINDINGS_MAX, 'further finding')}; --json shows all."


def _operations(checked: CheckedHistory, finding: Finding) -> Iterator[str]:
    history = checked.imported.history
    rows = _rows(checked, finding)
    if not rows:
        return
    yield f"  {finding.anomaly}, shown by {len(rows)} of {count(checked.operations, 'operation')}:"
    for number, row in enumerate(rows[:_OPERATIONS_MAX], start=1):
        yield f"  {number:>4}. {_moment(history, row, checked.imported.clock)}: {_operation(history, row)}"
    if len(rows) > _OPERATIONS_MAX:
        yield f"        … and {count(len(rows) - _OPERATIONS_MAX, 'more operation')}; --json shows all."


def _rows(checked: CheckedHistory, finding: Finding) -> list[int]:
    """The rows of a finding in the history at hand; none when it is of a part that is not."""
    named = list(dict.fromkeys(finding.operations))
    if checked.numbers is None:
        return [row for row in named if row < len(checked.imported.history)]
    place = {number: row for row, number in enumerate(checked.numbers)}
    return [place[number] for number in named if number in place]


def _moment(history: History, row: int, clock: str) -> str:
    if clock == "events":
        begin = f"event {history.invoke_index[row] + 1}"
        return begin if history.complete_index[row] == OPEN else f"{begin}–{history.complete_index[row] + 1}"
    begin = f"{history.invoke_us[row] / 1e6:.6f}"
    end = "" if history.complete_index[row] == OPEN else f"–{history.complete_us[row] / 1e6:.6f}"
    return f"{begin}{end} s"


def _operation(history: History, row: int) -> str:
    words = [f"client {history.process[row]}", visible(history.f[row])]
    if history.key[row] is not None:
        words.append(visible(str(history.key[row])))
    if history.value[row] is not None:
        words.append(value_text(history.value[row], _VALUE_LENGTH))
    return f"{' '.join(words)} → {_ending(history, row)}"


def _ending(history: History, row: int) -> str:
    if history.complete_index[row] == OPEN:
        return "never answered"
    outcome, result, error = history.outcome[row], history.result[row], history.error[row]
    if outcome == "ok":
        return "ok" if result is None and history.f[row] != "read" else f"ok, {value_text(result, _VALUE_LENGTH)}"
    reason = f" ({visible(error)})" if error else ""
    return f"{'failed' if outcome == 'fail' else 'unknown'}{reason}"


def _steps(finding: Finding) -> list[str]:
    steps = finding.detail.get("steps", ())
    return [step for step in steps if isinstance(step, str)] if isinstance(steps, list | tuple) else []
