"""Logs of transactional-kv that are cut short: the same state comes from a snapshot as from the whole log."""

from __future__ import annotations

import pytest

from faultline.story.transaction_cluster import ATHENS, BYZANTIUM, CYRENE, Transaction, TransactionCluster
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import (
    Answer,
    OutcomeUnknown,
    TransactionExecutor,
    Write,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import PrepareTransaction, Vote
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import OutcomeForgotten
from faultline.systems_under_test.reference.transactions.messages import AskCommit

SHORT = {"snapshot_every_entries": "10", "segment_size_bytes": "256"}
NODES = (ATHENS, BYZANTIUM, CYRENE)


def transfer(cluster: TransactionCluster, number: int) -> Transaction:
    """A transaction that writes one key on each of two nodes; every fifth is given up."""
    writer = Transaction(cluster, f"writer-{number}").begin(ATHENS)
    writer.write(cluster.key_on(BYZANTIUM), number)
    writer.write(cluster.key_on(CYRENE), number)
    if number % 5:
        assert writer.commit() is True
    else:
        writer.roll_back()
    return writer


def with_a_transaction_in_doubt(**options: str) -> TransactionCluster:
    """Thirty transfers, one more prepared and undecided, and then all servers die."""
    cluster = TransactionCluster(3, (), **options)
    for number in range(1, 31):
        transfer(cluster, number)
    writer = Transaction(cluster, "in-doubt").begin(ATHENS)
    writer.write(cluster.key_on(BYZANTIUM, "other"), "pending")
    writer.ask_commit()
    cluster.deliver(lambda _, __, message: isinstance(message, PrepareTransaction))
    cluster.drop(lambda _, __, message: isinstance(message, Vote))
    for node in NODES:
        cluster.kill(node)
    return cluster


def log_bytes(cluster: TransactionCluster, node: str) -> int:
    storage = cluster.ports[node].storage
    return sum(len(storage.read(file)) for file in storage.files() if file.endswith(".log"))


@pytest.mark.rows("TPC-R48", "TPC-R45", "LWM-I1")
def test_a_restart_from_a_snapshot_leads_to_the_state_that_the_whole_log_leads_to() -> None:
    states = []
    for options in ({}, SHORT):
        cluster = with_a_transaction_in_doubt(**options)
        for node in NODES:
            cluster.start(node)
            snapshots = [file for file in cluster.ports[node].storage.files() if file.endswith(".snap")]
            assert bool(snapshots) == bool(options)
        cluster.queue.clear()
        states.append([cluster.nodes[node].records() for node in NODES])
        assert cluster.locks(BYZANTIUM, next(iter(cluster.participant(BYZANTIUM).open)))
        assert cluster.broken() == []
    assert states[0] == states[1]


def test_the_log_stays_as_short_as_its_snapshots_allow_however_many_transactions_there_are() -> None:
    short, whole = TransactionCluster(3, (), **SHORT), TransactionCluster()
    for number in range(1, 61):
        transfer(short, number)
        transfer(whole, number)
        assert all(log_bytes(short, node) < 2_500 for node in NODES)
    assert log_bytes(whole, ATHENS) > 4 * log_bytes(short, ATHENS)
    assert short.values_now() == whole.values_now()


def test_outcomes_of_old_transactions_are_forgotten_and_no_client_is_told_that_they_were_rolled_back() -> None:
    cluster = TransactionCluster(3, (), **SHORT, transactions_remembered="2")
    first = transfer(cluster, 1)
    for number in range(2, 31):
        transfer(cluster, number)
    last = transfer(cluster, 31)
    coordinator = cluster.nodes[ATHENS].coordinator
    assert coordinator.commit(last.id).result().committed
    with pytest.raises(OutcomeForgotten):
        coordinator.commit(first.id).result()
    number = cluster.request("late", ATHENS, AskCommit, first.id)
    reply = cluster.reply("late", number)
    assert reply is not None and reply.error == "forgotten"
    assert len(coordinator.transactions) < 10 and len(cluster.participant(BYZANTIUM)._ended) < 20


def test_a_client_that_is_told_so_does_not_know_what_became_of_its_transaction() -> None:
    executor = TransactionExecutor(lambda key: ATHENS, attempts_max=3)

    def program():
        yield Write("key", 1)

    steps = executor.execute(program)
    ref = Transaction(TransactionCluster(), "alice").begin(ATHENS).ref
    steps.send(None)  # type: ignore[arg-type]  # begin
    steps.send(Answer(None, ref=ref))
    steps.send(Answer(None))
    steps.send(Answer(None))
    with pytest.raises(OutcomeUnknown):
        steps.send(Answer("forgotten"))
    assert executor.in_doubt


def test_numbers_go_on_after_a_restart_from_a_snapshot_that_has_forgotten_the_latest() -> None:
    cluster = TransactionCluster(3, (), **SHORT, transactions_remembered="1")
    numbers = [transfer(cluster, number).id.number for number in range(1, 20)]
    cluster.restart(ATHENS)
    numbers += [transfer(cluster, number).id.number for number in range(20, 24)]
    assert len(set(numbers)) == len(numbers)
