"""Paxos without a leader, message by message: duels, crashes in the middle, missed commits, late messages."""

from __future__ import annotations

from typing import Any

import pytest
from paxos_driver import ACCEPT, COMMIT, PREPARE, PaxosCluster

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.paxos_store import AcceptRequest
from faultline.systems_under_test.reference.paxos_kv.messages import OutcomeUnknown
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse

THREE = ("athens", "byzantium", "cyrene")
FIVE = (*THREE, "delphi", "ephesus")


def the_books_story(rejections: str = "on") -> PaxosCluster:
    """Tables 8.2 to 8.9: alice through Athens, elanor through Ephesus, carol through Cyrene; two of them crash."""
    cluster = PaxosCluster(5, rejections=rejections)
    cluster.put("client-1", "athens", "alice")
    cluster.put("client-2", "ephesus", "elanor")
    cluster.let("athens", PREPARE, "byzantium")
    cluster.let("ephesus", PREPARE, "delphi")
    cluster.let("athens", PREPARE, "cyrene")
    cluster.let("athens", ACCEPT, "byzantium")
    cluster.let("ephesus", PREPARE, "cyrene")
    cluster.let("athens", ACCEPT, "cyrene")
    cluster.let("ephesus", ACCEPT, "delphi")
    cluster.lose("ephesus")
    cluster.kill("ephesus")
    cluster.lose("athens")
    return cluster


@pytest.mark.rows("PAX-S1", "PAX-R1", "PAX-R2", "PAX-R8", "PAX-R10", "PAX-R11", "PAX-R12", "PAX-S11")
@pytest.mark.parametrize("rejections", ["on", "off"])
def test_after_two_crashes_the_value_of_the_highest_generation_is_chosen_and_no_other(rejections: str) -> None:
    cluster = the_books_story(rejections=rejections)
    assert [cluster.accepted(name) for name in FIVE[:4]] == ["alice", "alice", None, "elanor"]
    assert cluster.promised("cyrene") == "[1,ephesus]"

    cluster.try_again("athens")
    cluster.let("athens", PREPARE, "cyrene", "delphi")
    assert cluster.accepted("athens") == "elanor"
    cluster.lose("athens")
    cluster.kill("athens")

    cluster.put("client-3", "cyrene", "carol")
    cluster.let("cyrene", PREPARE, "byzantium", "delphi")
    assert cluster.promised("byzantium") == "[3,cyrene]"
    cluster.let("cyrene", (*ACCEPT, *COMMIT), "byzantium", "delphi")
    assert cluster.versions_chosen() == [1]
    assert [cluster.value(name) for name in ("byzantium", "cyrene", "delphi")] == ["elanor"] * 3
    assert cluster.answer("client-3") is None

    cluster.restart("athens")
    cluster.restart("ephesus")
    cluster.deliver()
    assert cluster.answer("client-3") == ClientResponse(1)
    assert cluster.read("athens") == "carol"
    assert cluster.read("ephesus", "reader-2") == "carol"
    assert cluster.broken() == []


def test_a_proposer_that_forgets_what_it_heard_gets_a_second_value_through() -> None:
    cluster = the_books_story()
    cluster.planted_bugs = frozenset({"ignore-accepted"})
    cluster.restart("cyrene")
    cluster.restart("ephesus")
    cluster.put("client-3", "cyrene", "carol")
    cluster.let("cyrene", (*PREPARE, *ACCEPT), "byzantium", "delphi")
    cluster.lose("cyrene")
    cluster.put("client-4", "ephesus", "eve")
    cluster.nodes["ephesus"].ids.round = 9
    cluster.try_again("ephesus")
    cluster.let("ephesus", (*PREPARE, *ACCEPT), "byzantium", "delphi")
    assert {"PAX-I1", "PAX-I3"} <= set(cluster.broken())


