"""Stories of two-phase commit: bookings that conflict, and crashes, losses and silences at every point."""

from __future__ import annotations

import pytest
from transaction_driver import ATHENS, BYZANTIUM, WAITS, Transaction, TransactionCluster

from faultline.systems_under_test.patterns.data_partitioning.snapshot_reads import ReadBlocked
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import PrepareTransaction
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp

TRUCK, BACKHOE = "truck_booking_on_monday", "backhoe_booking_on_monday"


@pytest.mark.rows("TPC-S1")
def test_alice_books_truck_and_backhoe_on_two_nodes_with_one_transaction() -> None:
    cluster = TransactionCluster()
    alice = Transaction(cluster, "alice")
    assert (alice.read(TRUCK), alice.read(BACKHOE)) == (None, None)
    alice.write(TRUCK, "alice")
    alice.write(BACKHOE, "alice")
    assert (cluster.latest(TRUCK), cluster.latest(BACKHOE)) == (None, None)
    assert alice.commit() is True
    assert (cluster.latest(TRUCK), cluster.latest(BACKHOE)) == ("alice", "alice")
    assert cluster.version(TRUCK) == cluster.version(BACKHOE)
    assert cluster.is_quiet() and cluster.broken() == []


def test_a_read_at_a_time_that_may_still_get_a_write_fails_after_the_bounded_wait() -> None:
    cluster = TransactionCluster()
    key = cluster.key_on(ATHENS)
    writer = Transaction(cluster, "alice").begin(BYZANTIUM)
    writer.write(key, 1)
    writer.ask_commit()
    cluster.deliver(lambda _, __, message: isinstance(message, PrepareTransaction))
    cluster.cut(BYZANTIUM, ATHENS)
    answer = cluster.participant(ATHENS).snapshots.read_at(key, HybridTimestamp(10**11, 0))
    assert not answer.done
    cluster.pass_time(200_000)
    with pytest.raises(ReadBlocked, match="not decided"):
        answer.result()
    assert cluster.locks(ATHENS, writer.id) == {key: LockMode.WRITE}
    assert writer.outcome() is WAITS
