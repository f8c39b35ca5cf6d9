"""Bookings of two things that are only useful together: both belong to one guest, or to nobody.

Shape: `book`, whose key is a day and whose value is a guest, and `bookings`, whose key is a day. Both answer `[truck,
backhoe]`: who has booked each by then, null where nobody has. Bookings are never given back.

| anomaly          | an ok answer                                                                       |
|------------------|------------------------------------------------------------------------------------|
| split-booking    | in which the two belong to different guests, or only one of them to anybody         |
| double-booking   | that names another guest than an answer before it                                  |
| lost-booking     | that names nobody, asked for after somebody had been named                         |
| unknown-guest    | that names somebody who had not asked by then, or was told that he gets nothing    |

Source: the truck and the backhoe of "Patterns of Distributed Systems" ch. 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from faultline.checkers.classic.conclusion import Case, Conclusion
from faultline.checkers.classic.words import client, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult

__all__ = ["BookingsChecker"]

_FUNCTIONS = ("book", "bookings")


class BookingsChecker:
    """Each day has at most one guest, who has both things and keeps them."""

    name = "booking"

    def check(self, history: History, _run: RunRecord | None = None) -> CheckResult:
        """The verdict on every day of `history`."""
        conclusion = Conclusion(self.name, history)
        for day, rows in history.rows_by_key().items():
            _judge(conclusion, day, [row for row in rows if history.f[row] in _FUNCTIONS])
        answers, named = conclusion.counts["answers"], conclusion.counts["named"]
        if answers and not named:
            conclusion.doubt("Nobody ever booked anything, so nothing is known.")
        return conclusion.result(f"{named} of {answers} answers name a guest, and always one who has both for good.")


def _judge(conclusion: Conclusion, day: str | None, rows: Sequence[int]) -> None:
    history = conclusion.history
    answers = [row for row in rows if history.outcome[row] == "ok"]
    answers.sort(key=history.complete_index.__getitem__)
    conclusion.counts["answers"] += len(answers)
    conclusion.counts["named"] += sum(_owner(history, row) is not None for row in answers)
    askers = {history.value[row]: row for row in rows if history.f[row] == "book"}

    def said(case: Case) -> str:
        truck, backhoe = history.result[case.rows[-1]]
        asker = client(history, case.rows[-1])
        return f"{asker} was told that {told(truck)} has the truck and {told(backhoe)} the backhoe"

    def accuse(anomaly: str, cases: Iterator[Case], why: str) -> None:
        conclusion.accuse(anomaly, list(cases), lambda case: f"{said(case)}{why}", noun="answer", key=day)

    accuse("split-booking", _split(history, answers), "")
    accuse("double-booking", _double(history, answers), ", after another guest had been named")
    accuse("lost-booking", _lost(history, answers), ", after somebody had been named")
    accuse("unknown-guest", _unknown(history, answers, askers), ", who cannot have booked it")


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


def _lost(history: History, answers: Sequence[int]) -> Iterator[Case]:
    named = next((row for row in answers if _owner(history, row) is not None), None)
    for row in answers:
        late = named is not None and history.invoke_index[row] > history.complete_index[named]
        if late and _owner(history, row) is None and named is not None:
            yield Case(None, (named, row))


def _unknown(history: History, answers: Sequence[int], askers: dict[Any, int]) -> Iterator[Case]:
    for row in answers:
        owner = _owner(history, row)
        asked = askers.get(owner)
        if owner is None:
            continue
        if asked is None:
            yield Case(owner, (row,))
        elif history.outcome[asked] == "fail" or history.invoke_index[asked] > history.complete_index[row]:
            yield Case(owner, (asked, row))
