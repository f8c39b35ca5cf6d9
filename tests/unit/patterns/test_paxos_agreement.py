"""Paxos on one value: generations, acceptors, attempts, quorums."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_replication.paxos import (
    NEVER,
    Acceptor,
    Attempt,
    MonotonicId,
    MonotonicIds,
    PaxosQuorums,
    Proposal,
)

MEMBERS = ("athens", "byzantium", "cyrene", "delphi", "ephesus")
ONE_A, ONE_E, TWO_A, THREE_C = (
    MonotonicId(1, "athens"),
    MonotonicId(1, "ephesus"),
    MonotonicId(2, "athens"),
    MonotonicId(3, "cyrene"),
)


def attempt(generation: MonotonicId = TWO_A) -> Attempt:
    return Attempt(generation, MEMBERS, PaxosQuorums.majorities(5))


@pytest.mark.rows("PAX-R3")
def test_generations_are_ordered_by_round_and_then_by_node() -> None:
    assert TWO_A > ONE_E > ONE_A > NEVER
    assert str(TWO_A) == "[2,athens]"


@pytest.mark.rows("PAX-R4")
def test_a_node_makes_generations_above_all_it_made_or_heard_of() -> None:
    ids = MonotonicIds("cyrene")
    assert ids.next() == MonotonicId(1, "cyrene")
    ids.observe(TWO_A)
    assert ids.next() == THREE_C
    ids.observe(ONE_E)
    assert ids.next() == MonotonicId(4, "cyrene")


@pytest.mark.rows("PAX-R6")
def test_a_promise_refuses_lower_generations_and_may_be_repeated() -> None:
    acceptor = Acceptor()
    assert acceptor.prepare(ONE_E)
    assert acceptor.prepare(ONE_E)
    assert not acceptor.prepare(ONE_A)
    assert acceptor.promised == ONE_E


@pytest.mark.rows("PAX-R7")
def test_an_acceptor_accepts_exactly_what_it_promised() -> None:
    acceptor = Acceptor()
    acceptor.prepare(ONE_E)
    assert acceptor.accept(Proposal(ONE_E, b"elanor"))
    assert acceptor.accepted == Proposal(ONE_E, b"elanor")


@pytest.mark.rows("PAX-R7")
def test_accepting_a_higher_generation_is_also_a_promise() -> None:
    acceptor = Acceptor()
    assert acceptor.accept(Proposal(TWO_A, b"elanor"))
    assert not acceptor.prepare(ONE_E)


@pytest.mark.rows("PAX-R7")
def test_a_refused_proposal_changes_nothing() -> None:
    acceptor = Acceptor()
    acceptor.prepare(ONE_E)
    assert not acceptor.accept(Proposal(ONE_A, b"alice"))
    assert (acceptor.promised, acceptor.accepted) == (ONE_E, None)


def test_a_quorum_of_promises_is_complete_once() -> None:
    trial = attempt()
    assert [trial.promised(member, None) for member in MEMBERS] == [False, False, True, False, False]


def test_a_promise_counts_once_per_member_and_only_for_members() -> None:
    trial = attempt()
    for member in ("athens", "athens", "client-1", "byzantium"):
        assert not trial.promised(member, None)
    assert trial.promised("cyrene", None)


def test_free_of_earlier_values_an_attempt_proposes_its_own() -> None:
    trial = attempt()
    for member in MEMBERS[:3]:
        trial.promised(member, None)
    assert trial.adopted() is None


@pytest.mark.rows("PAX-R8")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_accepted_value_of_the_highest_generation_is_adopted_in_whatever_order_it_is_heard(
    order: tuple[int, ...],
) -> None:
    accepted = [Proposal(ONE_A, b"alice"), None, Proposal(ONE_E, b"elanor")]
    trial = attempt()
    for number in order:
        trial.promised(MEMBERS[number], accepted[number])
    assert trial.adopted() == b"elanor"


def test_what_is_heard_after_the_quorum_does_not_change_what_must_be_proposed() -> None:
    trial = attempt()
    for member in MEMBERS[:3]:
        trial.promised(member, None)
    trial.promised("delphi", Proposal(ONE_E, b"elanor"))
    assert trial.adopted() is None


def test_a_value_is_chosen_by_the_acceptance_that_makes_the_quorum() -> None:
    trial = attempt()
    assert [trial.accepted(member) for member in (*MEMBERS[:2], *MEMBERS)] == [False] * 4 + [True, False, False]


@pytest.mark.rows("PAX-R9")
def test_an_attempt_is_lost_when_too_few_are_left_for_its_quorum() -> None:
    trial = attempt()
    assert [trial.refused(member) for member in ("athens", "athens", "client-1", "byzantium")] == [False] * 4
    assert trial.refused("cyrene")


@pytest.mark.rows("PAX-R14")
def test_each_phase_needs_its_own_quorum() -> None:
    trial = Attempt(TWO_A, MEMBERS, PaxosQuorums(4, 2))
    assert [trial.promised(member, None) for member in MEMBERS[:4]] == [False, False, False, True]
    assert [trial.refused(member) for member in MEMBERS[:3]] == [False, False, False]
    assert [trial.accepted(member) for member in MEMBERS[3:]] == [False, True]


@pytest.mark.rows("PAX-R14")
@pytest.mark.parametrize(("prepare", "accept", "safe"), [(3, 3, True), (4, 2, True), (2, 3, False), (2, 2, False)])
def test_quorums_are_safe_when_each_of_one_phase_meets_each_of_the_other(prepare: int, accept: int, safe: bool) -> None:
    assert PaxosQuorums(prepare, accept).intersect(5) is safe


def test_majorities_are_safe_in_clusters_of_any_size() -> None:
    assert all(PaxosQuorums.majorities(n).intersect(n) for n in range(1, 12))
