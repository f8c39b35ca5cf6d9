"""The checker of leases refuses histories with two holders, tokens that went back and stale writes; and only those."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.classic.lock import TWO_HOLDERS
from faultline.checkers.leased_lock import LeasedLockChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, ok
from faultline.harness.verdict import Verdict


def story(*steps: tuple[int, str, Any]) -> History:
    """One operation after the other: who, what, and the result, or the code of an error."""
    history = History()
    for time_us, (process, f, result) in enumerate(steps):
        row = history.invoke(Operation(process, f, "lock", None), time_us, process, "athens")
        outcome: Outcome = fail(result) if isinstance(result, str) else ok(result)
        history.complete(row, outcome, time_us)
    return history


def anomalies(*steps: tuple[int, str, Any]) -> list[str]:
    return [finding.anomaly for finding in LeasedLockChecker().check(story(*steps)).findings]


def acquire(process: int, token: int) -> tuple[int, str, Any]:
    return process, "acquire", {"token": token}


def check(process: int, *, holds: bool = True) -> tuple[int, str, Any]:
    return process, "check", {"token": 0} if holds else "not-held"


def write(process: int, token: int, index: int, f: str = "guarded-write") -> tuple[int, str, Any]:
    return process, f, {"token": token, "index": index}


@pytest.mark.rows("LS-I1")
def test_an_owner_that_believes_in_its_lease_after_another_was_given_it_is_found() -> None:
    assert anomalies(acquire(0, 5), acquire(1, 9), check(0)) == [TWO_HOLDERS]


def test_an_operation_that_is_still_open_proves_no_belief() -> None:
    history = story(acquire(0, 5), acquire(1, 9))
    history.invoke(Operation(0, "check", "lock", None), 2, 0, "athens")
    assert LeasedLockChecker().check(history).findings == ()


@pytest.mark.parametrize(
    "between",
    [check(0, holds=False), (0, "release", None), (0, "abandon", None), check(0)],
    ids=["lost", "released", "abandoned", "checked before"],
)
def test_an_owner_that_was_not_seen_to_trust_its_lease_any_more_is_not_accused(between: Any) -> None:
    assert anomalies(acquire(0, 5), between, acquire(1, 9), check(1), check(0, holds=False)) == []


def test_tokens_that_go_back_or_come_twice_are_found() -> None:
    assert anomalies(acquire(0, 5), (0, "release", None), acquire(1, 3)) == ["fencing-token-went-back"]
    assert anomalies(acquire(0, 5), (0, "release", None), acquire(1, 5)) == ["duplicated-fencing-token"]


@pytest.mark.rows("LS-R27")
def test_a_write_under_an_older_token_behind_one_under_a_newer_is_found_and_one_before_it_is_not() -> None:
    first = (acquire(0, 5), write(0, 5, 6), (0, "release", None), acquire(1, 9))
    assert anomalies(*first, write(1, 9, 10), write(0, 5, 11, "late-write")) == ["stale-write-accepted"]
    assert anomalies(*first, write(0, 5, 10, "late-write"), write(1, 9, 11)) == []


def test_a_history_in_which_no_client_got_a_lease_is_vacuous() -> None:
    assert LeasedLockChecker().check(story((0, "acquire", "duplicate-lease"))).verdict is Verdict.VACUOUS