@pytest.mark.rows("PAX-S2", "PAX-R9", "PAX-R13", "PAX-S11")
@pytest.mark.parametrize("rejections", ["on", "off"])
def test_two_proposers_can_supersede_each_other_for_long_and_either_wins_when_left_alone(rejections: str) -> None:
    cluster = PaxosCluster(3, attempts_max="50", backoff_ms="1", client_timeout_ms="100000000", rejections=rejections)
    cluster.put("client-1", "athens", "alice")
    cluster.put("client-3", "cyrene", "carol")
    for _ in range(8):
        cluster.let("athens", PREPARE, "byzantium")
        cluster.lose("athens")
        cluster.try_again("cyrene")
        cluster.let("cyrene", PREPARE, "byzantium")
        cluster.lose("cyrene")
        cluster.try_again("athens")
    assert cluster.versions_chosen() == []
    cluster.deliver()
    cluster.pass_time(60_000_000)
    assert cluster.answer("client-1") == ClientResponse(1)
    assert cluster.answer("client-3") == ClientResponse(1)
    assert cluster.broken() == []


@pytest.mark.rows("PAX-S3", "PAX-S11")
@pytest.mark.parametrize("rejections", ["on", "off"])
def test_a_value_accepted_by_a_minority_may_win_or_not_but_all_readers_agree(rejections: str) -> None:
    seen = []
    for first_reader in ("athens", "cyrene"):
        cluster = PaxosCluster(3, rejections=rejections)
        cluster.put("client-1", "athens", "alice")
        cluster.let("athens", PREPARE, "byzantium")
        assert (cluster.accepted("athens"), cluster.accepted("byzantium")) == ("alice", None)
        cluster.restart("athens")
        cluster.lose("athens")
        if first_reader == "cyrene":
            cluster.cut("athens")
        values = [cluster.read(first_reader)]
        cluster.heal()
        values += [cluster.read(name, f"reader-{name}") for name in THREE]
        assert len(set(values)) == 1
        assert cluster.broken() == []
        seen.append(values[0])
    assert seen == ["alice", None]


@pytest.mark.rows("PAX-S4", "PAX-R20", "PAX-R11", "PAX-S11")
@pytest.mark.parametrize("reader", THREE)
@pytest.mark.parametrize("rejections", ["on", "off"])
def test_a_value_that_a_quorum_accepted_is_read_everywhere_although_its_proposer_died(
    reader: str, rejections: str
) -> None:
    cluster = PaxosCluster(3, rejections=rejections)
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", PREPARE, "byzantium")
    cluster.step(lambda source, target, message: target == "byzantium" and isinstance(message, AcceptRequest))
    cluster.lose("athens")
    cluster.restart("athens")
    assert cluster.versions_chosen() == []
    assert cluster.read(reader) == "alice"


@pytest.mark.rows("PAX-S5", "PAX-R18", "PAX-S11")
@pytest.mark.parametrize("rejections", ["on", "off"])
def test_the_loser_of_a_duel_finishes_the_other_value_and_then_its_own(rejections: str) -> None:
    cluster = PaxosCluster(3, rejections=rejections)
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", PREPARE, "byzantium")
    cluster.let("athens", (AcceptRequest,), "byzantium")
    cluster.put("client-3", "cyrene", "carol")
    cluster.let("cyrene", (*PREPARE, *ACCEPT), "byzantium")
    cluster.let("athens", ACCEPT, "byzantium")
    assert cluster.answers("client-1") == [ClientResponse(1)]
    cluster.deliver()
    cluster.pass_time(200_000)
    assert cluster.answers("client-3") == [ClientResponse(1)]
    assert [cluster.value(name) for name in THREE] == ["carol"] * 3
    assert sorted(set(cluster.versions_chosen())) == [1, 2]
    assert "accepted-value-adopted" in cluster.marks


@pytest.mark.rows("PAX-S6", "PAX-R15")
@pytest.mark.parametrize(("planted_bugs", "kept"), [((), True), (("promise-not-durable",), False)])
def test_a_promise_binds_an_acceptor_after_its_restart(planted_bugs: tuple[str, ...], kept: bool) -> None:
    cluster = PaxosCluster(3, planted_bugs)
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", PREPARE, "byzantium")
    cluster.put("client-3", "cyrene", "carol")
    cluster.let("cyrene", PREPARE, "byzantium")
    cluster.lose("cyrene")
    accept = cluster.take(lambda source, target, message: target == "byzantium" and isinstance(message, AcceptRequest))
    cluster.restart("byzantium")
    for item in accept:
        if item[0] == "athens":
            cluster.hand(*item)
    assert cluster.accepted("byzantium") == (None if kept else "alice")
    assert cluster.broken() == ([] if kept else ["PAX-I4"])


