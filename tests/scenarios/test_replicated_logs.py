"""Stories about the replicated log and its high-water mark: LOG-S*, HWM-S* of the requirements, told step by step."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_driver import ELECTION_TIMEOUT_US, Client, Cluster

from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import NO_OP, LogEntry


def entries(*generations: int, start: int = 1) -> list[LogEntry]:
    return [LogEntry(start + offset, generation, NO_OP, b"") for offset, generation in enumerate(generations)]


def lead_from_outside(
    cluster: Cluster, generation: int, prev: tuple[int, int], new: list[LogEntry], mark: int = 0
) -> ReplicationResponse:
    """Play the leader byzantium of `generation` against athens; the answer."""
    request = ReplicationRequest("byzantium", generation, 1, 0, prev[0], prev[1], mark, new)
    cluster.hand("byzantium", "athens", request)
    answer = cluster.take(lambda source, _, __: source == "athens")[-1][2]
    assert isinstance(answer, ReplicationResponse)
    return answer


def only(*links: tuple[str, str]) -> Any:
    return lambda source, target, _: (source, target) in links or (target, source) in links


def test_an_election_by_the_longer_log_and_a_commit_through_the_no_op() -> None:
    """LOG-S1, the narrated election of five."""
    cluster = Cluster(5, pre_vote="off")
    athens, byzantium, cyrene, delphi, ephesus = cluster.members
    cluster.elect(ephesus)
    cluster.cut(ephesus, byzantium, cyrene)
    alice = Client(cluster, "alice")
    alice.client_id = 1
    alice.set(ephesus, "title", "Entry2")
    cluster.deliver()
    assert len(cluster.log(athens)) == len(cluster.log(delphi)) == 2
    cluster.split(ephesus, delphi)

    cluster.time_out(byzantium)
    cluster.deliver()
    assert not cluster.leads(byzantium)
    assert cluster.generation(athens) == 2

    cluster.time_out(athens)
    cluster.deliver(lambda _, __, message: not isinstance(message, ReplicationRequest))
    assert cluster.leads(athens)
    assert cluster.generation(athens) == 3
    assert cluster.mark(athens) == 1
    cluster.deliver()
    assert cluster.mark(athens) == 3
    assert cluster.log(byzantium) == cluster.log(cyrene) == [1, 1, 3]

    cluster.heal()
    cluster.heartbeat(ephesus)
    cluster.deliver()
    assert cluster.leaders() == [athens]
    assert cluster.generation(ephesus) == 3
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert {tuple(cluster.log(name)) for name in cluster.members} == {(1, 1, 3)}
    assert cluster.broken() == []


def no_replication(_: str, __: str, message: Any) -> bool:
    return not isinstance(message, ReplicationRequest)


def old_entry_on_a_majority(*mutants: str) -> Cluster:
    """LOG-S2 up to its turning point: S1 leads again, and S3 and S4 have its old entry too, but not yet its no-op."""
    cluster = Cluster(5, mutants=mutants, batch_entries_max="1", pre_vote="off")
    s1, s2, s3, s4, s5 = cluster.members
    cluster.elect(s1)
    cluster.split(s1, s2)
    old = Client(cluster, "alice")
    old.client_id = 1
    old.set(s1, "title", "old")
    cluster.deliver()
    cluster.kill(s1)
    cluster.elect(s5, no_replication)
    cluster.kill(s5)
    cluster.heal()
    cluster.drop(lambda *_: True)
    cluster.start(s1)
    cluster.elect(s1, no_replication)
    assert cluster.log(s1) == [1, 1, 3]
    for peer in (s3, s4):
        # The no-op is refused for the gap before it; the old entry is then accepted, and the no-op after it held up.
        cluster.step(lambda _, target, message, peer=peer: target == peer and bool(message.entries))
        cluster.step(lambda source, _, __, peer=peer: source == peer)
        cluster.step(lambda _, target, message, peer=peer: target == peer and message.prev_log_index == 1)
        cluster.step(lambda source, _, __, peer=peer: source == peer)
        assert cluster.log(peer) == [1, 1]
    return cluster


def test_an_entry_of_an_old_generation_is_not_committed_by_counting() -> None:
    """LOG-S2: a majority stores the entry, and it is not committed; the no-op after it commits both."""
    cluster = old_entry_on_a_majority()
    assert cluster.mark("athens") == 0
    assert "old-generation-entry-held-back" in cluster.marks
    cluster.deliver()
    assert cluster.mark("athens") == 3
    assert cluster.broken() == []


def test_an_old_entry_that_was_not_committed_may_be_replaced() -> None:
    """LOG-S2, last act: S1 dies, and S5 wins with the newer generation in its log. Nobody had been told otherwise."""
    cluster = old_entry_on_a_majority()
    cluster.kill("athens")
    cluster.drop(lambda *_: True)
    cluster.start("ephesus")
    cluster.elect("ephesus")
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.log("cyrene") == cluster.log("ephesus")
    assert cluster.log("ephesus")[:2] == [1, 2]
    assert cluster.values("ephesus") == {}
    assert cluster.broken() == []


def test_once_an_entry_of_its_own_generation_is_committed_s5_can_no_longer_win() -> None:
    """LOG-S2, second branch."""
    cluster = old_entry_on_a_majority()
    cluster.deliver()
    cluster.kill("athens")
    cluster.start("ephesus")
    cluster.go_silent()
    for _ in range(3):
        cluster.time_out("ephesus")
        cluster.deliver()
        assert not cluster.leads("ephesus")


def test_the_planted_bug_commits_the_old_entry_and_is_reported() -> None:
    assert "LOG-R14" in old_entry_on_a_majority("commit-old-generation").broken()


def test_a_gap_is_refused_and_filled_by_going_back() -> None:
    """LOG-S3."""
    cluster = Cluster()
    assert lead_from_outside(cluster, 1, (0, 0), entries(1)).succeeded
    refusal = lead_from_outside(cluster, 1, (2, 1), entries(1, start=3))
    assert not refusal.succeeded
    assert refusal.replicated_log_index == 1
    answer = lead_from_outside(cluster, 1, (1, 1), entries(1, 1, start=2))
    assert (answer.succeeded, answer.replicated_log_index) == (True, 3)


def test_an_empty_log_refuses_a_gap() -> None:
    """LOG-R5, where the printed code skips the check."""
    cluster = Cluster()
    assert not lead_from_outside(cluster, 1, (2, 1), entries(1, start=3)).succeeded
    assert cluster.log("athens") == []


@pytest.mark.parametrize("stale", [2, 4])
def test_a_conflicting_suffix_is_replaced_whether_its_generation_is_lower_or_higher(stale: int) -> None:
    """LOG-S4."""
    cluster = Cluster()
    lead_from_outside(cluster, 4, (0, 0), entries(1, stale, stale))
    answer = lead_from_outside(cluster, 5, (1, 1), entries(3, start=2))
    assert (answer.succeeded, answer.replicated_log_index) == (True, 2)
    assert cluster.log("athens") == [1, 3]
    cluster.restart("athens")
    assert cluster.log("athens") == [1, 3]


def test_the_planted_bug_keeps_the_conflicting_suffix() -> None:
    cluster = Cluster(mutants=("no-truncate-on-conflict",))
    lead_from_outside(cluster, 4, (0, 0), entries(1, 2, 2))
    lead_from_outside(cluster, 5, (1, 1), entries(3, start=2))
    assert cluster.log("athens") == [1, 2, 2]


def test_an_old_short_request_cuts_nothing_off() -> None:
    """LOG-S11: it comes after the longer one, and says nothing about what is missing from it."""
    cluster = Cluster()
    lead_from_outside(cluster, 1, (0, 0), entries(1, 1, 1))
    answer = lead_from_outside(cluster, 1, (0, 0), entries(1))
    assert (answer.succeeded, answer.replicated_log_index) == (True, 1)
    assert cluster.log("athens") == [1, 1, 1]


def test_a_follower_neither_acknowledges_nor_applies_a_suffix_nobody_verified() -> None:
    """LOG-S12: index 5 of generation 1 is stale; the new leader's heartbeat ends at 4 and carries the mark 5."""
    cluster = Cluster()
    lead_from_outside(cluster, 1, (0, 0), entries(1, 1, 1, 1, 1))
    answer = lead_from_outside(cluster, 2, (4, 1), [], mark=5)
    assert (answer.succeeded, answer.replicated_log_index) == (True, 4)
    assert cluster.mark("athens") == 4
    assert cluster.nodes["athens"].log.last_applied == 4


