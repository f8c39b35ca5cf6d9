"""Event sequences that the invariants of `emergent-leader` accept, and sequences that they report as breaches."""

from __future__ import annotations

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.reference.membership.invariants import VersionsNameOneList
from faultline.systems_under_test.reference.membership.messages import MembershipInstalled, MembershipMade, NodeStarted

FOUNDED = Membership.founded_by("athens", 3)
WITH_BYZANTIUM, WITH_CYRENE = FOUNDED.with_member("byzantium", 1), FOUNDED.with_member("cyrene", 1)


def breaches(*events: tuple[str, MembershipMade | MembershipInstalled | NodeStarted]) -> list[str]:
    told: list[Breach] = []
    invariant = VersionsNameOneList()
    for node, event in events:
        invariant.observe(1, node, event, told.append)
    return [breach.invariant for breach in told]


@pytest.mark.rows("EL-I3")
def test_a_version_that_no_other_node_followed_may_be_used_again_by_the_same_incarnation_alone() -> None:
    made = ("athens", MembershipMade(WITH_BYZANTIUM, FOUNDED, ()))
    other = ("athens", MembershipMade(WITH_CYRENE, FOUNDED, ()))
    followed = ("byzantium", MembershipInstalled(WITH_BYZANTIUM, True))
    again, later = ("athens", NodeStarted(3)), ("athens", NodeStarted(4))
    assert breaches(made, again, other) == []
    assert breaches(made, other) == ["EL-I3"]
    assert breaches(made, later, other) == ["EL-I3"]
    assert breaches(made, followed, again, other) == ["EL-I3"]
