"""Intervals, against the values published for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.campaign.statistics import rule_of_three, wilson_interval


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_wilson_interval_has_the_values_of_newcombe_1998(hits: int, runs: int, low: float, high: float) -> None:
    assert wilson_interval(hits, runs) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 2_000), st.integers(1, 2_000))
def test_the_interval_holds_the_rate_and_mirrors_when_hits_and_misses_change_places(hits: int, misses: int) -> None:
    runs = hits + misses
    low, high = wilson_interval(hits, runs)
    assert 0 <= low <= hits / runs <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(wilson_interval(misses, runs))


def test_no_runs_say_nothing() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert rule_of_three(0) == 1.0


def test_nothing_in_five_hundred_runs_bounds_the_rate_at_six_in_a_thousand() -> None:
    assert rule_of_three(500) == pytest.approx(0.006)
    assert rule_of_three(2) == 1.0
