"""Hybrid clocks: stamps that ascend, follow causes, and stay near the time on the wall."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import (
    ClockTooFarAhead,
    HybridClock,
    HybridTimestamp,
    as_of_system_time,
)


class Wall:
    """A wall clock that shows what the test sets."""

    def __init__(self, now_us: int = 1_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us


def stamp(wall_us: int, ticks: int = 0) -> HybridTimestamp:
    return HybridTimestamp(wall_us, ticks)


@pytest.mark.rows("HYC-R1", "HYC-M3")
def test_the_wall_time_comes_first_and_ticks_decide_between_equals():
    assert stamp(1, 9) < stamp(2, 0)
    assert stamp(2, 0) < stamp(2, 1)


@pytest.mark.rows("HYC-R2", "HYC-S2")
def test_a_clock_that_stands_still_is_helped_by_ticks_until_it_goes_on():
    wall = Wall(1_000)
    clock = HybridClock(wall)
    assert [clock.now().ticks for _ in range(1_000)] == list(range(1, 1_001))
    wall.now_us = 1_001
    assert clock.now() == stamp(1_001, 0)


@pytest.mark.rows("HYC-S3", "HYC-R2")
def test_a_clock_that_is_set_back_keeps_its_stamps_until_time_catches_up():
    wall = Wall(20_000_000)
    clock = HybridClock(wall)
    wall.now_us -= 10_000_000
    assert clock.now() == stamp(20_000_000, 1)
    assert clock.tick(stamp(0)) == stamp(20_000_000, 2)
    wall.now_us = 20_000_001
    assert clock.now() == stamp(20_000_001, 0)


@pytest.mark.rows("HYC-S4")
def test_an_hour_forward_and_back_leaves_the_clock_ahead_and_ascending():
    wall = Wall(0)
    clock = HybridClock(wall)
    hour = 3_600_000_000
    wall.now_us = hour
    first = clock.now()
    wall.now_us = 5
    second = clock.now()
    assert first == stamp(hour, 0)
    assert second == stamp(hour, 1)


@pytest.mark.rows("HYC-R3", "HYC-M2")
def test_a_tick_takes_the_largest_of_three_and_the_first_of_a_new_time_has_no_ticks():
    wall = Wall(100)
    clock = HybridClock(wall)
    wall.now_us = 200
    assert clock.tick(stamp(150, 7)) == stamp(200, 0)
    assert clock.tick(stamp(300, 7)) == stamp(300, 8)
    assert clock.tick(stamp(250, 9)) == stamp(300, 9)


@pytest.mark.rows("HYC-S1", "HYC-R5")
def test_london_follows_boston_although_neptunes_clock_is_slow():
    half_past, twenty_five = 19 * 3_600_000_000 + 1_800_000_000, 19 * 3_600_000_000 + 1_500_000_000
    jupiter, neptune = Wall(half_past - 1), HybridClock(Wall(twenty_five))
    boston_clock = HybridClock(jupiter)
    jupiter.now_us = half_past
    boston = boston_clock.tick(stamp(0))
    assert boston == stamp(half_past, 0)
    assert neptune.tick(boston) == stamp(half_past, 1)


@pytest.mark.rows("HYC-R12")
def test_a_stamp_too_far_ahead_is_refused_and_changes_nothing():
    clock = HybridClock(Wall(1_000), forward_jump_us_max=500)
    with pytest.raises(ClockTooFarAhead, match="501 us ahead; 500 us are permitted"):
        clock.tick(stamp(1_501))
    assert clock.latest_time == stamp(1_000, 0)
    assert clock.tick(stamp(1_500)) == stamp(1_500, 1)


@pytest.mark.rows("HYC-R12")
def test_without_that_limit_the_fastest_clock_drags_the_others_along():
    clock = HybridClock(Wall(1_000))
    assert clock.tick(stamp(9_000_000)).wall_us - 1_000 == 8_999_000


@pytest.mark.rows("HYC-R8", "HYC-S6")
def test_as_of_a_time_includes_all_that_was_stamped_in_that_millisecond():
    read = as_of_system_time("2016-10-03 12:45:00")
    exact = int(datetime(2016, 10, 3, 12, 45, tzinfo=UTC).timestamp()) * 1_000_000
    assert stamp(exact - 1) < stamp(exact, 0) < stamp(exact, 1) < stamp(exact + 999, 3) < read < stamp(exact + 1_000)
    assert as_of_system_time("2016-10-03 14:45:00+02:00") == read


@pytest.mark.rows("HYC-R8")
def test_what_is_no_date_is_refused():
    with pytest.raises(ValueError, match="yesterday"):
        as_of_system_time("yesterday")


@pytest.mark.rows("HYC-R11", "HYC-I1", "HYC-I3", "HYC-I4")
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-40, 60), st.booleans()), max_size=80))
def test_stamps_ascend_follow_causes_and_never_invent_time(steps):
    walls = [Wall(1_000), Wall(1_050), Wall(900)]
    clocks = [HybridClock(wall) for wall in walls]
    last = [clock.latest_time for clock in clocks]
    carried, largest_shown = stamp(0), 1_050
    for node, moved_us, follows in steps:
        walls[node].now_us = max(0, walls[node].now_us + moved_us)
        largest_shown = max(largest_shown, walls[node].now_us)
        given_stamp = clocks[node].tick(carried) if follows else clocks[node].now()
        assert given_stamp > last[node]
        assert not follows or given_stamp > carried
        assert walls[node].now_us <= given_stamp.wall_us <= largest_shown
        last[node] = carried = given_stamp
