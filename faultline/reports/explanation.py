"""The explanation of a violation, in words, as `faultline check` prints it: its operations, numbered, and the argument
over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from faultline.harness.history import OPEN, History
from faultline.harness.verdict import CheckResult, Finding
from faultline.reports.cycle import cycle_lines, transaction_names
from faultline.reports.descriptions import predicate
from faultline.reports.text import count, value_text, visible

__all__ = ["CheckedHistory", "Imported", "argument", "explanation", "names_of"]

_OPERATIONS_MAX = 20
_FINDINGS_MAX = 3
_VALUE_LENGTH = 120


class Imported(Protocol):
    """A history, and whether its times are seconds or numbers of events."""

    @property
    def history(self) -> History: ...
    @property
    def clock(self) -> str: ...


class CheckedHistory(Protocol):
    """A history with the result of its check, as `faultline.checkers.files` makes it."""

    @property
    def model(self) -> str: ...
    @property
    def imported(self) -> Imported: ...
    @property
    def result(self) -> CheckResult: ...
    @property
    def operations(self) -> int: ...
    @property
    def numbers(self) -> Sequence[int] | None: ...

    def rows(self, finding: Finding, /) -> list[int]: ...


def explanation(checked: CheckedHistory) -> Iterator[str]:
    """Yield the first findings, each with its operations and its argument, as indented lines; else the undecided
    keys."""
    findings = checked.result.findings
    if not findings:
        yield from _undecided(checked)
    for number, finding in enumerate(findings[:_FINDINGS_MAX]):
        if number:
            yield f"  Also: {visible(finding.sentence)}"
        rows = checked.rows(finding)
        if rows:
            yield f"  {finding.anomaly}, shown by {len(rows)} of {count(checked.operations, 'operation')}:"
            names = names_of(checked, finding, rows)
            yield from _operations(checked, rows, names)
            yield from (f"     {visible(line)}" for line in argument(finding, checked, names))
    if len(findings) > _FINDINGS_MAX:
        yield f"  … and {count(len(findings) - _FINDINGS_MAX, 'further finding')}; --json shows all."


def _undecided(checked: CheckedHistory) -> Iterator[str]:
    """Yield, for undecided keys, the longest order, the operations that it could not place, and those it ruled out."""
    keys = checked.result.detail.get("undecided", ())
    for number, known in enumerate(keys[:_FINDINGS_MAX]):
        if number:
            yield f"  Also: {visible(known['sentence'])}"
        if checked.numbers is not None or known["stuck"] is None:
            continue
        state = value_text(known["state"], _VALUE_LENGTH)
        yield f"  The longest order has {count(len(known['order']), 'operation')} and leads to {state}. Not in it:"
        rows = [known["stuck"], *known["open"]]
        yield from _operations(checked, rows, {row: str(place) for place, row in enumerate(rows, start=1)})
    if len(keys) > _FINDINGS_MAX:
        yield f"  … and {count(len(keys) - _FINDINGS_MAX, 'further key')}; --json shows all."


def names_of(checked: CheckedHistory, finding: Finding, rows: list[int]) -> dict[int, str]:
    """Return the name of each row: T1, T2 … as in the argument over transactions, else a number."""
    given = {} if checked.numbers is not None else transaction_names(finding)
    if rows and all(row in given for row in rows):
        return {row: given[row] for row in rows}
    return {row: str(number) for number, row in enumerate(rows, start=1)}


def _operations(checked: CheckedHistory, rows: list[int], names: Mapping[int, str]) -> Iterator[str]:
    history, clock = checked.imported.history, checked.imported.clock
    for row in rows[:_OPERATIONS_MAX]:
        yield f"  {names[row]:>4}. {_moment(history, row, clock)}: {_operation(history, row)}"
    if len(rows) > _OPERATIONS_MAX:
        yield f"        … and {count(len(rows) - _OPERATIONS_MAX, 'more operation')}; --json shows all."


def _moment(history: History, row: int, clock: str) -> str:
    is_open = history.complete_index[row] == OPEN
    if clock == "events":
        begin = f"event {history.invoke_index[row] + 1}"
        return begin if is_open else f"{begin}–{history.complete_index[row] + 1}"
    begin = f"{history.invoke_us[row] / 1e6:.6f}"
    return f"{begin} s" if is_open else f"{begin}–{history.complete_us[row] / 1e6:.6f} s"


def _operation(history: History, row: int) -> str:
    did = f"client {history.process[row]} {predicate(history.row(row))}"
    return did if history.outcome[row] == "ok" else f"{did}: {_ending(history, row)}"


def _ending(history: History, row: int) -> str:
    if history.complete_index[row] == OPEN:
        return "never answered"
    error = history.error[row]
    reason = f" ({visible(error)})" if error else ""
    known = "it certainly did not happen" if history.outcome[row] == "fail" else "it may or may not have happened"
    return f"{known}{reason}"


def argument(finding: Finding, checked: CheckedHistory, names: Mapping[int, str]) -> list[str]:
    """Return the lines that lead from the operations, by their names, to the contradiction; empty without any."""
    detail = finding.detail
    if detail.get("edges"):
        return cycle_lines(finding)
    if checked.numbers is None and "order" in detail and "refused" in detail:
        return _dead_end(detail, names)
    return []


def _dead_end(detail: Mapping[str, Any], names: Mapping[int, str]) -> list[str]:
    """Return the longest order of the operations, and those that cannot be next."""
    placed = [names[row] for row in detail["order"] if row in names]
    refused = [names[row] for row in detail["refused"] if row in names]
    if not refused:
        return []
    state = value_text(detail.get("state"), _VALUE_LENGTH)
    begin = (
        f"After {', '.join(placed)}, in this order, the state is {state}"
        if placed
        else f"At first the state is {state}"
    )
    return [f"{begin}, and {' or '.join(refused)} cannot be next. No order of these operations fits."]
