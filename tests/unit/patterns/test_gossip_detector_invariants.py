"""The invariants of gossip's two detectors with messages of their own: HB-I1, HB-I3, HB-I4, each broken and kept."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach, Invariant
from faultline.systems_under_test.reference.gossip.detector_invariants import (
    FewHeartbeatsAreTold,
    NoMemberIsDownEarly,
    SilentMembersAreDown,
)
from faultline.systems_under_test.reference.gossip.messages import (
    HeartbeatsTold,
    MemberDown,
    MembersJudged,
    MemberUp,
    NodeStarted,
    PatienceBegun,
)


def sentences(invariant: Invariant, *events: Any, node: str = "athens") -> list[str]:
    """Return the sentences of the invariant on these reports of one node, all at time 0: it reads the node's clock."""
    breaches: list[Breach] = []
    for event in events:
        invariant.observe(0, node, event, breaches.append)
    return [breach.sentence for breach in breaches]


def rounds(first: int, last: int) -> list[MembersJudged]:
    return [MembersJudged(100, now_us) for now_us in range(first, last + 1, 100)]


@pytest.mark.rows("HB-I1")
def test_a_silent_member_that_is_not_taken_for_down_is_told_once() -> None:
    (sentence,) = sentences(SilentMembersAreDown(), PatienceBegun("delphi", 500, 0), *rounds(100, 2_000))
    assert sentence.startswith("athens had no sign of life of delphi")


@pytest.mark.rows("HB-I1")
@pytest.mark.parametrize(
    "end", [MemberDown("delphi", 600), MemberUp("delphi"), NodeStarted(2), PatienceBegun("delphi", 9_000, 600)]
)
def test_patience_ends_with_a_judgement_a_refutation_or_a_restart_and_a_heartbeat_renews_it(end: Any) -> None:
    events = PatienceBegun("delphi", 500, 0), *rounds(100, 600), end, *rounds(700, 2_000)
    assert sentences(SilentMembersAreDown(), *events) == []


@pytest.mark.rows("HB-I1", "HB-R12")
def test_a_node_that_slept_is_given_the_rounds_after_it_woke() -> None:
    asleep = [PatienceBegun("delphi", 500, 0), *rounds(100, 200), *rounds(5_000, 5_300)]
    assert sentences(SilentMembersAreDown(), *asleep) == []
    assert len(sentences(SilentMembersAreDown(), *asleep, *rounds(5_400, 5_400))) == 1


@pytest.mark.rows("HB-I3")
@pytest.mark.parametrize(
    ("events", "early"),
    [
        ([PatienceBegun("delphi", 500, 0), MemberDown("delphi", 499)], True),
        ([PatienceBegun("delphi", 500, 0), MemberDown("delphi", 500)], False),
        ([PatienceBegun("delphi", 500, 0), MemberDown("delphi", 10, is_told=True)], False),
        ([PatienceBegun("delphi", 500, 0), MemberUp("delphi"), MemberDown("delphi", 600)], True),
        ([PatienceBegun("delphi", 500, 0), NodeStarted(2), MemberDown("delphi", 600)], True),
        ([PatienceBegun("delphi", 500, 0), PatienceBegun("delphi", 500, 400), MemberDown("delphi", 600)], True),
    ],
)
def test_a_node_judges_by_itself_only_when_its_patience_has_ended(events: list[Any], early: bool) -> None:
    assert bool(sentences(NoMemberIsDownEarly(), *events)) == early


@pytest.mark.rows("HB-I4")
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (HeartbeatsTold(("byzantium", "cyrene"), 4, 2, 4), True),
        (HeartbeatsTold(("byzantium", "cyrene", "delphi"), 4, 2, 4), False),
        (HeartbeatsTold(("byzantium", "byzantium"), 4, 2, 4), False),
        (HeartbeatsTold(("athens",), 4, 2, 4), False),
        (HeartbeatsTold(("byzantium",), 5, 2, 4), False),
    ],
)
def test_few_heartbeats_are_told_to_few_others(told: HeartbeatsTold, kept: bool) -> None:
    assert (sentences(FewHeartbeatsAreTold(), told) == []) == kept
