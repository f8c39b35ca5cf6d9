"""Queues, judged by the elements that went in and came out, in any order (Jepsen's `queue` and `total-queue`).

Shape: `enqueue` with the element as value; `dequeue`, whose result is the element, or null (or a `fail` whose error
begins with `empty`) for an empty queue; `drain`, whose result is the list of all remaining elements. One queue for
each key.

- *unexpected*: an element came out that no client had tried to put in by then, or only by enqueues that certainly
  failed.
- *duplicated*: an element came out more often than it was put in. A violation unless `allow_duplicates`, for a queue
  that promises delivery at least once; Jepsen counts them and stays valid.
- *lost* (`total-queue` only): an acknowledged element never came out, although the queue was found empty afterwards, by
  a drain or an empty dequeue. An indeterminate dequeue may have taken one element, an indeterminate drain any number:
  as many missing elements as that are *unknown*, and only further ones are lost. Without a drain none is.
- *recovered*: the element of an indeterminate enqueue came out; counted only.

A queue that took an acknowledged element, and from which nothing was ever asked, leaves the verdict *unknown*.

Elements need not be unique. The order of a queue is judged by linearizability, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import elements, expect_functions
from faultline.checkers.common.words import client, counted, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.deliveries import IncrementalQueues

__all__ = ["DUPLICATED_DELIVERY", "LOST_DELIVERY", "UNEXPECTED_DELIVERY", "QueueChecker", "TotalQueueChecker"]

LOST_DELIVERY = "lost-delivery"
UNEXPECTED_DELIVERY = "unexpected-delivery"
DUPLICATED_DELIVERY = "duplicated-delivery"

_EXPECTED = "`enqueue` of an element, `dequeue` that answers one or null, and `drain` that answers a list."


class QueueChecker:
    """A checker that every element that comes out was put in, and no more often than that."""

    name = "queue"
    is_total = False

    def __init__(self, *, allow_duplicates: bool = False) -> None:
        self.allow_duplicates = allow_duplicates

    def incremental(self) -> IncrementalQueues | None:
        """Return the twin that judges while a run goes on; none where duplicates are allowed."""
        from faultline.checkers.incremental.deliveries import IncrementalQueues

        return None if self.allow_duplicates else IncrementalQueues(self.name)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every queue of `history`; of `run` nothing is needed."""
        expect_functions(self.name, history, ("enqueue", "dequeue", "drain"), _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for key, rows in history.rows_by_key().items():
            queue = _Queue(conclusion, key, rows)
            queue.judge_deliveries(self.allow_duplicates)
            if self.is_total:
                queue.judge_losses()
            queue.doubt_silence()
        counts = conclusion.counts
        if not counts["looks"]:
            conclusion.doubt(f"Nothing was taken out by {counted(len(history), 'operation')}, so nothing is known.")
        return conclusion.result(
            f"Of {counted(counts['attempted'], 'enqueued element')} {counts['delivered']} came out: none "
            f"unexpected, {counts['duplicated']} duplicated, {counts['recovered']} recovered."
        )


class TotalQueueChecker(QueueChecker):
    """A checker that every element that was put in comes out, and no other one does."""

    name = "total-queue"
    is_total = True


@dataclass(slots=True)
class _Element:
    """The rows that put an element in, and those that took it out, in order of invocation."""

    enqueues: list[int] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)