def missed_commit(*planted_bugs: str) -> PaxosCluster:
    """v1 is chosen and known at a and b; c missed all of it."""
    cluster = PaxosCluster(3, planted_bugs)
    cluster.cut("cyrene")
    cluster.put("client-1", "athens", "v1")
    cluster.deliver()
    cluster.heal()
    assert [cluster.value(name) for name in THREE] == ["v1", "v1", None]
    return cluster


@pytest.mark.rows("PAX-S7", "PAX-R20", "PAX-R21")
def test_a_node_that_missed_everything_reads_the_committed_value() -> None:
    assert missed_commit().read("cyrene") == "v1"


def test_a_node_that_missed_everything_reads_nothing_after_a_naive_reset() -> None:
    assert missed_commit("naive-reset").read("cyrene") is None


def resurrection(*planted_bugs: str) -> PaxosCluster:
    """c accepted v1 and missed its commit; v2 was then chosen and acknowledged by a and b alone."""
    cluster = PaxosCluster(3, planted_bugs)
    cluster.put("client-1", "athens", "v1")
    cluster.deliver(lambda _, target, message: not (target == "cyrene" and isinstance(message, COMMIT)))
    cluster.drop(lambda *item: isinstance(item[2], COMMIT))
    assert cluster.accepted("cyrene") == "v1"
    cluster.cut("cyrene")
    cluster.put("client-2", "athens", "v2")
    cluster.deliver()
    assert cluster.answer("client-2") == ClientResponse(1)
    cluster.heal()
    cluster.cut("athens")
    return cluster


@pytest.mark.rows("PAX-S8", "PAX-R21")
def test_an_old_accepted_value_does_not_come_back_over_a_newer_commit() -> None:
    cluster = resurrection()
    assert cluster.read("byzantium") == "v2"
    assert cluster.broken() == []


def test_an_old_accepted_value_comes_back_after_a_naive_reset() -> None:
    cluster = resurrection("naive-reset")
    assert cluster.read("byzantium") == "v1"
    assert "PAX-I2" in cluster.broken()


@pytest.mark.rows("PAX-S9", "PAX-R21")
@pytest.mark.parametrize("kinds", [(AcceptRequest,), COMMIT])
def test_a_late_acceptance_or_commit_of_an_old_version_changes_nothing(kinds: tuple[type, ...]) -> None:
    cluster = PaxosCluster(3)
    cluster.put("client-1", "athens", "v1")
    cluster.let("athens", PREPARE, "byzantium", "cyrene")
    late: list[tuple[str, str, Any]] = []
    for _ in range(10):
        late += cluster.take(lambda _, target, message: target == "cyrene" and isinstance(message, kinds))
        cluster.deliver(lambda _, target, message: target != "cyrene" or not isinstance(message, kinds))
    assert late
    cluster.put("client-2", "byzantium", "v2")
    cluster.deliver()
    for item in late:
        cluster.hand(*item)
    cluster.deliver()
    assert [cluster.value(name) for name in THREE] == ["v2"] * 3
    assert cluster.accepted("cyrene") is None
    assert cluster.broken() == []


def own_value_refused(*planted_bugs: str) -> PaxosCluster:
    """a has its promises, but a higher generation comes before its accept requests, and no acceptor accepts."""
    cluster = PaxosCluster(3, planted_bugs, attempts_max="1")
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", PREPARE, "byzantium", "cyrene")
    cluster.nodes["cyrene"].ids.round = 7
    cluster.put("client-3", "cyrene", "carol")
    cluster.let("cyrene", PREPARE, "byzantium")
    cluster.let("athens", ACCEPT, "byzantium", "cyrene")
    return cluster


@pytest.mark.rows("PAX-S10", "PAX-R18")
def test_an_own_value_that_was_refused_is_no_success() -> None:
    assert own_value_refused().answer("client-1") == OutcomeUnknown(1)


