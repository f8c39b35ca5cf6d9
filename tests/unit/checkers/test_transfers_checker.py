"""Transfers that count twice, never, or without having been acknowledged; and histories in other words."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.adapted import adapted, renamed
from faultline.checkers.classic.bank import BankChecker
from faultline.checkers.classic.monotonic import MonotonicChecker
from faultline.checkers.classic.transfers import TransfersChecker
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info, ok
from faultline.harness.verdict import CheckResult, Verdict

OPENING = {"boston": 50, "pune": 75}


def history_of(*steps: tuple[str, Any, Outcome]) -> History:
    """Operations one after another, each by a process of its own."""
    history = History()
    for number, (f, value, outcome) in enumerate(steps):
        row = history.invoke(Operation(number, f, "widgets", value), 10 * number, 0, "athens")
        history.complete(row, outcome, 10 * number + 5)
    return history


def move(amount: int, outcome: Outcome) -> tuple[str, Any, Outcome]:
    return ("transfer", {"from": "boston", "to": "pune", "amount": amount}, outcome)


def read(boston: int, pune: int) -> tuple[str, Any, Outcome]:
    return ("read", None, ok({"boston": boston, "pune": pune}))


def judged(*steps: tuple[str, Any, Outcome]) -> CheckResult:
    return TransfersChecker(opening=OPENING).check(history_of(*steps))


def test_a_transfer_that_counts_once_passes() -> None:
    assert judged(read(50, 75), move(40, ok(None)), read(10, 115)).verdict is Verdict.PASS


@pytest.mark.parametrize(("boston", "pune"), [(50, 75), (-30, 155)])
def test_a_transfer_that_counts_never_or_twice_is_convicted_though_the_total_is_right(boston: int, pune: int) -> None:
    steps = (move(40, ok(None)), read(boston, pune))
    result = judged(*steps)
    assert result.verdict is Verdict.VIOLATION
    assert {finding.anomaly for finding in result.findings} == {"balance-out-of-bounds"}
    assert BankChecker(total=125, negative_balances=True).check(history_of(*steps)).verdict is Verdict.PASS


@pytest.mark.parametrize(("boston", "pune"), [(50, 75), (10, 115)])
def test_an_indeterminate_transfer_may_count_or_not(boston: int, pune: int) -> None:
    assert judged(move(40, info("timeout")), read(boston, pune)).verdict is Verdict.PASS


def test_a_refused_transfer_must_not_count() -> None:
    refused = Outcome("fail", None, "insufficient-quantity")
    assert judged(move(40, refused), read(10, 115)).verdict is Verdict.VIOLATION
    assert judged(move(40, refused), read(50, 75)).verdict is Verdict.PASS


def test_without_a_read_nothing_is_known() -> None:
    assert judged(move(40, ok(None))).verdict is Verdict.UNKNOWN


def test_a_history_of_another_shape_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="transfers"):
        judged(("transfer", 40, ok(None)))
    with pytest.raises(UsageError, match="instead of balances"):
        judged(("read", None, ok(7)))


def test_an_adapted_checker_sees_other_names_and_answers_and_the_history_stays_as_it_was() -> None:
    history = history_of(("move", {"from": "boston", "to": "pune", "amount": 40}, ok(None)), ("read", None, ok(None)))
    checker = adapted(
        TransfersChecker(opening=OPENING), requests=renamed({"move": "transfer"}), answers=lambda _: dict(OPENING)
    )
    result = checker.check(history, None)
    assert (checker.name, result.verdict) == ("transfers", Verdict.VIOLATION)
    assert (history.f, history.result) == (["move", "read"], [None, None])


def test_several_lists_that_went_back_are_told_together() -> None:
    """Lists cannot be hashed; a finding that names several of them still has its sentence."""
    history = History()
    for number, seen in enumerate(([1, 2, 3], [1, 2], [1])):
        history.complete(history.invoke(Operation(0, "read", "k"), number, 0, "athens"), ok(seen), number)
    assert "2 step backs in all: [1, 2], [1]" in MonotonicChecker().check(history, None).sentence
