"""The bandit of a guided campaign, and its estimates of what is unseen."""

from __future__ import annotations

from collections import Counter

import pytest

from faultline.campaign.guided.bandit import Bandit
from faultline.campaign.guided.unseen import unseen


def test_each_arm_is_tried_before_any_is_tried_twice() -> None:
    bandit = Bandit("abc")
    assert [bandit.choose() for _ in range(6)] == ["a", "b", "c"] * 2


def test_an_arm_that_rewards_is_played_most_and_the_others_are_not_given_up() -> None:
    bandit, played = Bandit("abc"), Counter[str]()
    for _ in range(40):
        wave = [bandit.choose() for _ in range(5)]
        played.update(wave)
        bandit.learn([(arm, float(arm == "b")) for arm in wave])
    assert played.most_common(1)[0][0] == "b"
    assert played["b"] > 100
    assert min(played.values()) >= 2


def test_an_arm_that_rewards_no_longer_loses_its_lead() -> None:
    bandit, late = Bandit("ab"), Counter[str]()
    for number in range(600):
        arm = bandit.choose()
        bandit.learn([(arm, float(arm == ("a" if number < 200 else "b")))])
        late[arm] += number >= 400
    assert late["b"] > late["a"]


def test_plays_without_a_result_are_forgotten() -> None:
    one, other = Bandit("ab"), Bandit("ab")
    one.choose()
    one.learn([])
    assert one.choose() == other.choose() == "a"


def test_only_arms_that_are_asked_for_are_chosen() -> None:
    assert Bandit("abc").choose("c") == "c"


def test_what_was_met_once_tells_of_what_was_not_met() -> None:
    told = unseen({"a": 1, "b": 1, "c": 1, "d": 2, "e": 7}, runs=10)
    assert (told.seen, told.once, told.next_run) == (5, 3, 0.3)
    # (n-1)/n · f1 (f1 - 1) / (2 (f2 + 1)), with three things met once and one met twice.
    assert told.unseen_min == pytest.approx(0.9 * 3 * 2 / (2 * 2), abs=0.05)


def test_nothing_is_left_to_be_seen_when_all_was_met_often() -> None:
    told = unseen({"a": 4, "b": 9}, runs=10)
    assert (told.next_run, told.unseen_min) == (0.0, 0.0)


def test_without_a_run_nothing_is_estimated() -> None:
    told = unseen({}, runs=0)
    assert (told.seen, told.next_run, told.unseen_min) == (0, 0.0, 0.0)
