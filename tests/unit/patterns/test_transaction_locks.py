"""The locks of transactions: who shares, who waits, who gives way, under each of the three policies."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import (
    LockManager,
    LockMode,
    WaitPolicy,
    WriteConflict,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise

READ, WRITE = LockMode.READ, LockMode.WRITE


def transaction(start: int, number: int = 1, server: str = "athens") -> TransactionRef:
    name, time = TransactionId(number, server), HybridTimestamp(start, 0)
    return TransactionRef(name, time, time, name)


OLD, MIDDLE, YOUNG = transaction(1), transaction(2, 2), transaction(3, 3)


class Locks:
    """A lock manager with the transactions it wounds and those that are prepared."""

    def __init__(self, policy: str) -> None:
        self.prepared: list[TransactionId] = []
        self.wounded: list[TransactionRef] = []
        self.manager = LockManager(WaitPolicy(policy), lambda name: name in self.prepared, self._wound)

    def _wound(self, victim: TransactionRef, _: TransactionRef) -> None:
        self.wounded.append(victim)
        self.manager.release_all(victim.id)

    def ask(self, ref: TransactionRef, mode: LockMode, key: str = "x") -> Promise[None]:
        return self.manager.acquire(ref, key, mode)

    def state(self, promise: Promise[None]) -> str:
        if not promise.done:
            return "waits"
        try:
            promise.result()
        except WriteConflict:
            return "refused"
        return "granted"


@pytest.mark.rows("TPC-R23")
@pytest.mark.parametrize("policy", ["error", "wound-wait", "wait-die"])
def test_readers_share_a_sole_owner_upgrades_and_asking_again_is_granted(policy: str) -> None:
    locks = Locks(policy)
    assert locks.state(locks.ask(OLD, READ)) == "granted"
    assert locks.state(locks.ask(YOUNG, READ)) == "granted"
    assert locks.state(locks.ask(YOUNG, READ)) == "granted"
    locks.manager.release_all(YOUNG.id)
    assert locks.state(locks.ask(OLD, WRITE)) == "granted"
    assert locks.manager.locks_of(OLD.id) == {"x": WRITE}


@pytest.mark.rows("TPC-R24")
def test_a_writer_that_asks_to_read_stays_a_writer() -> None:
    locks = Locks("error")
    locks.ask(OLD, WRITE)
    locks.ask(OLD, READ)
    assert locks.manager.holds(OLD.id, "x", WRITE)
    assert locks.state(locks.ask(YOUNG, READ)) == "refused"


@pytest.mark.rows("TPC-R25")
def test_with_errors_a_conflict_is_refused_and_the_owner_keeps_its_lock() -> None:
    locks = Locks("error")
    locks.ask(YOUNG, READ)
    refused = locks.ask(OLD, WRITE)
    with pytest.raises(WriteConflict, match="refused a lock"):
        refused.result()
    assert locks.manager.holds(YOUNG.id, "x", READ)


@pytest.mark.rows("TPC-R26", "TPC-R33")
def test_under_wound_wait_the_older_takes_the_lock_from_the_younger_who_loses_all_its_locks() -> None:
    locks = Locks("wound-wait")
    locks.ask(YOUNG, READ)
    locks.ask(YOUNG, WRITE, "y")
    assert locks.state(locks.ask(OLD, WRITE)) == "granted"
    assert locks.wounded == [YOUNG]
    assert locks.manager.locks_of(YOUNG.id) == {}
    assert locks.state(locks.ask(MIDDLE, WRITE, "y")) == "granted"


@pytest.mark.rows("TPC-R26")
def test_under_wound_wait_the_younger_waits_and_goes_on_when_the_older_ends() -> None:
    locks = Locks("wound-wait")
    locks.ask(OLD, WRITE)
    waiting = locks.ask(YOUNG, READ)
    assert locks.state(waiting) == "waits"
    locks.manager.release_all(OLD.id)
    assert locks.state(waiting) == "granted"


@pytest.mark.rows("TPC-R26")
def test_under_wound_wait_a_prepared_owner_is_waited_for_however_young() -> None:
    locks = Locks("wound-wait")
    locks.ask(YOUNG, WRITE)
    locks.prepared.append(YOUNG.id)
    waiting = locks.ask(OLD, WRITE)
    assert locks.state(waiting) == "waits" and locks.wounded == []
    locks.manager.release_all(YOUNG.id)
    assert locks.state(waiting) == "granted"


@pytest.mark.rows("TPC-R27")
def test_under_wait_die_the_older_waits_and_the_younger_is_refused() -> None:
    locks = Locks("wait-die")
    locks.ask(MIDDLE, WRITE)
    older, younger = locks.ask(OLD, WRITE), locks.ask(YOUNG, WRITE)
    assert (locks.state(older), locks.state(younger)) == ("waits", "refused")
    locks.manager.release_all(MIDDLE.id)
    assert locks.state(older) == "granted"


@pytest.mark.rows("TPC-R28", "TPC-S5")
def test_a_writer_behind_an_older_and_a_younger_reader_wounds_the_younger_when_the_older_ends() -> None:
    locks = Locks("wound-wait")
    locks.ask(OLD, READ)
    locks.ask(YOUNG, READ)
    waiting = locks.ask(MIDDLE, WRITE)
    assert locks.state(waiting) == "waits" and locks.wounded == []
    locks.manager.release_all(OLD.id)
    assert locks.state(waiting) == "granted" and locks.wounded == [YOUNG]


@pytest.mark.rows("TPC-R28")
def test_under_wait_die_who_waits_dies_when_an_older_one_becomes_an_owner() -> None:
    locks = Locks("wait-die")
    locks.ask(YOUNG, READ)
    waiting = locks.ask(MIDDLE, WRITE)
    assert locks.state(waiting) == "waits"
    assert locks.state(locks.ask(OLD, READ)) == "granted"
    assert locks.state(waiting) == "refused"


@pytest.mark.rows("TPC-R29")
def test_a_release_wakes_all_readers_and_not_only_the_first() -> None:
    locks = Locks("wound-wait")
    locks.ask(OLD, WRITE)
    readers = [locks.ask(transaction(10 + number, 10 + number), READ) for number in range(3)]
    locks.manager.release_all(OLD.id)
    assert [locks.state(reader) for reader in readers] == ["granted"] * 3


@pytest.mark.rows("TPC-R29")
def test_waiters_are_served_in_the_order_of_age_and_one_that_ends_leaves_with_an_error() -> None:
    locks = Locks("wound-wait")
    first, second, third = (transaction(start, start) for start in (1, 2, 3))
    locks.ask(first, WRITE)
    young, old = locks.ask(third, WRITE), locks.ask(second, WRITE)
    locks.manager.release_all(first.id)
    assert (locks.state(old), locks.state(young)) == ("granted", "waits")
    locks.manager.release_all(third.id)
    assert locks.state(young) == "refused"


def test_who_waited_too_long_is_refused_and_the_others_stay() -> None:
    locks = Locks("wound-wait")
    locks.ask(OLD, WRITE)
    tired, patient = locks.ask(MIDDLE, READ), locks.ask(YOUNG, READ)
    assert locks.manager.blockers(MIDDLE.id, "x") == [OLD]
    locks.manager.give_up(MIDDLE.id, "x")
    assert (locks.state(tired), locks.state(patient)) == ("refused", "waits")


@pytest.mark.rows("TPC-R30", "TPC-R31")
def test_age_is_a_total_order_that_a_retry_keeps() -> None:
    here, there = transaction(5, 1, "athens"), transaction(5, 1, "byzantium")
    assert there.is_younger_than(here) and not here.is_younger_than(there)
    retry = TransactionRef(TransactionId(9, "cyrene"), HybridTimestamp(90, 0), here.first_start, here.first_id)
    assert there.is_younger_than(retry)
    assert retry.is_younger_than(here) and not here.is_younger_than(retry)
    assert not here.is_younger_than(here)


@pytest.mark.rows("TPC-S5")
@pytest.mark.parametrize("policy", ["error", "wound-wait", "wait-die"])
@pytest.mark.parametrize("parties", [2, 3])
def test_a_circle_of_transactions_that_each_want_the_next_ones_key_never_closes(policy: str, parties: int) -> None:
    locks = Locks(policy)
    circle = [transaction(start, start) for start in range(1, parties + 1)]
    for ref in circle:
        locks.ask(ref, WRITE, f"key-{ref.id.number}")
    asked = [locks.ask(ref, WRITE, f"key-{ref.id.number % parties + 1}") for ref in circle]
    for ref, promise in zip(circle, asked, strict=True):
        if locks.state(promise) == "refused":
            locks.manager.release_all(ref.id)
    states = [locks.state(promise) for promise in asked]
    assert "granted" in states or "waits" not in states


def test_who_was_prepared_while_another_victim_was_wounded_keeps_its_lock() -> None:
    locks = Locks("wound-wait")
    locks.ask(YOUNG, READ)
    other = transaction(4, 4)
    locks.ask(other, READ)

    def wound(victim: TransactionRef, _: TransactionRef) -> None:
        """Release the victim's locks, which lets the other one prepare, and wound the requester as well."""
        locks.wounded.append(victim)
        locks.prepared.append(other.id)
        locks.manager.release_all(victim.id)
        locks.manager.release_all(MIDDLE.id)

    locks.manager._wound = wound
    request = locks.ask(MIDDLE, WRITE)
    assert locks.state(request) == "refused"
    assert locks.wounded == [YOUNG]
    assert locks.manager.holds(other.id, "x", READ)
