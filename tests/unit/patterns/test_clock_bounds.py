"""Clocks that know how wrong they may be, and readers who cannot place a version."""

from __future__ import annotations

import pytest
from campaign_of_waits import outcomes
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import (
    BoundedClock,
    ClockBound,
    PendingWrites,
    uncertain_version,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.client import READ_TIMEOUT
from faultline.systems_under_test.reference.timestamped_kv.clocks import HybridStamps
from faultline.systems_under_test.reference.timestamped_kv.options import TimestampSettings


def shown(true_us: int, error_us: int, share: int) -> BoundedClock:
    """A clock that is wrong by so many hundredths of the error it admits."""
    return BoundedClock(lambda: true_us + error_us * share // 100, error_us)


ERRORS = st.lists(st.tuples(st.integers(0, 500), st.integers(-100, 100)), min_size=1, max_size=6)


@pytest.mark.rows("CBW-R15", "CBW-R16")
@given(st.integers(1_000, 10_000), ERRORS)
def test_while_clocks_keep_their_bounds_all_intervals_hold_the_true_time(true_us, clocks) -> None:
    bounds = [shown(true_us, error_us, share).now() for error_us, share in clocks]
    assert all(bound.earliest_us <= true_us <= bound.latest_us for bound in bounds)
    assert max(bound.earliest_us for bound in bounds) <= min(bound.latest_us for bound in bounds)


@pytest.mark.rows("CBW-R16")
@given(st.integers(1_000, 10_000), st.integers(1, 1_000), ERRORS)
def test_an_earlier_interval_never_lies_wholly_after_a_later_one(true_us, later_us, clocks) -> None:
    for error_us, share in clocks:
        for other_us, other_share in clocks:
            before = shown(true_us, error_us, share).now()
            after = shown(true_us + later_us, other_us, other_share).now()
            assert before.earliest_us < after.latest_us


@pytest.mark.rows("CBW-R16")
def test_a_clock_beyond_its_bound_does_not_hold_the_true_time() -> None:
    assert BoundedClock(lambda: 1_200, 100).now().after(1_000) is False
    assert BoundedClock(lambda: 1_200, 100).now().before(1_000) is True


@pytest.mark.rows("CBW-R18", "CBW-M5")
def test_a_time_that_the_earliest_just_shows_is_not_past() -> None:
    bound = ClockBound(10, 20)
    assert bound.before(9) and not bound.before(10)
    assert bound.after(21) and not bound.after(20)


@pytest.mark.rows("CBW-R6")
def test_to_ask_for_the_time_takes_no_tick() -> None:
    class Clock:
        def wall_us(self) -> int:
            return 5_000

        def monotonic_us(self) -> int:
            return 0

    stamps = HybridStamps(Clock(), TimestampSettings.read({}))
    assert [stamps.read_time(BEFORE_ALL) for _ in range(3)] == [HybridTimestamp(5_000, 0)] * 3
    assert stamps.tick(BEFORE_ALL) == HybridTimestamp(5_000, 1)


def test_a_pending_write_of_another_key_or_a_later_time_stops_no_read() -> None:
    pending = PendingWrites()
    pending.add("title", HybridTimestamp(5, 0))
    assert pending.at_or_before("title", HybridTimestamp(5, 0))
    assert not pending.at_or_before("title", HybridTimestamp(4, 9))
    assert not pending.at_or_before("chapter", HybridTimestamp(9, 0))
    pending.remove("title", HybridTimestamp(5, 0))
    assert not pending.at_or_before("title", HybridTimestamp(9, 0))


def test_of_several_uncertain_versions_the_newest_is_told() -> None:
    versions = [HybridTimestamp(time, 0) for time in (1, 3, 4, 9)]
    assert uncertain_version(versions, HybridTimestamp(2, 0), 5) == HybridTimestamp(4, 0)
    assert uncertain_version(versions, HybridTimestamp(4, 0), 5) is None


@pytest.mark.rows("CBW-R12")
def test_after_its_last_attempt_an_uncertain_read_fails_and_nothing_else_does() -> None:
    errors = outcomes("read-restart", 6, read_attempts="1")
    assert READ_TIMEOUT in errors["read"]
    assert READ_TIMEOUT not in errors["write"]


@pytest.mark.rows("CBW-R10")
@pytest.mark.parametrize("restart_at", ["version", "later"])
def test_an_uncertain_reader_reads_again_at_the_version_or_later(restart_at: str) -> None:
    errors = outcomes("read-restart", 3, restart_at=restart_at)
    assert errors.restarts > 0
    assert errors.violations == []
