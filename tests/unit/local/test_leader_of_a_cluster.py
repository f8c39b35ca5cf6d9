"""The leader of a cluster whose members contradict each other."""

from __future__ import annotations

from faultline.harness.world.leadership import Steadiness, leader_of
from faultline.harness.world.ports import NodeStatus


def test_the_leader_of_the_highest_generation_leads_although_an_older_one_still_believes_so() -> None:
    old, new = NodeStatus(role="leader", generation=3), NodeStatus(role="leader", generation=4)
    assert leader_of({"cyrene": old, "athens": new, "byzantium": None}) == "athens"


def test_without_generations_the_one_that_more_members_name_leads() -> None:
    said = {
        "athens": NodeStatus(role="leader", leader="athens"),
        "byzantium": NodeStatus(role="follower", leader="athens"),
        "cyrene": NodeStatus(role="leader", leader="cyrene"),
    }
    assert leader_of(said) == "athens"
    assert leader_of(dict(reversed(said.items()))) == "athens"


def test_a_node_that_does_not_claim_to_lead_does_not_lead() -> None:
    assert leader_of({"athens": NodeStatus(role="follower", leader="byzantium"), "byzantium": None}) is None


def test_an_answer_counts_once_it_was_given_without_a_break_for_long_enough() -> None:
    answers = ["athens leads", None, "athens leads", "cyrene leads", "cyrene leads", "cyrene leads"]
    steadiness = Steadiness(2.0)
    assert [steadiness.is_reached(answer, now_s) for now_s, answer in enumerate(answers)] == [False] * 5 + [True]


def test_where_nothing_has_to_last_the_first_answer_counts_and_silence_never_does() -> None:
    steadiness = Steadiness(0.0)
    assert [steadiness.is_reached(answer, 0.0) for answer in (None, "athens leads", None)] == [False, True, False]
