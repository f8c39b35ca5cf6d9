"""Who leads, when members contradict each other."""

from __future__ import annotations

from faultline.harness.world.leadership import leader_of
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


def test_nobody_leads_where_nobody_says_so() -> None:
    assert leader_of({"athens": NodeStatus(role="follower", leader="byzantium"), "byzantium": None}) is None
