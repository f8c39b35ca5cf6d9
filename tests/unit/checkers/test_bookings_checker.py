"""Bookings that are split, double, lost or made up are found; the histories beside them pass."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.adapted import adapted, renamed
from faultline.checkers.bookings import BookingsChecker
from faultline.checkers.classic.bank import BankChecker
from faultline.harness.verdict import Verdict


def book(guest, result=None, **more):
    return op("book", guest, [guest, guest] if result is None else result, key="monday", **more)


def look(truck, backhoe, **more):
    return op("bookings", None, [truck, backhoe], key="monday", **more)


def judged(*operations):
    return BookingsChecker().check(history_of(*operations))


@pytest.mark.rows("TPC-I3")
@pytest.mark.parametrize(
    "operations",
    [
        (look(None, None), book("alice"), look("alice", "alice"), book("bob", ["alice", "alice"])),
        (book("alice", span=(0, 9)), look(None, None, span=(1, 2), process=1), look("alice", "alice", span=(3, 4))),
        (book("alice", outcome="info"), look("alice", "alice")),
        (book("alice", outcome="fail"), book("bob"), look("bob", "bob")),
        (book("alice"), look(None, None) | {"key": "tuesday"}),
    ],
)
def test_one_guest_who_has_both_for_good_is_fine(operations) -> None:
    assert judged(*operations).verdict is Verdict.PASS


@pytest.mark.rows("TPC-I3")
@pytest.mark.parametrize(
    ("operations", "anomaly"),
    [
        ((book("alice"), look("alice", None)), "split-booking"),
        ((book("alice"), book("bob", ["alice", "bob"])), "split-booking"),
        ((book("alice"), book("bob")), "double-booking"),
        ((book("alice"), look(None, None)), "lost-write"),
        ((book("alice"), look(None, None), look("alice", "alice")), "stale-read"),
        ((book("alice"), look("alice", "alice"), look(None, None)), "lost-write"),
        ((look("carol", "carol"),), "garbage-read"),
        ((book("alice", outcome="fail"), look("alice", "alice")), "aborted-read"),
        ((look("alice", "alice"), book("alice")), "future-read"),
    ],
)
def test_what_no_correct_store_answers_is_found(operations, anomaly: str) -> None:
    assert anomaly in anomalies(judged(*operations))


def test_without_any_booking_nothing_is_known() -> None:
    assert judged(look(None, None)).verdict is Verdict.VACUOUS
    assert judged().verdict is Verdict.VACUOUS


@pytest.mark.parametrize(("london", "verdict"), [(None, Verdict.PASS), (3, Verdict.VIOLATION)])
def test_answers_are_adapted_by_the_name_under_which_the_checker_sees_them(london, verdict: Verdict) -> None:
    def with_opening(answer):
        return {account: 5 if balance is None else balance for account, balance in answer.items()}

    checker = adapted(
        BankChecker(total=10, accounts=("boston", "london")),
        requests=renamed({"balances": "read"}),
        answers=with_opening,
    )
    history = history_of(op("balances", None, {"boston": 5, "london": london}))
    assert checker.check(history, None).verdict is verdict  # type: ignore[arg-type]  # no run is needed
