"""High-water mark: on a majority, for even sizes too (HWM-S9), and only forward (HWM-R2)."""

from __future__ import annotations

from itertools import product

import pytest

from faultline.systems_under_test.patterns.data_replication.high_water_mark import (
    HighWaterMark,
    NotAvailable,
    quorum_index,
)
from faultline.systems_under_test.patterns.data_replication.quorum import majority


@pytest.mark.rows("HWM-R4", "HWM-S9")
@pytest.mark.parametrize(
    ("match_indexes", "expected"),
    [
        ([7], 7),
        ([3, 5], 3),
        ([1, 2, 3], 2),
        ([4, 3, 2, 1], 2),
        ([1, 2, 3, 4, 5], 3),
        ([0, 0, 9, 9, 9], 9),
        ([6, 1, 5, 2, 4, 3], 3),
    ],
)
def test_the_mark_is_the_quorum_th_largest_index(match_indexes: list[int], expected: int) -> None:
    assert quorum_index(match_indexes) == expected


@pytest.mark.rows("HWM-R4")
@pytest.mark.parametrize("n", range(1, 6))
def test_a_majority_stores_the_mark_and_no_majority_stores_more(n: int) -> None:
    for match_indexes in product(range(4), repeat=n):
        mark = quorum_index(match_indexes)
        assert sum(index >= mark for index in match_indexes) >= majority(n)
        assert sum(index > mark for index in match_indexes) < majority(n)


def test_no_members_have_no_mark() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        quorum_index([])


@pytest.mark.rows("HWM-R2")
def test_the_mark_only_moves_forward() -> None:
    mark = HighWaterMark()
    assert [mark.advance_to(index) for index in (3, 3, 2, 4)] == [True, False, False, True]
    assert mark.value == 4


@pytest.mark.rows("HWM-R3")
def test_an_entry_above_the_mark_is_not_available() -> None:
    mark = HighWaterMark()
    mark.advance_to(4)
    mark.require(4)
    with pytest.raises(NotAvailable, match="entry 5"):
        mark.require(5)
