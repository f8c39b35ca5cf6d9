"""Stories of two-phase commit over replicated partitions: leaders change between the steps of a transaction."""

from __future__ import annotations

import pytest
from group_driver import GroupCluster, GroupTransaction, between_groups, replication

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import NodeId
from faultline.story.transaction_cluster import ATHENS, BYZANTIUM, CYRENE, REFUSED, WAITS
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    CommitTransaction,
    PrepareTransaction,
    TransactionId,
    Vote,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL
from faultline.systems_under_test.reference.transactional_kv.group_messages import LeadershipEvent
from faultline.systems_under_test.reference.transactional_kv.system import TransactionalKv
from faultline.systems_under_test.reference.transactions.messages import AskCommit, ReadTime

GROUP_1, GROUP_2, GROUP_3 = "group-1", "group-2", "group-3"
A_SECOND = 1_000_000


def written(cluster: GroupCluster) -> tuple[GroupTransaction, str, str]:
    """A transaction coordinated by group 1, which has written one key in group 2 and one in group 3."""
    one, other = cluster.key_in(GROUP_2), cluster.key_in(GROUP_3)
    writer = GroupTransaction(cluster, "writer", GROUP_1)
    writer.write(one, "new")
    writer.write(other, "new")
    return writer, one, other


def prepared(cluster: GroupCluster) -> tuple[GroupTransaction, str, str]:
    """The same, prepared and replicated in both groups, and their votes under way."""
    writer, one, other = written(cluster)
    writer.ask_commit()
    cluster.deliver(between_groups(PrepareTransaction))
    cluster.deliver(replication)
    return writer, one, other


def assert_ends(cluster: GroupCluster, writer: GroupTransaction, values: object) -> None:
    """Some time later both keys hold that, nothing is locked or open anywhere, and no invariant was broken."""
    cluster.pass_time(2 * A_SECOND)
    found = [cluster.latest(cluster.key_in(group)) for group in (GROUP_2, GROUP_3)]
    assert (found, cluster.is_quiet(), cluster.broken()) == ([values, values], True, [])


@pytest.mark.rows("TPC-R44")
def test_each_partition_is_a_group_with_a_leader_and_a_log_of_its_own() -> None:
    cluster = GroupCluster()
    assert [cluster.leader(group) for group in (GROUP_1, GROUP_2, GROUP_3)] == [ATHENS, BYZANTIUM, CYRENE]
    writer, _, _ = written(cluster)
    writer.ask_commit()
    cluster.deliver()
    assert writer.outcome() is True
    assert_ends(cluster, writer, "new")


@pytest.mark.rows("TPC-R44", "TPC-R9")
def test_a_vote_leaves_when_the_promise_is_on_a_majority_and_not_before() -> None:
    cluster = GroupCluster()
    writer, _, _ = written(cluster)
    writer.ask_commit()
    cluster.deliver(between_groups(PrepareTransaction))
    assert cluster.take(between_groups(Vote)) == []
    cluster.deliver(replication)
    assert len(cluster.take(between_groups(Vote))) == 2


@pytest.mark.rows("TPC-R44", "TPC-R8")
def test_a_decision_leaves_when_it_is_on_a_majority_and_not_before() -> None:
    cluster = GroupCluster()
    writer, _, _ = prepared(cluster)
    cluster.deliver(between_groups(Vote))
    assert writer.outcome() == WAITS and cluster.take(between_groups(CommitTransaction)) == []
    cluster.deliver(replication)
    assert writer.outcome() is True and len(cluster.take(between_groups(CommitTransaction))) == 2


