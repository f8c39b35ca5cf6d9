"""Bookings of two things that are only useful together: both belong to one guest, or neither is booked.

Shape: `book`, whose key is a day and whose value is a guest, and `bookings`, whose key is a day. Both answer `[truck,
backhoe]`: the guest who has booked each by then, null where none has. Bookings are never given back.

| anomaly          | an ok answer                                                                       |
|------------------|------------------------------------------------------------------------------------|
| split-booking    | in which the two belong to different guests, or only one of them is booked          |
| double-booking   | that names another guest than an answer before it                                  |
| lost-write       | that names no guest, asked for after one had been named, and so do all later ones    |
| stale-read       | that names no guest, asked for after one had been named, and before one that does    |
| garbage-read, aborted-read, future-read | that names a guest who never asked, was told that he gets nothing,  |
|                  | or had not asked by then                                                           |

Source: the truck and the backhoe of "Patterns of Distributed Systems" ch. 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.classic.misreads import accuse_misreads, writers
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import client, token, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

if TYPE_CHECKING:
    from faultline.checkers.incremental.answers import IncrementalBookings

__all__ = ["BookingsChecker"]

_FUNCTIONS = ("book", "bookings")
_EXPECTED = "`book` of a guest and `bookings`, which both answer [truck, backhoe]."


class BookingsChecker:
    """Each day has at most one guest, who has both things and keeps them."""

    name = "booking"

    def incremental(self) -> IncrementalBookings:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.answers import IncrementalBookings

        return IncrementalBookings()

    def check(self, history: History, _run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every day of `history`."""
        expect_functions(self.name, history, _FUNCTIONS, _EXPECTED)
        conclusion = Conclusion(self.name, history)
        for day, rows in history.rows_by_key().items():
            _judge(conclusion, day, rows)
        answers, named = conclusion.counts["answers"], conclusion.counts["named"]
        if not named:
            conclusion.doubt("No guest ever booked anything, so nothing is known.")
        return conclusion.result(f"{named} of {answers} answers name a guest, and always one who has both for good.")


def _judge(conclusion: Conclusion, day: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    answers = [row for row in rows if history.outcome[row] == "ok"]
    for row in answers:
        if not isinstance(history.result[row], list | tuple) or len(history.result[row]) != 2:
            answered = f"answered {told(history.result[row])}"
            raise wrong_shape(BookingsChecker.name, history, row, answered, _EXPECTED)
    answers.sort(key=history.complete_index.__getitem__)
    conclusion.counts["answers"] += len(answers)
    conclusion.counts["named"] += sum(_owner(history, row) is not None for row in answers)
    askers = writers(history, [row for row in rows if history.f[row] == "book"])

    def said(case: Case) -> str:
        truck, backhoe = history.result[case.rows[-1]]
        asker = client(history, case.rows[-1])
        return f"{asker} was told that {told(truck)} has the truck and {told(backhoe)} the backhoe"

    def accuse(anomaly: str, cases: Iterator[Case], why: str) -> None:
        conclusion.accuse(anomaly, list(cases), lambda case: f"{said(case)}{why}", noun="answer", key=day)

    accuse("split-booking", _split(history, answers), "")
    accuse("double-booking", _double(history, answers), ", after another guest had been named")
    late = list(_late(history, answers))
    named_until = max((history.complete_index[row] for row in answers if _owner(history, row) is not None), default=-1)
    for anomaly, is_lost in (("lost-write", True), ("stale-read", False)):
        cases = (case for case in late if (history.invoke_index[case.rows[-1]] > named_until) is is_lost)
        accuse(anomaly, cases, ", after a guest had been named")
    owners = [(row, _owner(history, row)) for row in answers]
    named = [(row, owner, askers.get(token(owner))) for row, owner in owners if owner is not None]
    accuse_misreads(conclusion, named, key=day, did="was told of")


def _owner(history: History, row: int) -> Any:
    truck, backhoe = history.result[row]
    return backhoe if truck is None else truck


def _split(history: History, answers: Sequence[int]) -> Iterator[Case]:
    for row in answers:
        truck, backhoe = history.result[row]
        if truck != backhoe:
            yield Case([truck, backhoe], (row,))


def _double(history: History, answers: Sequence[int]) -> Iterator[Case]:
    named = [row for row in answers if _owner(history, row) is not None]
    for row in named[1:]:
        if _owner(history, row) != _owner(history, named[0]):
            yield Case(_owner(history, row), (named[0], row))


def _late(history: History, answers: Sequence[int]) -> Iterator[Case]:
    named = next((row for row in answers if _owner(history, row) is not None), None)
    for row in answers:
        late = named is not None and history.invoke_index[row] > history.complete_index[named]
        if late and _owner(history, row) is None and named is not None:
            yield Case(None, (named, row))