class _Queue:
    """One queue: its elements, and the moments at which it was found empty."""

    def __init__(self, conclusion: Conclusion, key: str | None, rows: Sequence[int]) -> None:
        self.conclusion, self.key, self.history = conclusion, key, conclusion.history
        self.rows = rows
        self.elements: dict[Any, _Element] = {}
        self.found_empty: list[int] = []
        for row in rows:
            if self.history.f[row] == "enqueue":
                self._element(self.history.value[row]).enqueues.append(row)
            elif self.history.outcome[row] == "ok":
                self._take(row)
            elif self.history.outcome[row] == "fail" and self.history.f[row] == "dequeue":
                self.found_empty += [row] if (self.history.error[row] or "").startswith("empty") else []

    def judge_deliveries(self, allow_duplicates: bool) -> None:
        """Report elements that came out without having been put in, or too often."""
        unexpected, duplicated = [], []
        for what, element in self.elements.items():
            early = self._first_without_enqueue(element)
            if early is None:
                continue
            known = self._possible(element)
            if known and len(element.deliveries) > len(known):
                duplicated.append(Case(what, (known[0], *element.deliveries[: len(known) + 1])))
            else:
                unexpected.append(Case(what, (*element.enqueues[:1], early)))
        self._count(duplicated)
        self._accuse(UNEXPECTED_DELIVERY, unexpected, "came out, and no enqueue can have put it in by then")
        if not allow_duplicates:
            self._accuse(DUPLICATED_DELIVERY, duplicated, "came out more often than it was put in")

    def judge_losses(self) -> None:
        """Report acknowledged elements that were gone when the queue was found empty, and never came out."""
        history = self.history
        empty_begin = max((history.invoke_index[row] for row in self.found_empty), default=-1)
        missing = list(self._missing())
        gone = [case for case in missing if history.complete_index[case.rows[0]] < empty_begin]
        excuse = self._may_have_taken()
        self.conclusion.counts["missing"] += len(missing)
        if excuse is not None and len(gone) > excuse:
            last_empty = max(self.found_empty, key=lambda row: history.invoke_index[row])
            cases = [Case(case.what, (*case.rows, last_empty)) for case in gone[: len(gone) - excuse]]
            self._accuse(LOST_DELIVERY, cases, "was acknowledged and never came out, though the queue is empty")
        elif missing:
            cause = Cause.INDEFINITE if gone else Cause.NOT_READ_OUT
            self.conclusion.doubt(self._why_missing(len(missing), len(gone), excuse), cause)

    def doubt_silence(self) -> None:
        """Doubt a queue that took an element, with an acknowledgement, and from which none was ever asked."""
        looks = len(self.found_empty) + sum(len(element.deliveries) for element in self.elements.values())
        self.conclusion.counts["looks"] += looks
        acknowledged = (row for row in self.rows if self.history.outcome[row] == "ok")
        if not looks and next(acknowledged, None) is not None:
            place = "the queue" if self.key is None else self.key
            self.conclusion.doubt(f"Nothing was taken out of {place}, so its fate is unknown.", Cause.NOT_READ_OUT)

    def _why_missing(self, missing: int, gone: int, excuse: int | None) -> str:
        elements_text = f"{counted(missing, 'acknowledged element')} never came out"
        if not gone:
            return f"{elements_text}, but the queue was not found empty afterwards: they may still be in it."
        takers = "an indeterminate drain" if excuse is None else counted(excuse, "indeterminate dequeue")
        return f"{elements_text}, but {takers} may have taken the missing ones."

    def _element(self, value: Any) -> _Element:
        return self.elements.setdefault(token(value), _Element())

    def _take(self, row: int) -> None:
        history = self.history
        if history.f[row] == "drain":
            for value in elements(self.conclusion.checker, history, row, _EXPECTED):
                self._element(value).deliveries.append(row)
            self.found_empty.append(row)
        elif history.result[row] is None:
            self.found_empty.append(row)
        else:
            self._element(history.result[row]).deliveries.append(row)

    def _possible(self, element: _Element) -> list[int]:
        return [row for row in element.enqueues if self.history.outcome[row] != "fail"]

    def _first_without_enqueue(self, element: _Element) -> int | None:
        """Return the first delivery without its enqueue, if any: the n-th to end needs n enqueues that began before."""
        history = self.history
        begins = [history.invoke_index[row] for row in self._possible(element)]
        deliveries = sorted(element.deliveries, key=lambda row: history.complete_index[row])
        for number, row in enumerate(deliveries):
            if number >= len(begins) or begins[number] > history.complete_index[row]:
                return row
        return None

    def _missing(self) -> Iterator[Case]:
        """Return acknowledged enqueues beyond the number of deliveries: the latest ones of each element."""
        for what, element in self.elements.items():
            acknowledged = [row for row in element.enqueues if self.history.outcome[row] == "ok"]
            for row in acknowledged[len(element.deliveries) :]:
                yield Case(what, (row,))

    def _may_have_taken(self) -> int | None:
        """Return the number of elements that indeterminate operations may have taken; None for any number."""
        unknown = [self.history.f[row] for row in self.rows if self.history.outcome[row] == "info"]
        return None if "drain" in unknown else unknown.count("dequeue")

    def _count(self, duplicated: Sequence[Case]) -> None:
        recovered = 0
        for element in self.elements.values():
            acknowledged = sum(self.history.outcome[row] == "ok" for row in element.enqueues)
            recovered += max(0, min(len(element.deliveries), len(self._possible(element))) - acknowledged)
        self.conclusion.counts.update(
            attempted=sum(len(element.enqueues) for element in self.elements.values()),
            delivered=sum(len(element.deliveries) for element in self.elements.values()),
            recovered=recovered,
            duplicated=len(duplicated),
        )

    def _accuse(self, anomaly: str, cases: Sequence[Case], what_happened: str) -> None:
        self.conclusion.accuse(
            anomaly,
            cases,
            lambda case: f"{told(case.what)} {what_happened} (seen by {client(self.history, case.rows[-1])})",
            noun="element",
            key=self.key,
        )
