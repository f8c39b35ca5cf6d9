"""A range splits and moves while a transaction is open on its keys: prepared, decided, or neither."""

from __future__ import annotations

from typing import Any

import pytest
from range_transactions_driver import TransactionsOnRanges, carries, from_range

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Answer, Program, Read, Verb
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    PrepareTransaction,
    Vote,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.range_transactions.messages import READ_AGAIN, ReadWithin
from faultline.systems_under_test.reference.range_transactions.reads import ReadAnew, SnapshotExecutor
from faultline.testing.fake_ports import FakePorts

WRITES = [["w", "a", 1], ["w", "m", 2], ["w", "z", 3]]


def prepared(cluster: TransactionsOnRanges) -> list:
    """A transaction over the keys a, m and z, on three nodes; it is prepared, and the votes are held back."""
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    assert [cluster.prepared_on(node) for node in cluster.members] == [["a"], ["m"], ["z"]]
    return outcomes


@pytest.mark.rows("TPC-S15")
def test_a_prepared_transaction_moves_with_its_range_and_commits_there() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = prepared(cluster)
    cluster.drop(from_range(Vote))
    cluster.move("m", "cyrene")
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    assert [cluster.prepared_on(node) for node in cluster.members] == [["a"], [], ["m", "z"]]
    assert cluster.ended(outcomes).kind == "ok"
    assert cluster.read("a", "m", "z") == [1, 2, 3]
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S15")
def test_a_decision_that_finds_the_range_gone_is_sent_to_its_new_host() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver()
    assert outcomes == []  # the coordinator has all votes, and waits for its clock
    cluster.move("m", "cyrene")
    cluster.deliver()
    assert cluster.prepared_on("cyrene") == ["m", "z"]
    cluster.pass_time(3_000)
    cluster.deliver()
    assert [outcome.kind for outcome in outcomes] == ["ok"]
    assert cluster.prepared_on("cyrene") == ["m"]
    cluster.settle()
    assert cluster.prepared_on("cyrene") == []
    assert "protocol-message-refused" in cluster.marks
    assert cluster.read("a", "m", "z") == [1, 2, 3]
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S15")
def test_a_transaction_that_is_not_prepared_is_aborted_by_a_move_and_tried_again() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver(lambda *sent: not carries(PrepareTransaction)(*sent))
    cluster.move("m", "cyrene")
    cluster.deliver(lambda *sent: not carries(PrepareTransaction)(*sent))
    assert "range-moved-with-open-transaction" in cluster.marks
    assert cluster.ended(outcomes).kind == "ok"
    assert {"voted-no", "transaction-tried-again"} <= set(cluster.marks)
    assert cluster.read("a", "m", "z") == [1, 2, 3]
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S15")
def test_a_split_divides_the_locks_and_values_of_a_prepared_transaction() -> None:
    cluster = TransactionsOnRanges("")
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    cluster.drop(from_range(Vote))
    cluster.split("m")
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    held = cluster.nodes[cluster.members[0]].store.held
    assert [sorted(held[number].participant.promises()[0].locks) for number in sorted(held)] == [["a"], ["m", "z"]]
    assert cluster.ended(outcomes).kind == "ok"
    assert cluster.read("a", "m", "z") == [1, 2, 3]
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S15")
def test_a_range_with_a_prepared_transaction_outlives_crashes_of_both_hosts_on_its_way() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = prepared(cluster)
    cluster.drop(from_range(Vote))
    cluster.move("m", "cyrene")
    cluster.step(lambda _source, target, message: target == "byzantium" and type(message).__name__ == "MovePartition")
    cluster.restart("byzantium")
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    cluster.settle(100)
    cluster.restart("cyrene")
    assert cluster.ended(outcomes).kind == "ok"
    assert cluster.read("a", "m", "z") == [1, 2, 3]
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S15")
def test_a_promise_that_stays_behind_is_an_invariant_broken() -> None:
    cluster = TransactionsOnRanges("f,p", ("move-leaves-promises-behind",))
    prepared(cluster)
    cluster.move("m", "cyrene")
    cluster.deliver(lambda *sent: not from_range(Vote)(*sent))
    assert cluster.prepared_on("cyrene") == ["z"]
    assert cluster.broken() == ["TPC-S15"]


@pytest.mark.rows("CBW-R25")
def test_participants_hold_their_locks_through_the_commit_wait_and_the_client_is_answered_after_it() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver()
    assert [cluster.prepared_on(node) for node in cluster.members] == [["a"], ["m"], ["z"]]
    assert outcomes == []
    cluster.pass_time(1_900)
    cluster.deliver()
    assert (outcomes, cluster.prepared_on("athens")) == ([], ["a"])
    cluster.pass_time(200)
    cluster.deliver()
    assert [outcome.kind for outcome in outcomes] == ["ok"]
    assert cluster.prepared_on("athens") == []


@pytest.mark.rows("CBW-R25")
def test_a_read_at_one_time_waits_for_what_is_prepared_before_it() -> None:
    cluster = TransactionsOnRanges("f,p")
    outcomes = cluster.begin("writer", WRITES)
    cluster.deliver()
    reads = cluster.begin("reader", [["r", "m", None]])
    cluster.pass_time(1_000)
    cluster.deliver()
    assert (outcomes, reads) == ([], [])
    assert cluster.ended(reads).value == [["r", "m", 2]]
    assert "snapshot-read-waited" in cluster.marks


def reads_of(key: str) -> Any:
    """Return a filter for reads of `key` at one time."""
    return lambda *sent: carries(ReadWithin)(*sent) and sent[2].message.key == key


@pytest.mark.rows("CBW-R14")
@pytest.mark.parametrize(("planted_bugs", "seen"), [((), [2, 2]), (("restart-of-one-key",), [1, 2])])
def test_a_read_of_several_keys_that_cannot_place_one_reads_all_of_them_anew(planted_bugs, seen) -> None:
    cluster = TransactionsOnRanges("f", planted_bugs, wait="restart")
    cluster.ask("writer", [["w", "a", 1], ["w", "m", 1]])
    cluster.pass_time(300_000)
    reads = cluster.begin("reader", [["r", "a", None], ["r", "m", None]])
    cluster.deliver(lambda *sent: not reads_of("m")(*sent))
    late = cluster.take(reads_of("m"))
    cluster.pass_time(1_000)
    cluster.ask("writer", [["w", "a", 2], ["w", "m", 2]])
    for message in late:
        cluster.hand(*message)
    assert [value for _, _, value in cluster.ended(reads).value] == seen
    assert ("read-restarted-over-several-keys" in cluster.marks) == (not planted_bugs)


def test_an_attempt_to_read_ends_at_the_first_version_that_cannot_be_placed() -> None:
    def program() -> Program:
        yield Read("a")
        yield Read("m")

    reader = SnapshotExecutor(lambda _: NodeId("n1"), 1, NodeId("n1"), window_us=100, trace=FakePorts())
    attempt = reader._snapshot(program())  # read_at_one_time begins anew where this raises
    assert next(attempt).verb == Verb.READ_TIME
    assert attempt.send(Answer(None, time=HybridTimestamp(10, 0))).verb == Verb.READ_AT
    with pytest.raises(ReadAnew):
        attempt.send(Answer(READ_AGAIN, time=HybridTimestamp(20, 0)))
