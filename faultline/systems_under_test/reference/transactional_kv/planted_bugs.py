"""The planted bugs of `transactional-kv`: each a record, and a subclass that overrides the one step the bug is about.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import TransactionStatus
from faultline.systems_under_test.patterns.data_partitioning.snapshot_reads import SnapshotReads
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import Decision, LockManager
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    PrepareTransaction,
    TransactionId,
    TransactionRef,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import TransactionState
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Coordinator, TransactionMetadata
from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.shared.planted_bugs import layered, planted, with_bugs
from faultline.systems_under_test.reference.transactional_kv.group_planted_bugs import GROUP_CHANGES, GROUP_PLANTED_BUGS
from faultline.systems_under_test.reference.transactional_kv.parts import Parts

__all__ = ["PLANTED_BUGS", "mutated_parts"]


_planted = partial(planted, pattern="two-phase-commit", campaign="bank")

_RECORDS = (
    _planted(
        "decision-not-logged",
        "TPC-M1",
        "a coordinator sends its decision to commit and does not write it down",
        "after a crash it rolls back at some nodes what others have committed",
        "TPC-I2",
        "bank",
    ),
    _planted(
        "votes-with-lost-buffers",
        "TPC-M2",
        "a participant that has lost a transaction's writes in a restart promises to commit all the same",
        "half of a transfer",
        "bank",
    ),
    _planted(
        "forgets-its-promise",
        "TPC-M3",
        "a participant starts without the promises that stand in its log",
        "half of a transfer; and what was promised is overwritten",
        "TPC-I2",
        "bank",
    ),
    _planted(
        "timeout-after-decision",
        "TPC-M4",
        "the transaction timeout rolls back what is decided, too",
        "who hears late rolls back what others have committed",
        "TPC-I2",
        "bank",
    ),
    _planted(
        "read-locks-released-early",
        "TPC-M5",
        "a read lock is given back as soon as the value is read",
        "lost updates: two transfers start from the same balance, two guests book the same day",
        "bank",
        "booking",
        "list-append",
        "TPC-I6",
        campaign="transaction-conflicts",
    ),
    _planted(
        "no-read-locks",
        "TPC-M6",
        "reads take no locks at all",
        "lost updates, and readers that see half of a transfer",
        "bank",
        "booking",
        "list-append",
        campaign="transaction-conflicts",
    ),
    _planted(
        "wounds-the-prepared",
        "TPC-M7",
        "an older transaction takes locks also from one that has promised to commit",
        "that one is committed on some nodes and rolled back on others",
        "TPC-I2",
        "TPC-I6",
        "bank",
        "booking",
        campaign="transaction-conflicts",
    ),
    _planted(
        "age-inverted",
        "TPC-M8",
        "the younger transaction wounds the older one",
        "the longer a transaction tries, the more often it is aborted",
        "TPC-R26",
        campaign="transaction-conflicts",
    ),
    _planted(
        "first-waiter-only",
        "TPC-M9",
        "a released lock wakes the first of those who wait, and no other",
        "readers wait, until their time is over, for a lock that nobody holds",
        "TPC-I7",
        campaign="transaction-conflicts",
    ),
    _planted(
        "locks-released-before-apply",
        "TPC-M11",
        "a participant releases the locks of a committed transaction, and shows its values a moment later",
        "who gets the lock in between reads the old values, and writes over the new ones",
        "bank",
        "booking",
        "list-append",
        campaign="transaction-conflicts",
    ),
    _planted(
        "snapshot-ignores-prepared",
        "TPC-M12",
        "a read at a time does not wait for promises at or below that time",
        "read again at the same time, the key has another value; a bank is read in the middle of a transfer",
        "TPC-I9",
        "bank",
        campaign="snapshot-reads",
    ),
    _planted(
        "own-prepare-time",
        "TPC-M13",
        "each participant stores its values under the time it voted for, not under that of the decision",
        "a read at a time in between sees half of a transfer",
        "HYC-I5",
        "TPC-I9",
        "bank",
        campaign="snapshot-reads",
    ),
    _planted(
        "clock-ignores-reads",
        "TPC-M14",
        "a read at a time does not move the clock of the node on which it reads",
        "later writes come below a time that was read already",
        "TPC-I9",
        "bank",
        campaign="snapshot-reads",
        clock="lamport",
    ),
    _planted(
        "late-put-locks",
        "TPC-M15",
        "a request of a transaction that has ended opens it again",
        "its locks stay for ever, and nobody can write its keys any more",
        "TPC-I8",
        "availability",
    ),
    _planted(
        "commit-replayed",
        "TPC-M16",
        "a decision that comes a second time is carried out a second time",
        "old balances replace newer ones",
        "HYC-I5",
        "bank",
    ),
    _planted(
        "ids-not-durable",
        "TPC-M18",
        "after a restart a coordinator numbers its transactions from one again",
        "two transactions have one name: what became of the first is told to the second",
        "TPC-I2",
        "TPC-I8",
        "HYC-I5",
        "bank",
        "availability",
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS} | GROUP_PLANTED_BUGS
"""Every planted bug by name."""


# -- the coordinator ---------------------------------------------------------------------------------------------------


class _DecisionNotLogged(Coordinator):
    def _log_decision(self, found: TransactionMetadata) -> None:
        found.status = TransactionStatus.COMMITTED


class _TimeoutAfterDecision(Coordinator):
    def _may_time_out(self, found: TransactionMetadata) -> bool:
        return True

    def _may_roll_back(self, found: TransactionMetadata) -> bool:
        return found.status is not TransactionStatus.ROLLING_BACK


class _IdsNotDurable(Coordinator):
    def _restore_number(self, transaction: TransactionId) -> None:
        """It is not looked at."""


# -- the participant ---------------------------------------------------------------------------------------------------


class _VotesWithLostBuffers(Participant):
    def prepare(self, request: PrepareTransaction) -> Promise[Vote]:
        known = request.ref.id in self.open or not self._may_open(request.ref.id)
        if not known:
            self.open[request.ref.id] = TransactionState(request.ref, self._ports.clock.monotonic_us())
        return super().prepare(request)

    def _has_everything(self, state: TransactionState | None, keys: tuple[str, ...]) -> bool:
        return True


class _ForgetsItsPromise(Participant):
    def finish_recovery(self) -> None:
        for transaction, state in list(self.open.items()):
            del self.open[transaction]
            self.snapshots.settle(transaction, state.pending)
            self.locks.release_all(transaction)
        super().finish_recovery()


class _ReadLocksReleasedEarly(Participant):
    def _answer_read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        super()._answer_read(state, key, answer)
        self.locks.release(state.ref.id, key)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        return True


class _NoReadLocks(Participant):
    def _read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        self._answer_read(state, key, answer)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        return True


class _LocksReleasedBeforeApply(Participant):
    def commit(self, decision: CommitTransaction) -> Acknowledged:
        state = self.open.get(decision.id)
        if state is not None and state.prepared_at is not None:
            self._end(decision.id, decision.time)
            self._release(decision.id)
            self._later(20_000, lambda: self._show(state, decision.time))
        return Acknowledged(decision.id)


class _OwnPrepareTime(Participant):
    def _time_of_values(self, state: TransactionState, decided: HybridTimestamp) -> HybridTimestamp:
        assert state.prepared_at is not None
        return state.prepared_at


class _LatePutLocks(Participant):
    def _may_open(self, transaction: TransactionId) -> bool:
        return True


class _CommitReplayed(Participant):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._committed: dict[TransactionId, TransactionState] = {}

    def commit(self, decision: CommitTransaction) -> Acknowledged:
        again = self._committed.get(decision.id)
        if again is not None:
            self._show(again, self._stamps.tick())
        elif decision.id in self.open:
            self._committed[decision.id] = self.open[decision.id]
        return super().commit(decision)


# -- locks and snapshots -----------------------------------------------------------------------------------------------


class _WoundsThePreparedLocks(LockManager):
    def _cannot_be_wounded(self, transaction: TransactionId) -> bool:
        return False


class _WoundsThePrepared(Participant):
    locks_class = _WoundsThePreparedLocks


class _AgeInvertedLocks(LockManager):
    def _is_younger(self, one: TransactionRef, other: TransactionRef) -> bool:
        return other.is_younger_than(one)


class _AgeInverted(Participant):
    locks_class = _AgeInvertedLocks


class _FirstWaiterOnlyLocks(LockManager):
    def _review(self, key: str) -> None:
        lock = self._lock(key)
        for request in lock.queue[:1]:
            decision = self._decide(lock, request)
            if decision is not Decision.WAIT:
                lock.queue.remove(request)
                self._act(key, lock, request, decision)


class _FirstWaiterOnly(Participant):
    locks_class = _FirstWaiterOnlyLocks


class _CertainSnapshots(SnapshotReads):
    def _is_uncertain(self, key: str, time: HybridTimestamp) -> bool:
        return False


class _SnapshotIgnoresPrepared(Participant):
    snapshots_class = _CertainSnapshots


class _UnnotedSnapshots(SnapshotReads):
    def _note_read(self, time: HybridTimestamp) -> None:
        """The clock stays as it is."""


class _ClockIgnoresReads(Participant):
    snapshots_class = _UnnotedSnapshots


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "decision-not-logged": layered("coordinator", _DecisionNotLogged),
    "timeout-after-decision": layered("coordinator", _TimeoutAfterDecision),
    "ids-not-durable": layered("coordinator", _IdsNotDurable),
    "votes-with-lost-buffers": layered("participant", _VotesWithLostBuffers),
    "forgets-its-promise": layered("participant", _ForgetsItsPromise),
    "read-locks-released-early": layered("participant", _ReadLocksReleasedEarly),
    "no-read-locks": layered("participant", _NoReadLocks),
    "wounds-the-prepared": layered("participant", _WoundsThePrepared),
    "age-inverted": layered("participant", _AgeInverted),
    "first-waiter-only": layered("participant", _FirstWaiterOnly),
    "locks-released-before-apply": layered("participant", _LocksReleasedBeforeApply),
    "snapshot-ignores-prepared": layered("participant", _SnapshotIgnoresPrepared),
    "own-prepare-time": layered("participant", _OwnPrepareTime),
    "clock-ignores-reads": layered("participant", _ClockIgnoresReads),
    "late-put-locks": layered("participant", _LatePutLocks),
    "commit-replayed": layered("participant", _CommitReplayed),
    **GROUP_CHANGES,
}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("transactional-kv", names, Parts(), _CHANGES)