def test_an_entry_only_the_dead_leader_had_is_never_seen() -> None:
    """HWM-S2: entry 4 is replaced by the new leader's, and the old leader drops it when it comes back."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    alice.set("athens", "title", "entry3")
    cluster.deliver()
    cluster.cut("athens")
    lost = alice.set("athens", "title", "entry4")
    cluster.kill("athens")
    cluster.elect("byzantium")
    alice.set("byzantium", "title", "entry5")
    cluster.deliver()
    cluster.heal()
    cluster.start("athens")
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert {cluster.values(name)["title"] for name in cluster.members} == {"entry5"}
    assert alice.answers_to(lost) == []
    assert cluster.broken() == []


def test_two_copies_of_five_are_not_shown_and_three_are() -> None:
    """HWM-S3."""
    cluster = Cluster(5)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", 1)
    cluster.deliver(only(("athens", "byzantium")))
    assert alice.answers_to(number) == []
    assert cluster.values("athens") == {}
    cluster.deliver(only(("athens", "cyrene")))
    assert len(alice.answers_to(number)) == 1
    assert cluster.values("athens") == {"title": 1}
    assert cluster.values("byzantium") == {}


def test_an_answered_write_survives_a_leader_that_dies_before_the_next_heartbeat() -> None:
    """HWM-S4."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", "answered")
    cluster.deliver()
    assert len(alice.answers_to(number)) == 1
    assert cluster.values("byzantium") == cluster.values("cyrene") == {}
    cluster.kill("athens")
    cluster.elect("byzantium")
    assert cluster.values("byzantium") == {"title": "answered"}


