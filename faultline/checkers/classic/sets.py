"""A set that only grows, judged by its last read (Jepsen's `set`).

Shape: `add` with the element as value; `read`, whose result is the list of elements. One set for each key.

Every element whose add was acknowledged before the last read began must be in it (*lost* otherwise). No element may be
in it that no client tried to add before it ended, or whose adds all certainly failed (*unexpected*), and none twice
(*duplicated*). An element of an indeterminate add in it has been *recovered*, which is only counted.

Jepsen compares with all adds of the history; here an element whose add was acknowledged after the last read began, and
that the read lacks, is not lost. Its fate is *unknown*, as is that of a set without an ok read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import elements, ended, expect_functions
from faultline.checkers.common.words import client, counted, listed, token, tokens, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["DUPLICATED_ELEMENT", "EXPECTED", "LOST_ELEMENT", "UNEXPECTED_ELEMENT", "SetChecker"]

LOST_ELEMENT = "lost-element"
UNEXPECTED_ELEMENT = "unexpected-element"
DUPLICATED_ELEMENT = "duplicated-element"

EXPECTED = "`add` of an element, and `read` that answers the list of all elements."


class SetChecker:
    """A checker that the last read has all acknowledged elements, and otherwise only attempted ones, once each."""

    name = "set"

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every set of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("add", "read"), EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            _judge(conclusion, key, rows)
        counts = conclusion.counts
        conclusion.doubt_unread(("read",))
        return conclusion.result(
            f"All {counted(counts['acknowledged'], 'acknowledged element')} are in the last read; "
            f"{counts['recovered']} of indeterminate adds are in it too."
        )


def _judge(conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
    adds: dict[Any, list[int]] = {}
    for row in rows:
        if history.f[row] == "add":
            adds.setdefault(token(history.value[row]), []).append(row)
    acknowledged = {element: first for element in adds if (first := _first_ok(history, adds[element])) is not None}
    conclusion.counts.update(attempted=len(adds), acknowledged=len(acknowledged), reads=len(reads))
    if not reads:
        return
    _judge_last_read(conclusion, key, max(reads, key=lambda row: history.complete_index[row]), adds, acknowledged)


def _judge_last_read(
    conclusion: Conclusion, key: str | None, last: int, adds: dict[Any, list[int]], acknowledged: dict[Any, int]
) -> None:
    history = conclusion.history
    seen = Counter(tokens(elements(conclusion.checker, history, last, EXPECTED)))
    lost = [
        Case(element, (row, last))
        for element, row in acknowledged.items()
        if element not in seen and history.complete_index[row] < history.invoke_index[last]
    ]
    unread = [
        element
        for element, row in acknowledged.items()
        if element not in seen and history.complete_index[row] > history.invoke_index[last]
    ]
    if unread:
        place = "" if key is None else f" of {key}"
        told_of = f"{counted(len(unread), 'acknowledged element')}{place} ({listed(unread, len(unread))})"
        conclusion.doubt(f"Nothing is known about {told_of}: no read began afterwards.", Cause.NOT_READ_OUT)
    unexpected = [
        Case(element, (*adds.get(element, ())[:1], last))
        for element in seen
        if not _may_contain(history, adds.get(element, ()), last)
    ]
    duplicated = [Case(element, (*adds.get(element, ())[:1], last)) for element, count in seen.items() if count > 1]
    conclusion.counts["recovered"] += sum(1 for element in seen if element in adds and element not in acknowledged)
    reader = client(history, last)
    conclusion.accuse(
        LOST_ELEMENT,
        lost,
        lambda case: f"the add of {told(case.what)} was acknowledged, and the last read, by {reader}, lacks it",
        noun="lost element",
        key=key,
    )
    conclusion.accuse(
        UNEXPECTED_ELEMENT,
        unexpected,
        lambda case: f"{reader} read {told(case.what)}, which no add that may have taken effect put there",
        noun="unexpected element",
        key=key,
    )
    conclusion.accuse(
        DUPLICATED_ELEMENT,
        duplicated,
        lambda case: f"{reader} read {told(case.what)} {seen[case.what]} times in one set",
        noun="duplicated element",
        key=key,
    )


def _first_ok(history: History, rows: Sequence[int]) -> int | None:
    finished = [row for row in rows if history.outcome[row] == "ok"]
    return min(finished, key=lambda row: history.complete_index[row], default=None)


def _may_contain(history: History, adds: Sequence[int], read: int) -> bool:
    return any(history.outcome[row] != "fail" and history.invoke_index[row] < ended(history, read) for row in adds)
