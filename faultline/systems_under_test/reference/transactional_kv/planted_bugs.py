"""The planted bugs of `transactional-kv`: each a class put in front of the part that it breaks.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

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
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs
from faultline.systems_under_test.reference.transactional_kv.group_replica import GroupParts

__all__ = ["BUGS"]

BUGS = PlantedBugs("transactional-kv", GroupParts, pattern="two-phase-commit", campaign="bank")

_CONFLICTS = BUGS.group(campaign="transaction-conflicts")
_SNAPSHOTS = BUGS.group(campaign="snapshot-reads")


@BUGS.plant("decision-not-logged", "TPC-M1", part="coordinator", caught_by=("TPC-I2", "bank"))
class _DecisionNotLogged(Coordinator):
    """A coordinator sends its decision to commit and does not write it down.

    Shows as: after a crash it rolls back, at some nodes, transactions that others have committed.
    """

    def _log_decision(self, found: TransactionMetadata) -> None:
        found.status = TransactionStatus.COMMITTED


@BUGS.plant("votes-with-lost-buffers", "TPC-M2", part="participant", caught_by=("bank",))
class _VotesWithLostBuffers(Participant):
    """A participant that has lost a transaction's writes in a restart promises to commit all the same.

    Shows as: half of a transfer.
    """

    def prepare(self, request: PrepareTransaction) -> Promise[Vote]:
        known = request.ref.id in self.open or not self._may_open(request.ref.id)
        if not known:
            self.open[request.ref.id] = TransactionState(request.ref, self._ports.clock.monotonic_us())
        return super().prepare(request)

    def _has_everything(self, state: TransactionState | None, keys: tuple[str, ...]) -> bool:
        return True


@BUGS.plant("forgets-its-promise", "TPC-M3", part="participant", caught_by=("TPC-I2", "bank"))
class _ForgetsItsPromise(Participant):
    """A participant starts without the promises that stand in its log.

    Shows as: half of a transfer; and promised keys are overwritten.
    """

    def finish_recovery(self) -> None:
        for transaction, state in list(self.open.items()):
            del self.open[transaction]
            self.snapshots.settle(transaction, state.pending)
            self.locks.release_all(transaction)
        super().finish_recovery()


@BUGS.plant("timeout-after-decision", "TPC-M4", part="coordinator", caught_by=("TPC-I2", "bank"))
class _TimeoutAfterDecision(Coordinator):
    """The transaction timeout rolls back decided transactions, too.

    Shows as: a participant that hears late rolls back a transaction that others have committed.
    """

    def _may_time_out(self, found: TransactionMetadata) -> bool:
        return True

    def _may_roll_back(self, found: TransactionMetadata) -> bool:
        return found.status is not TransactionStatus.ROLLING_BACK


@_CONFLICTS.plant(
    "read-locks-released-early", "TPC-M5", part="participant", caught_by=("bank", "booking", "list-append", "TPC-I6")
)
class _ReadLocksReleasedEarly(Participant):
    """A read lock is given back as soon as the value is read.

    Shows as: lost updates: two transfers start from the same balance, two guests book the same day.
    """

    def _answer_read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        super()._answer_read(state, key, answer)
        self.locks.release(state.ref.id, key)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        return True


@_CONFLICTS.plant("no-read-locks", "TPC-M6", part="participant", caught_by=("bank", "booking", "list-append"))
class _NoReadLocks(Participant):
    """Reads take no locks at all.

    Shows as: lost updates, and readers that see half of a transfer.
    """

    def _read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        self._answer_read(state, key, answer)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        return True


class _WoundsThePreparedLocks(LockManager):
    def _cannot_be_wounded(self, transaction: TransactionId) -> bool:
        return False


@_CONFLICTS.plant(
    "wounds-the-prepared", "TPC-M7", part="participant", caught_by=("TPC-I2", "TPC-I6", "bank", "booking")
)
class _WoundsThePrepared(Participant):
    """An older transaction takes locks also from one that has promised to commit.

    Shows as: that one is committed on some nodes and rolled back on others.
    """

    locks_class = _WoundsThePreparedLocks


class _AgeInvertedLocks(LockManager):
    def _is_younger(self, one: TransactionRef, other: TransactionRef) -> bool:
        return other.is_younger_than(one)


@_CONFLICTS.plant("age-inverted", "TPC-M8", part="participant", caught_by=("TPC-R26",))
class _AgeInverted(Participant):
    """The younger transaction wounds the older one.

    Shows as: the longer a transaction tries, the more often it is aborted.
    """

    locks_class = _AgeInvertedLocks


class _FirstWaiterOnlyLocks(LockManager):
    def _review(self, key: str) -> None:
        lock = self._lock(key)
        for request in lock.queue[:1]:
            decision = self._decide(lock, request)
            if decision is not Decision.WAIT:
                lock.queue.remove(request)
                self._act(key, lock, request, decision)


@_CONFLICTS.plant("first-waiter-only", "TPC-M9", part="participant", caught_by=("TPC-I7",))
class _FirstWaiterOnly(Participant):
    """A released lock wakes the first of the transactions that wait, and no other.

    Shows as: readers wait, until their time is over, for a lock that is free.
    """

    locks_class = _FirstWaiterOnlyLocks


@_CONFLICTS.plant(
    "locks-released-before-apply", "TPC-M11", part="participant", caught_by=("bank", "booking", "list-append")
)
class _LocksReleasedBeforeApply(Participant):
    """A participant releases the locks of a committed transaction, and shows its values a moment later.

    Shows as: a transaction that gets the lock in between reads the old values, and writes over the new ones.
    """

    def commit(self, decision: CommitTransaction) -> Acknowledged:
        state = self.open.get(decision.id)
        if state is not None and state.prepared_at is not None:
            self._end(decision.id, decision.time)
            self._release(decision.id)
            self._later(20_000, lambda: self._show(state, decision.time))
        return Acknowledged(decision.id)


class _CertainSnapshots(SnapshotReads):
    def _is_uncertain(self, key: str, time: HybridTimestamp) -> bool:
        return False


@_SNAPSHOTS.plant("snapshot-ignores-prepared", "TPC-M12", part="participant", caught_by=("TPC-I9", "bank"))
class _SnapshotIgnoresPrepared(Participant):
    """A read at a time does not wait for promises at or below that time.

    Shows as: read again at the same time, the key has another value; a bank is read in the middle of a transfer.
    """

    snapshots_class = _CertainSnapshots


@_SNAPSHOTS.plant("own-prepare-time", "TPC-M13", part="participant", caught_by=("HYC-I5", "TPC-I9", "bank"))
class _OwnPrepareTime(Participant):
    """Each participant stores its values under the time it voted for, not under that of the decision.

    Shows as: a read at a time in between sees half of a transfer.
    """

    def _time_of_values(self, state: TransactionState, decided: HybridTimestamp) -> HybridTimestamp:
        assert state.prepared_at is not None
        return state.prepared_at


class _UnnotedSnapshots(SnapshotReads):
    def _note_read(self, time: HybridTimestamp) -> None:
        """Leave the clock as it is."""


@_SNAPSHOTS.plant(
    "clock-ignores-reads", "TPC-M14", part="participant", options={"clock": "lamport"}, caught_by=("TPC-I9", "bank")
)
class _ClockIgnoresReads(Participant):
    """A read at a time does not move the clock of the node on which it reads.

    Shows as: later writes come below a time that was read already.
    """

    snapshots_class = _UnnotedSnapshots


@BUGS.plant("late-put-locks", "TPC-M15", part="participant", caught_by=("TPC-I8", "availability"))
class _LatePutLocks(Participant):
    """A request of a transaction that has ended opens it again.

    Shows as: its locks stay for ever, and its keys cannot be written any more.
    """

    def _may_open(self, transaction: TransactionId) -> bool:
        return True

    def _is_prepared(self, transaction: TransactionId) -> bool:
        # A transaction that was opened again keeps its locks: it has ended, so a wound would not end it, and an older
        # transaction would wound it without end.
        return super()._is_prepared(transaction) or self._has_ended(transaction)


@BUGS.plant("commit-replayed", "TPC-M16", part="participant", caught_by=("HYC-I5", "bank"))
class _CommitReplayed(Participant):
    """A decision that comes a second time is carried out a second time.

    Shows as: old balances replace newer ones.
    """

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


@BUGS.plant(
    "ids-not-durable", "TPC-M18", part="coordinator", caught_by=("TPC-I2", "TPC-I8", "HYC-I5", "bank", "availability")
)
class _IdsNotDurable(Coordinator):
    """After a restart a coordinator numbers its transactions from one again.

    Shows as: two transactions have one name: the second is told the end of the first.
    """

    def _restore_number(self, transaction: TransactionId) -> None:
        """Ignore the number that the log tells."""