def test_a_rejoining_follower_keeps_entries_above_its_own_mark() -> None:
    """HWM-S5: its copy counted towards the quorum. Cut back to its own mark, the entry would be lost."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("cyrene")
    number = alice.set("athens", "title", "counted")
    cluster.deliver()
    assert len(alice.answers_to(number)) == 1
    assert cluster.mark("byzantium") < len(cluster.log("byzantium"))
    cluster.restart("byzantium")
    cluster.kill("athens")
    cluster.heal()
    cluster.go_silent()
    cluster.time_out("byzantium")
    cluster.deliver()
    assert cluster.leads("byzantium")
    assert cluster.values("byzantium") == {"title": "counted"}


def test_with_four_servers_two_copies_are_no_majority() -> None:
    """LOG-S17."""
    cluster = Cluster(4)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", 1)
    cluster.deliver(only(("athens", "byzantium")))
    assert alice.answers_to(number) == []
    cluster.deliver(only(("athens", "cyrene")))
    assert len(alice.answers_to(number)) == 1


def test_all_die_and_all_come_back_with_what_was_committed() -> None:
    """LOG-S18."""
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    for value in range(5):
        alice.set("athens", f"key{value}", value)
        cluster.deliver()
    for name in cluster.members:
        cluster.restart(name)
    cluster.elect("cyrene")
    cluster.heartbeat("cyrene")
    cluster.deliver()
    assert {str(cluster.values(name)) for name in cluster.members} == {str({f"key{n}": n for n in range(5)})}


def test_lost_requests_are_sent_again_from_the_first_that_was_not_acknowledged() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    for value in range(8):
        alice.set("athens", "title", value)
    to_cyrene = [message for _, target, message in cluster.queue if target == "cyrene"]
    assert len(to_cyrene) == 5
    cluster.drop(lambda _, target, __: target == "cyrene")
    cluster.deliver()
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.log("cyrene") == cluster.log("athens")
    assert "in-flight-go-back" in cluster.marks


def test_the_planted_bug_ack_before_quorum_answers_alone() -> None:
    cluster = Cluster(mutants=("ack-before-quorum",))
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("athens")
    assert len(alice.answers_to(alice.set("athens", "title", 1))) == 1


@pytest.mark.parametrize(("mutants", "survives"), [((), True), (("ack-before-fsync",), False)])
def test_an_answered_write_survives_the_death_of_all_unless_the_fsync_was_left_for_later(
    mutants: tuple[str, ...], survives: bool
) -> None:
    """LOG-M9."""
    cluster = Cluster(mutants=mutants)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", "answered")
    cluster.deliver()
    assert len(alice.answers_to(number)) == 1
    for name in cluster.members:
        cluster.kill(name)
    for name in cluster.members:
        cluster.start(name)
    cluster.elect("byzantium")
    assert (cluster.values("byzantium") == {"title": "answered"}) == survives