@pytest.mark.rows("TPC-S14", "TPC-R44", "TPC-R11")
def test_a_participant_whose_leader_died_between_write_and_prepare_votes_no() -> None:
    cluster = GroupCluster()
    writer, _, _ = written(cluster)
    cluster.kill(BYZANTIUM)
    cluster.pass_time(A_SECOND // 2)
    assert cluster.leader(GROUP_2) == CYRENE
    writer.ask_commit()
    cluster.deliver()
    assert writer.outcome() is False
    assert_ends(cluster, writer, None)


@pytest.mark.rows("TPC-S14", "TPC-R44", "TPC-R17", "TPC-R48")
def test_a_participant_whose_leader_died_between_prepare_and_commit_keeps_its_locks_and_commits() -> None:
    cluster = GroupCluster()
    writer, one, _ = prepared(cluster)
    cluster.drop(between_groups(Vote))
    cluster.kill(BYZANTIUM)
    assert_ends(cluster, writer, "new")
    reports = [told for _, told in cluster.events_of(LeadershipEvent) if told.group == GROUP_2]
    took_over = [told for told in reports if told.kind == "TookOver"]
    assert [promise.locks for promise in took_over[-1].event.promises] == [{one: LockMode.WRITE}]
    assert writer.outcome() is True


@pytest.mark.rows("TPC-R44", "TPC-R48")
def test_a_new_leader_asks_what_became_of_the_promises_that_it_has_taken_over() -> None:
    cluster = GroupCluster()
    writer, _, _ = prepared(cluster)
    cluster.deliver(between_groups(Vote))
    cluster.deliver(replication)
    assert writer.outcome() is True
    cluster.drop(between_groups(CommitTransaction))
    cluster.kill(BYZANTIUM)
    cluster.cut(ATHENS, CYRENE)
    cluster.pass_time(A_SECOND // 10)
    assert "decision-asked-for" not in cluster.marks
    assert_ends(cluster.healed(), writer, "new")
    assert {"in-doubt-after-restart", "decision-asked-for"} <= set(cluster.marks)


@pytest.mark.rows("TPC-S14", "TPC-R44", "TPC-R45")
def test_a_coordinator_whose_leader_died_after_the_decision_was_replicated_brings_it_to_its_end() -> None:
    cluster = GroupCluster()
    writer, _, _ = prepared(cluster)
    cluster.deliver(between_groups(Vote))
    cluster.deliver(replication)
    cluster.drop(between_groups(CommitTransaction))
    cluster.kill(ATHENS)
    assert_ends(cluster, writer, "new")
    assert cluster.leader(GROUP_1) == BYZANTIUM


@pytest.mark.rows("TPC-S14", "TPC-R44", "TPC-R45")
def test_a_coordinator_whose_leader_died_before_the_decision_was_replicated_rolls_back() -> None:
    cluster = GroupCluster()
    writer, _, _ = prepared(cluster)
    cluster.deliver(between_groups(Vote))
    cluster.drop(replication)
    cluster.kill(ATHENS)
    assert_ends(cluster, writer, None)
    number = cluster.request("writer", GROUP_1, AskCommit, writer.id)
    cluster.deliver()
    assert cluster.value("writer", number) is False


@pytest.mark.rows("TPC-R44", "TPC-R5", "TPC-R15")
def test_with_one_node_gone_for_good_transactions_go_on_and_none_is_blocked() -> None:
    cluster = GroupCluster()
    writer, _, _ = prepared(cluster)
    cluster.kill(CYRENE)
    assert_ends(cluster, writer, "new")
    again, _, _ = written(cluster)
    again.ask_commit()
    cluster.deliver()
    assert again.outcome() is True


@pytest.mark.rows("TPC-R44")
def test_a_leader_that_is_cut_off_gives_out_no_answer_and_hands_in_no_vote() -> None:
    cluster = GroupCluster()
    reader = GroupTransaction(cluster, "reader", GROUP_1)
    cluster.cut(BYZANTIUM)
    cluster.pass_time(A_SECOND // 4)
    assert cluster.replica(GROUP_2, BYZANTIUM).is_serving
    assert reader.read(cluster.key_in(GROUP_2), at=BYZANTIUM) == WAITS
    cluster.pass_time(A_SECOND)
    assert not cluster.replica(GROUP_2, BYZANTIUM).is_serving
    assert reader.read(cluster.key_in(GROUP_2)) == REFUSED
    assert "deposed-leader-held-answers-back" in cluster.marks and cluster.broken() == []


@pytest.mark.rows("TPC-R44")
def test_what_was_unknown_to_a_deposed_coordinator_is_not_said_to_be_rolled_back() -> None:
    cluster = GroupCluster()
    cluster.cut(ATHENS)
    cluster.pass_time(A_SECOND * 2 // 5)
    assert cluster.replica(GROUP_1, ATHENS).is_serving
    number = cluster.request("late", GROUP_1, AskCommit, TransactionId(99, GROUP_1), at=ATHENS)
    cluster.pass_time(2 * A_SECOND)
    assert cluster.value("late", number) == WAITS


@pytest.mark.rows("TPC-R44", "TPC-S8")
def test_all_nodes_restart_and_every_promise_is_kept() -> None:
    cluster = GroupCluster()
    prepared(cluster)
    cluster.drop(between_groups(Vote))
    for node in (ATHENS, BYZANTIUM, CYRENE):
        cluster.kill(node)
    for node in (ATHENS, BYZANTIUM, CYRENE):
        cluster.start(node)
    cluster.pass_time(2 * A_SECOND)
    values = {cluster.latest(cluster.key_in(group)) for group in (GROUP_2, GROUP_3)}
    assert len(values) == 1 and cluster.is_quiet() and cluster.broken() == []


@pytest.mark.rows("TPC-R44", "LWM-I1", "HYC-R7", "HYC-I6")
def test_a_standby_has_the_state_of_the_leader() -> None:
    cluster = GroupCluster(snapshot_every_entries="4", segment_size_bytes="256")
    for number in range(5):
        writer, _, _ = written(cluster)
        writer.ask_commit()
        cluster.deliver()
        assert writer.outcome() is True, number
    cluster.pass_time(A_SECOND)
    for group in (GROUP_1, GROUP_2, GROUP_3):
        states = [cluster.replica(group, node).node.records() for node in (ATHENS, BYZANTIUM, CYRENE)]
        assert states[0] == states[1] == states[2]
    assert "snapshot-taken" in cluster.marks and cluster.broken() == []


@pytest.mark.rows("TPC-R44", "LWM-I5")
def test_a_member_that_was_away_for_long_is_sent_a_snapshot_and_can_lead_from_it() -> None:
    cluster = GroupCluster(snapshot_every_entries="4", segment_size_bytes="256", log_cleaning_interval_ms="50")
    cluster.kill(CYRENE)
    cluster.pass_time(A_SECOND)
    for _ in range(5):
        writer, _, _ = written(cluster)
        writer.ask_commit()
        cluster.deliver()
        cluster.pass_time(A_SECOND // 10)
    cluster.start(CYRENE)
    cluster.pass_time(A_SECOND)
    assert "snapshot-installed" in cluster.marks
    cluster.kill(BYZANTIUM)
    cluster.pass_time(A_SECOND)
    assert cluster.leader(GROUP_2) == CYRENE
    assert cluster.latest(cluster.key_in(GROUP_2)) == "new" and cluster.broken() == []


@pytest.mark.rows("HYC-S8", "LMC-R6", "LMC-S6")
@pytest.mark.parametrize("clock", ["hybrid", "lamport"])
def test_a_new_leader_whose_clock_is_behind_stores_above_all_that_its_group_has(clock: str) -> None:
    cluster = GroupCluster(clock=clock)
    cluster.ports[CYRENE].wall_offset_us = -30 * A_SECOND
    cluster.ports[BYZANTIUM].wall_offset_us = A_SECOND // 4
    for killed in (None, BYZANTIUM):
        if killed is not None:
            cluster.kill(killed)
            cluster.pass_time(A_SECOND)
        for _ in range(2):
            writer = GroupTransaction(cluster, "writer", GROUP_2)
            writer.write(cluster.key_in(GROUP_2), "value")
            writer.ask_commit()
            cluster.deliver()
            assert writer.outcome() is True
    assert cluster.leader(GROUP_2) == CYRENE
    stored = [told.event.time for _, told in cluster.events_of(LeadershipEvent) if told.kind == "ValueStored"]
    assert len(stored) == 4 and stored == sorted(set(stored)) and cluster.broken() == []


@pytest.mark.rows("TPC-S18", "TPC-R42")
def test_the_times_of_an_oracle_ascend_over_a_change_of_its_leader() -> None:
    cluster = GroupCluster(clock="oracle")
    times = []
    for killed in (None, ATHENS):
        if killed is not None:
            cluster.kill(killed)
            cluster.pass_time(A_SECOND)
        for _ in range(3):
            number = cluster.request("philip", GROUP_1, ReadTime, BEFORE_ALL)
            cluster.deliver()
            times += [message.time for _, message in cluster.inbox["philip"] if message.number == number]
    assert len(times) == 6 and times == sorted(set(times)) and cluster.broken() == []


@pytest.mark.rows("TPC-M17")
def test_a_coordinator_that_remembers_addresses_leaves_a_participant_locked_for_ever() -> None:
    cluster = GroupCluster(3, ("participants-by-address",))
    writer, one, _ = prepared(cluster)
    cluster.kill(BYZANTIUM)
    cluster.pass_time(A_SECOND // 2)
    cluster.start(BYZANTIUM)
    cluster.pass_time(3 * A_SECOND)
    assert cluster.leader(GROUP_2) == CYRENE
    assert cluster.participant(GROUP_2).locks.locks_of(writer.id) == {one: LockMode.WRITE}


@pytest.mark.parametrize(
    ("nodes", "options", "named"),
    [
        (2, {"replication_factor": "3"}, "2 nodes cannot hold 3 copies"),
        (3, {"replication_factor": "2"}, "replication_factor"),
        (3, {"replication_factor": "3", "leader_lease_ms": "250"}, "lease"),
        (3, {"replication_factor": "3", "heartbeat_interval_ms": "200"}, "heartbeat"),
    ],
)
def test_groups_that_cannot_be_are_refused_with_a_reason(nodes: int, options: dict[str, str], named: str) -> None:
    members = tuple(NodeId(name) for name in (ATHENS, BYZANTIUM, CYRENE)[:nodes])
    ports = GroupCluster().ports[ATHENS]
    with pytest.raises(UsageError, match=named):
        TransactionalKv().node(ports, members, options, frozenset())
