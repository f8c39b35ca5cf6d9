"""SWIM: one question a period, help from others, and news that are told once."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.cluster_management.swim_probing import Membership, News, Prober


class Asked:
    """A prober, and what it did."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []
        self.prober = Prober(
            lambda target, number: self.done.append(("ping", target, number)),
            lambda helper, target, number: self.done.append(("ask", helper, target, number)),
            lambda node: self.done.append(("dead", node)),
        )


@pytest.mark.rows("GO-R22")
def test_a_member_is_dead_only_when_it_answers_no_other_member() -> None:
    asked = Asked()
    asked.prober.probe("byzantium")
    asked.prober.ask_helpers(["cyrene", "delphi", "ephesus", "fatima"])
    asked.prober.probe("cyrene")
    assert asked.done == [
        ("ping", "byzantium", 1),
        ("ask", "cyrene", "byzantium", 1),
        ("ask", "delphi", "byzantium", 1),
        ("ask", "ephesus", "byzantium", 1),
        ("dead", "byzantium"),
        ("ping", "cyrene", 2),
    ]


def test_an_answer_that_comes_by_way_of_a_helper_counts() -> None:
    asked = Asked()
    asked.prober.probe("byzantium")
    asked.prober.acknowledged("byzantium", 1)
    asked.prober.ask_helpers(["cyrene"])
    asked.prober.probe("cyrene")
    assert asked.done == [("ping", "byzantium", 1), ("ping", "cyrene", 2)]


def test_an_answer_to_an_earlier_question_does_not_count() -> None:
    asked = Asked()
    asked.prober.probe("byzantium")
    asked.prober.acknowledged("byzantium", 1)
    asked.prober.probe("byzantium")
    asked.prober.acknowledged("byzantium", 1)
    asked.prober.probe("cyrene")
    assert ("dead", "byzantium") in asked.done


@pytest.mark.rows("GO-S10", "GO-R22")
def test_news_are_new_once_so_each_node_tells_them_once() -> None:
    membership = Membership("athens", 1)
    death = [News("byzantium", 1, True)]
    assert membership.hear(death) == death
    assert membership.hear(death) == []
    assert membership.is_dead("byzantium")


def test_death_wins_over_life_in_one_incarnation_and_a_higher_one_over_death() -> None:
    membership = Membership("athens", 1)
    membership.hear([News("byzantium", 3, True)])
    assert membership.hear([News("byzantium", 3, False)]) == []
    assert membership.is_dead("byzantium")
    membership.hear([News("byzantium", 4, False)])
    assert not membership.is_dead("byzantium")


@pytest.mark.rows("GO-I6")
def test_who_hears_of_his_own_death_says_that_he_lives() -> None:
    athens, byzantium = Membership("athens", 1), Membership("byzantium", 1)
    death = byzantium.declare_dead("athens")
    assert byzantium.is_dead("athens")
    byzantium.hear(athens.hear(death))
    assert not byzantium.is_dead("athens")
