"""Times of transactions: what an oracle gives out, and what it must be above."""

from __future__ import annotations

from faultline.systems_under_test.patterns.distributed_time.timestamp_oracle import TimestampOracle


def test_a_time_for_a_commit_is_above_the_votes_even_if_these_are_ahead_of_the_oracle() -> None:
    limits: list[int] = []
    oracle = TimestampOracle(limits.append)
    first = oracle.next()
    assert oracle.next(above=5_000) == 5_001
    assert oracle.next() == 5_002 > first
    assert limits[-1] >= 5_002


def test_times_are_durable_before_they_are_given_out() -> None:
    limits: list[int] = []
    oracle = TimestampOracle(limits.append)
    given = [oracle.next(above) for above in (0, 999, 1_000, 7_777)]
    assert given == sorted(set(given))
    assert max(given) <= limits[-1]
    restarted = TimestampOracle(limits.append)
    restarted.restore(limits[-1])
    assert restarted.next() > max(given)
