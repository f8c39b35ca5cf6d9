"""Stories of two-phase commit: bookings that conflict, and crashes, losses and silences at every point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faultline.story.transaction_cluster import (
    ATHENS,
    BYZANTIUM,
    CYRENE,
    REFUSED,
    WAITS,
    Transaction,
    TransactionCluster,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    PrepareTransaction,
    RollBackTransaction,
    Vote,
)
from faultline.systems_under_test.reference.transactions.messages import AskRollback, PutInTransaction

TRUCK, BACKHOE = "truck_booking_on_monday", "backhoe_booking_on_monday"
A_SECOND = 1_000_000


def only(*kinds: type) -> Callable[[str, str, Any], bool]:
    return lambda _, __, message: isinstance(message, kinds)


def written(cluster: TransactionCluster, value: Any = 1) -> tuple[Transaction, str, str]:
    """A transaction coordinated by athens that has written one key at byzantium and one at cyrene."""
    one, other = cluster.key_on(BYZANTIUM), cluster.key_on(CYRENE)
    writer = Transaction(cluster, f"writer-{value}").begin(ATHENS)
    writer.write(one, value)
    writer.write(other, value)
    return writer, one, other


def prepared(cluster: TransactionCluster, value: Any = 1) -> tuple[Transaction, str, str]:
    """The same, prepared at both, and their votes lost."""
    writer, one, other = written(cluster, value)
    writer.ask_commit()
    cluster.deliver(only(PrepareTransaction))
    cluster.drop(only(Vote))
    return writer, one, other


def assert_settled(cluster: TransactionCluster, value: Any) -> None:
    """Some time later both keys hold `value`, nothing is locked or open anywhere, and no invariant was broken."""
    cluster.heal()
    cluster.pass_time(2 * A_SECOND)
    values = [cluster.latest(cluster.key_on(node)) for node in (BYZANTIUM, CYRENE)]
    assert (values, cluster.is_quiet(), cluster.broken()) == ([value, value], True, [])


@pytest.mark.rows("TPC-S1", "TPC-R7", "TPC-R8", "TPC-R9", "TPC-R12", "TPC-R37", "HYC-R9")
def test_alice_books_truck_and_backhoe_on_two_nodes_with_one_transaction() -> None:
    cluster = TransactionCluster()
    alice = Transaction(cluster, "alice")
    assert (alice.read(TRUCK), alice.read(BACKHOE)) == (None, None)
    alice.write(TRUCK, "alice")
    alice.write(BACKHOE, "alice")
    assert alice.read(TRUCK) == "alice"
    assert (cluster.latest(TRUCK), cluster.latest(BACKHOE)) == (None, None)
    assert alice.commit() is True
    assert (cluster.latest(TRUCK), cluster.latest(BACKHOE)) == ("alice", "alice")
    assert cluster.version(TRUCK) == cluster.version(BACKHOE)
    assert cluster.is_quiet() and cluster.broken() == []


@pytest.mark.rows("TPC-S2", "TPC-S3", "TPC-S4", "TPC-R21", "TPC-R22", "TPC-R25", "TPC-R26", "TPC-R27", "TPC-R34")
@pytest.mark.parametrize(
    ("policy", "alice_wins", "restarts"), [("error", None, 2), ("wound-wait", True, 1), ("wait-die", True, 1)]
)
def test_of_alice_and_bob_who_saw_both_free_one_gets_both(policy: str, alice_wins: bool | None, restarts: int) -> None:
    cluster = TransactionCluster(policy=policy)
    alice, bob = Transaction(cluster, "alice"), Transaction(cluster, "bob")
    for guest in (alice, bob):
        assert (guest.read(TRUCK), guest.read(BACKHOE)) == (None, None)
    for guest in (alice, bob):
        guest.write(TRUCK, guest.name)
        guest.write(BACKHOE, guest.name)
    alice.ask_commit()
    bob.ask_commit()
    cluster.pass_time(A_SECOND)
    outcomes = [alice.outcome(), bob.outcome()]
    assert outcomes.count(False) in (1, restarts) and outcomes.count(True) <= 1
    if alice_wins:
        assert outcomes == [True, False]
    owner = cluster.latest(TRUCK)
    assert owner == cluster.latest(BACKHOE)
    again = Transaction(cluster, "again", first=bob.ref)
    assert (again.read(TRUCK), again.read(BACKHOE)) == (owner, owner)
    assert again.commit() is True
    assert cluster.is_quiet() and cluster.broken() == []


@pytest.mark.rows("TPC-S3", "TPC-R17", "TPC-I6")
def test_an_older_transaction_waits_for_a_younger_one_that_is_prepared_and_sees_what_it_wrote() -> None:
    cluster = TransactionCluster(policy="wound-wait")
    older = Transaction(cluster, "older").begin(ATHENS)
    younger, one, _ = prepared(cluster, "younger")
    number = older.ask(one)
    assert older.answer(number) is WAITS
    assert cluster.locks(BYZANTIUM, younger.id) == {one: LockMode.WRITE}
    cluster.pass_time(130_000)
    assert younger.outcome() is True
    assert older.answer(number) == "younger"


@pytest.mark.rows("TPC-S5", "TPC-I7")
def test_a_circle_through_a_prepared_owner_which_the_policy_does_not_prevent_ends_with_the_bounded_wait() -> None:
    cluster = TransactionCluster(policy="wound-wait")
    one, other = cluster.key_on(BYZANTIUM), cluster.key_on(CYRENE)
    older = Transaction(cluster, "older").begin(ATHENS)
    assert older.read(other) is None
    younger = Transaction(cluster, "younger").begin(ATHENS)
    younger.write(one, 1)
    younger.write(other, 1)
    younger.ask_commit()
    cluster.deliver()
    assert younger.outcome() is WAITS
    number = older.ask(one)
    assert older.answer(number) is WAITS
    cluster.pass_time(A_SECOND)
    assert "lock-wait-ended" in cluster.marks
    assert cluster.latest(one) == cluster.latest(other)
    cluster.pass_time(A_SECOND)
    assert cluster.is_quiet() and cluster.broken() == []


@pytest.mark.rows("TPC-S6", "TPC-R8", "TPC-R13", "TPC-R18", "TPC-R43")
@pytest.mark.parametrize("reason", ["unreachable", "votes-no", "client"])
def test_without_a_yes_of_all_participants_all_is_rolled_back_everywhere(reason: str) -> None:
    cluster = TransactionCluster()
    writer, _, _ = written(cluster)
    if reason == "unreachable":
        cluster.cut(CYRENE)
    elif reason == "votes-no":
        cluster.restart(CYRENE)
    if reason == "client":
        writer.roll_back()
    else:
        writer.ask_commit()
    cluster.pass_time(A_SECOND)
    assert reason == "client" or writer.outcome() is False
    assert_settled(cluster, None)


@pytest.mark.rows("TPC-S7", "TPC-R3", "TPC-R45", "TPC-R47", "TPC-R19")
@pytest.mark.parametrize(
    ("moment", "value"),
    [("begun", None), ("preparing", None), ("voted", None), ("decided", 1), ("some-told", 1), ("rolling-back", None)],
)
def test_all_participants_end_alike_at_each_crash_of_the_coordinator(moment: str, value: int | None) -> None:
    cluster = TransactionCluster()
    writer, one, _ = written(cluster)
    if moment == "rolling-back":
        cluster.request(writer.name, ATHENS, AskRollback, writer.id)
    elif moment != "begun":
        writer.ask_commit()
    if moment in ("voted", "decided", "some-told"):
        cluster.deliver(only(PrepareTransaction))
    if moment in ("decided", "some-told"):
        cluster.deliver(only(Vote))
    if moment == "some-told":
        cluster.step(only(CommitTransaction))
    cluster.drop(only(PrepareTransaction, CommitTransaction, RollBackTransaction, Acknowledged))
    cluster.kill(ATHENS)
    if moment == "voted":
        cluster.pass_time(3 * A_SECOND)
        assert cluster.locks(BYZANTIUM, writer.id) == {one: LockMode.WRITE}
        assert cluster.latest(one) is None
    cluster.start(ATHENS)
    assert_settled(cluster, value)
    assert writer.commit() is (value == 1)


@pytest.mark.rows("TPC-S8", "TPC-R11", "TPC-R16", "TPC-R48", "TPC-I5")
@pytest.mark.parametrize(
    ("moment", "value"), [("written", None), ("promised", 1), ("voted", 1), ("committed", 1), ("acknowledged", 1)]
)
def test_wherever_a_participant_crashes_it_ends_like_the_others(moment: str, value: int | None) -> None:
    cluster = TransactionCluster()
    writer, _, _ = written(cluster)
    if moment != "written":
        writer.ask_commit()
        cluster.deliver(only(PrepareTransaction))
    if moment == "promised":
        cluster.drop(lambda source, _, message: source == CYRENE and isinstance(message, Vote))
    if moment in ("voted", "committed", "acknowledged"):
        cluster.deliver(only(Vote))
    if moment in ("committed", "acknowledged"):
        cluster.deliver(only(CommitTransaction))
    if moment == "committed":
        cluster.drop(only(Acknowledged))
    cluster.restart(CYRENE)
    if moment == "written":
        writer.ask_commit()
    assert_settled(cluster, value)
    assert writer.outcome() is (value == 1)


@pytest.mark.rows("TPC-S9", "TPC-R11")
def test_a_participant_that_restarted_between_two_writes_refuses_the_second_and_votes_no() -> None:
    cluster = TransactionCluster()
    writer, one, _ = written(cluster)
    cluster.restart(BYZANTIUM)
    assert writer.write(one, 2) is REFUSED
    assert writer.commit() is False
    assert_settled(cluster, None)


@pytest.mark.rows("TPC-S10", "TPC-R10", "TPC-R14", "TPC-R15")
def test_late_copies_of_prepare_commit_and_put_change_nothing() -> None:
    cluster = TransactionCluster()
    first, one, _ = written(cluster, 1)
    assert first.commit() is True
    time = cluster.version(one)
    second, _, _ = written(cluster, 2)
    assert second.commit() is True
    cluster.hand(first.name, BYZANTIUM, PutInTransaction(99, first.ref, one, "late", 0))
    for message in (CommitTransaction(first.id, time), PrepareTransaction(first.ref, (one,))):
        cluster.hand(ATHENS, BYZANTIUM, message)
        cluster.deliver()
    assert_settled(cluster, 2)


@pytest.mark.rows("TPC-S10", "TPC-R14")
def test_after_a_rollback_a_late_put_and_a_late_prepare_lock_nothing() -> None:
    cluster = TransactionCluster()
    writer, one, _ = written(cluster)
    writer.roll_back()
    cluster.hand(writer.name, BYZANTIUM, PutInTransaction(99, writer.ref, one, "late", 0))
    cluster.hand(ATHENS, BYZANTIUM, PrepareTransaction(writer.ref, (one,)))
    cluster.deliver()
    assert cluster.participant(BYZANTIUM).open == {}
    assert_settled(cluster, None)


@pytest.mark.rows("TPC-S11", "TPC-R46", "TPC-R47", "TPC-I8")
def test_a_client_that_vanishes_is_rolled_back_after_the_timeout_and_hears_no_when_it_comes_back() -> None:
    cluster = TransactionCluster()
    writer, one, _ = written(cluster)
    cluster.pass_time(500_000)
    assert not cluster.is_quiet()
    cluster.pass_time(500_000)
    assert cluster.is_quiet()
    assert writer.commit() is False
    assert writer.cluster.nodes[ATHENS].coordinator.add_key(writer.id, one) is False
    assert_settled(cluster, None)


@pytest.mark.rows("TPC-S11", "TPC-R47", "TPC-S17")
def test_a_decided_transaction_is_never_timed_out_however_long_a_participant_is_away() -> None:
    cluster = TransactionCluster()
    writer, _, other = written(cluster)
    writer.ask_commit()
    cluster.deliver(only(PrepareTransaction, Vote))
    cluster.cut(ATHENS, CYRENE)
    cluster.pass_time(5 * A_SECOND)
    assert writer.outcome() is True
    assert cluster.locks(CYRENE, writer.id) == {other: LockMode.WRITE}
    assert_settled(cluster, 1)


@pytest.mark.rows("TPC-R2", "TPC-R32")
def test_a_coordinator_that_restarts_goes_on_counting_its_transactions() -> None:
    cluster = TransactionCluster()
    first = Transaction(cluster, "first").begin(ATHENS)
    cluster.restart(ATHENS)
    second = Transaction(cluster, "second").begin(ATHENS)
    elsewhere = Transaction(cluster, "third").begin(CYRENE)
    assert first.id < second.id and second.id.server == ATHENS
    assert len({first.id, second.id, elsewhere.id}) == 3


@pytest.mark.rows("TPC-R5", "TPC-R16")
def test_a_transaction_is_complete_only_when_all_participants_have_acknowledged() -> None:
    cluster = TransactionCluster()
    writer, _, _ = written(cluster)
    writer.ask_commit()
    cluster.deliver(only(PrepareTransaction, Vote, CommitTransaction))
    coordinator = cluster.nodes[ATHENS].coordinator
    cluster.step(only(Acknowledged))
    assert list(coordinator.transactions[writer.id].keys) == [cluster.key_on(BYZANTIUM), cluster.key_on(CYRENE)]
    assert coordinator.transactions[writer.id].status.value == "committed"
    cluster.step(only(Acknowledged))
    assert coordinator.transactions[writer.id].status.value == "complete"
