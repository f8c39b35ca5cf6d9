"""A history checked under a model by name, as the values of one offline HTML page, `checked.html`.

The verdict in a sentence; then, for each finding, its operations as bars with a row for each client, the ring of a
cycle of transactions, the operations in words, and the argument over them. A history without findings is drawn as it
is, up to a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from faultline.harness.history import OPEN, History
from faultline.harness.verdict import Finding
from faultline.reports.cycle import cycle_svg
from faultline.reports.descriptions import operation_label, predicate
from faultline.reports.explanation import CheckedHistory, argument, names_of
from faultline.reports.porcupine_page import OPERATIONS_MAX, history_svg

__all__ = ["FINDINGS_MAX", "checked_values"]

FINDINGS_MAX = 20
"""The largest number of findings that are shown; the page names the number of the others."""


def checked_values(checked: CheckedHistory) -> dict[str, Any]:
    """Return the values for the template, as plain data."""
    result = checked.result
    return {
        "title": f"{checked.model}: {result.verdict.value}",
        "verdict": result.verdict.value,
        "sentence": result.sentence,
        "operations": checked.operations,
        "findings": [_finding(number, checked, each) for number, each in enumerate(result.findings[:FINDINGS_MAX])],
        "findings_left_out": max(0, len(result.findings) - FINDINGS_MAX),
        "svg": "" if result.findings else _svg(0, checked, list(range(len(checked.imported.history))), ()),
        "operations_left_out": max(0, len(checked.imported.history) - OPERATIONS_MAX),
    }


def _finding(number: int, checked: CheckedHistory, finding: Finding) -> dict[str, Any]:
    rows = checked.rows(finding)
    names = names_of(checked, finding, rows)
    refused = finding.detail.get("refused", ()) if checked.numbers is None else ()
    history = checked.imported.history
    return {
        "id": f"finding-{number + 1}",
        "anomaly": finding.anomaly,
        "sentence": finding.sentence,
        "svg": _svg(number, checked, rows, refused),
        "cycle_svg": cycle_svg(finding, f"finding-{number + 1}-"),
        "operations": [{"name": names[row], "text": _told(history, row)} for row in rows[:OPERATIONS_MAX]],
        "operations_left_out": max(0, len(rows) - OPERATIONS_MAX),
        "argument": argument(finding, checked, names),
    }


def _told(history: History, row: int) -> str:
    return f"client {history.process[row]} {predicate(history.row(row))}"


@dataclass(frozen=True, slots=True)
class _Element:
    client_id: int
    start: float
    end: float | None
    description: str
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    index: int
    state: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """The operations of a finding in the shape that `history_svg` draws; those that no step names are outlined."""

    history: Sequence[_Element]
    lanes: Sequence[int]
    partial_linearizations: Sequence[Sequence[_Step]]
    largest: Mapping[int, int]
    unplaced: Sequence[int] = ()


def _svg(number: int, checked: CheckedHistory, rows: Sequence[int], telling: Sequence[int]) -> Markup:
    """Return the operations in `rows` as bars, on the common order of events; those in `telling` stand out."""
    history = checked.imported.history
    rows = rows[:OPERATIONS_MAX]
    if not rows:
        return Markup("")
    has_keys = len({history.key[row] for row in rows}) > 1
    elements = [
        _Element(
            history.process[row],
            history.invoke_index[row],
            None if history.complete_index[row] == OPEN else history.complete_index[row],
            operation_label(history.row(row), has_keys),
        )
        for row in rows
    ]
    plain = [_Step(place) for place, row in enumerate(rows) if row not in telling]
    part = _Part(elements, sorted({element.client_id for element in elements}), [plain], {})
    return history_svg(number, part, range(len(rows)), ())