def test_as_printed_an_own_value_that_was_refused_is_reported_as_success() -> None:
    assert own_value_refused("success-without-accepts").answer("client-1") == ClientResponse(1)


@pytest.mark.rows("PAX-S12", "PAX-R14")
def test_with_four_promises_and_two_acceptances_two_lost_nodes_stop_new_proposers_but_not_one_that_was_promised() -> (
    None
):
    cluster = PaxosCluster(5, prepare_quorum="4", accept_quorum="2", attempts_max="1")
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", PREPARE, *FIVE)
    cluster.kill("delphi")
    cluster.kill("ephesus")
    cluster.let("athens", ACCEPT, "byzantium")
    assert cluster.answer("client-1") == ClientResponse(1)
    cluster.put("client-2", "byzantium", "bob")
    cluster.deliver()
    cluster.pass_time(200_000)
    assert cluster.answer("client-2") == OutcomeUnknown(1)


@pytest.mark.rows("PAX-S12", "PAX-R14")
def test_quorums_that_can_miss_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="two values could be chosen"):
        PaxosCluster(5, prepare_quorum="2", accept_quorum="2")


@pytest.mark.rows("PAX-S13")
def test_two_of_five_nodes_down_do_not_matter() -> None:
    cluster = PaxosCluster(5)
    cluster.kill("delphi")
    cluster.kill("ephesus")
    cluster.put("client-1", "athens", "alice")
    cluster.deliver()
    assert cluster.answer("client-1") == ClientResponse(1)
    assert cluster.read("cyrene") == "alice"


@pytest.mark.rows("PAX-S13")
def test_with_three_of_five_nodes_down_nothing_succeeds_and_nothing_is_called_failed() -> None:
    cluster = PaxosCluster(5)
    for name in FIVE[2:]:
        cluster.kill(name)
    cluster.put("client-1", "athens", "alice")
    cluster.deliver()
    cluster.pass_time(2_000_000)
    assert cluster.answers("client-1") == [OutcomeUnknown(1)]
    assert cluster.versions_chosen() == []


@pytest.mark.rows("PAX-R17")
def test_a_put_makes_five_attempts_and_then_says_that_its_outcome_is_unknown() -> None:
    cluster = PaxosCluster(3, client_timeout_ms="100000000")
    cluster.kill("byzantium")
    cluster.kill("cyrene")
    cluster.put("client-1", "athens", "alice")
    cluster.pass_time(60_000_000)
    assert cluster.nodes["athens"].ids.round == 5
    assert cluster.answers("client-1") == [OutcomeUnknown(1)]


@pytest.mark.rows("PAX-R19")
def test_a_value_that_was_accepted_is_visible_nowhere_before_its_commit() -> None:
    cluster = PaxosCluster(3)
    cluster.put("client-1", "athens", "alice")
    cluster.let("athens", (*PREPARE, AcceptRequest), "byzantium", "cyrene")
    assert [cluster.accepted(name) for name in THREE] == ["alice"] * 3
    assert [cluster.value(name) for name in THREE] == [None] * 3
    cluster.deliver()
    assert [cluster.value(name) for name in THREE] == ["alice"] * 3
    assert cluster.read("byzantium") == "alice"
    assert cluster.read("cyrene", "reader-2") == "alice"
    assert [cluster.value(name) for name in THREE] == ["alice"] * 3


def test_a_read_in_prepare_mode_ends_after_one_phase_and_still_finishes_what_was_begun() -> None:
    cluster = PaxosCluster(3, read_mode="prepare")
    cluster.put("client-1", "athens", "alice")
    cluster.deliver()
    assert cluster.read("byzantium") == "alice"
    assert cluster.versions_chosen() == [1]
    cluster.put("client-1", "athens", "anna", 2)
    cluster.let("athens", PREPARE, "byzantium")
    cluster.lose("athens")
    assert cluster.accepted("athens") == "anna"
    cluster.cut("cyrene")
    assert cluster.read("byzantium", "reader-2") == "anna"
    assert cluster.versions_chosen() == [1, 2]


def test_a_local_read_misses_what_the_others_committed() -> None:
    cluster = missed_commit("local-read")
    cluster.get("reader", "cyrene")
    assert cluster.answer("reader") == ClientResponse(1, None, None)
