"""A counter, whose reads must lie within the bounds of the additions around them (Jepsen's `counter`, both ways).

Shape: `add` with an integer, which may be negative; `increment` and `decrement` with a positive integer or null for
1; `read`, whose result is an integer. One counter for each key, 0 (or `initial`) at first.

At any moment an addition that was acknowledged counts, one that certainly failed never counts, and one that is in
flight or indeterminate may count or not: it widens the bounds, downwards when it is negative. The counter lies between
these bounds all the time, so a read lies between the least lower bound and the greatest upper bound while it was in
flight. Neighbouring bounds overlap, therefore every value between the two is possible.

A counter that was added to, with an acknowledgement, and never read leaves the verdict *unknown*.

Limits: bounds are necessary and not sufficient. A read of 7 after additions of 10 in flight is not refused, nor are
two reads whose values contradict one another; the linearizability checker sees those, at its price.

O(n log n): the least bound over each read's time comes from a stack of minima and a binary search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.minima import Minima
from faultline.checkers.common.shape import expect_functions, integer, wrong_shape
from faultline.checkers.common.words import client, counted
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.counters import IncrementalCounters

__all__ = ["OUT_OF_BOUNDS", "CounterChecker", "bounds_of_reads"]

OUT_OF_BOUNDS = "counter-out-of-bounds"

_EXPECTED = "`add`, `increment` or `decrement` with an integer, and `read` that answers one."
_SIGNS = {"add": 1, "increment": 1, "decrement": -1}


class CounterChecker:
    """A checker that every read lies within the bounds that the additions around it allow."""

    name = "counter"

    def __init__(self, *, initial: int = 0) -> None:
        self.initial = initial

    def incremental(self) -> IncrementalCounters:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.counters import IncrementalCounters

        return IncrementalCounters(self.initial, _SIGNS)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every counter of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, (*_SIGNS, "read"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            self._judge(conclusion, key, rows)
        conclusion.doubt_unread(("read",))
        return conclusion.result(f"All {counted(conclusion.counts['reads'], 'read')} lie within their bounds.")

    def _judge(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        history = conclusion.history
        bounds = bounds_of_reads(history, rows, self.initial, self._delta)
        wrong = {row: span for row, span in bounds.items() if not span[0] <= history.result[row] <= span[1]}
        conclusion.counts.update(reads=len(bounds), additions=len(rows) - sum(history.f[row] == "read" for row in rows))
        conclusion.accuse(
            OUT_OF_BOUNDS,
            [Case(history.result[row], (row,)) for row in wrong],
            lambda case: (
                f"{client(history, case.rows[0])} read {case.what}, and the additions before and during the read "
                f"allow {_told_span(*wrong[case.rows[0]])}"
            ),
            noun="wrong read",
            key=key,
        )
        outside = [{"operation": row, "read": history.result[row], "bounds": list(span)} for row, span in wrong.items()]
        conclusion.detail.setdefault("out_of_bounds", []).extend(outside[:8])

    def _delta(self, history: History, row: int) -> int:
        """Return the change of the counter by the operation in `row`; check the answer of a read instead."""
        f, value = history.f[row], history.value[row]
        if f == "read":
            if history.outcome[row] == "ok":
                integer(self.name, history, row, history.result[row], _EXPECTED)
            return 0
        delta = 1 if value is None and f != "add" else integer(self.name, history, row, value, _EXPECTED)
        if delta < 0 and f != "add":
            raise wrong_shape(self.name, history, row, f"has the negative amount {delta}", _EXPECTED)
        return _SIGNS[f] * delta


def _told_span(lower: int, upper: int) -> str:
    return f"only {lower}" if lower == upper else f"{lower} to {upper}"


def bounds_of_reads(
    history: History, rows: Sequence[int], initial: int, delta_of: Callable[[History, int], int]
) -> dict[int, tuple[int, int]]:
    """Return, for each ok read, the least lower and the greatest upper bound while it was in flight."""
    lower, upper = Minima(initial), Minima(-initial)
    bounds = {}
    for index, row, is_end in _events(history, rows):
        delta = delta_of(history, row)
        if history.f[row] == "read":
            if is_end and history.outcome[row] == "ok":
                begin = history.invoke_index[row]
                bounds[row] = (lower.since(begin), -upper.since(begin))
        elif history.outcome[row] != "fail":
            moves_lower = is_end == (delta > 0)
            (lower if moves_lower else upper).move(index, delta if moves_lower else -delta)
    return bounds


def _events(history: History, rows: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    """Return the beginnings, and the ends that move a bound, of operations in order of index."""
    events = [(history.invoke_index[row], row, False) for row in rows]
    events += [
        (history.complete_index[row], row, True)
        for row in rows
        if history.complete_index[row] != OPEN and history.outcome[row] == "ok"
    ]
    return iter(sorted(events))
