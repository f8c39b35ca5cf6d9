"""Draws by weight follow the weights, and weights that are not 100 together are refused."""

from __future__ import annotations

from collections import Counter

import pytest

from faultline.harness.generator.chance import by_weight, chance_of

SALT = 0x9E37_79B9_7F4A_7C15


def test_names_are_drawn_as_often_as_their_weights_say() -> None:
    drawn = Counter(by_weight((("often", 70), ("seldom", 30)), chance_of(1, number), SALT) for number in range(2_000))
    assert 0.65 < drawn["often"] / 2_000 < 0.75
    assert drawn["often"] + drawn["seldom"] == 2_000


def test_weights_that_leave_something_over_are_refused_when_it_is_drawn() -> None:
    with pytest.raises(ValueError, match="do not add up to 100"):
        [by_weight((("some", 50),), chance_of(1, number), SALT) for number in range(50)]
