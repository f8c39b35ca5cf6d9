"""A participant of two-phase commit: a store of versions that promises before it changes anything.

Reads take a read lock. Writes are buffered, and only their own transaction sees them. Preparing takes the write locks,
writes the pending values and then the promise, with all locks held, to the log. Committing is one more record, then the
values become visible, then the locks are released: in this order, so that the next owner of a lock sees the values.

    get, put ──▶ OPEN ── prepare: all locks, all values logged ──▶ PREPARED ── commit ───▶ visible, forgotten
                  └─ conflict, wound, silence, crash ─▶ forgotten     └─ rollback ────────▶ forgotten

Before the promise a participant may forget a transaction at any time, and does so in a crash. So that it never promises
half of a transaction, the requests of a transaction to a server are numbered: a second one without the first is
refused. After the promise it decides nothing itself: it waits, and asks the coordinator from time to time. A
transaction that has ended is remembered, so that its late requests lock nothing.

Under `isolation=snapshot` transactions read at their start time without locks, and the first transaction that commits a
key wins: lost updates are excluded, write skew is not (Berenson et al., 1995).

Sources: Patterns of Distributed Systems ch. 21; Corbett et al., "Spanner" (OSDI 2012) §4.1 and §4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import RecordLog
from faultline.systems_under_test.patterns.data_partitioning.snapshot_reads import SnapshotReads, Stamps
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import (
    LockManager,
    LockMode,
    WaitPolicy,
    WriteConflict,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    Inquiry,
    PrepareTransaction,
    RollBackTransaction,
    TransactionId,
    TransactionRef,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import (
    Ceiling,
    Finished,
    LockGranted,
    LocksReleased,
    ParticipantStarted,
    PendingValue,
    Prepared,
    Promised,
    VersionKept,
    WaitEnded,
    Wounded,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import (
    ParticipantTiming,
    TransactionState,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["Participant"]


class Participant:
    """One server's part of all transactions."""

    locks_class: type[LockManager] = LockManager
    snapshots_class: type[SnapshotReads] = SnapshotReads

    def __init__(
        self,
        ports: Ports,
        log: RecordLog,
        stamps: Stamps,
        send: Callable[[NodeId, Any], None],
        later: Callable[[int, Callable[[], None]], Timer],
        policy: WaitPolicy,
        timing: ParticipantTiming,
        *,
        locks_reads: bool = True,
    ) -> None:
        """`send` reaches any server, `later` sets a timer.

        `locks_reads` is strict two-phase locking; without it transactions read at their start time.
        """
        self._ports = ports
        self._log = log
        self._stamps = stamps
        self._send = send
        self._later = later
        self._policy = policy
        self._timing = timing
        self._locks_reads = locks_reads
        self.locks = self.locks_class(policy, self._is_prepared, self._wound)
        self.snapshots = self.snapshots_class(ports, log, stamps, later, timing.lock_wait_us)
        self.open: dict[TransactionId, TransactionState] = {}
        self._ended: dict[TransactionId, HybridTimestamp | None] = {}
        self._dropped: dict[TransactionId, None] = {}
        self._recovered_values: dict[TransactionId, dict[str, Any]] = {}

    def get(self, ref: TransactionRef, key: str, position: int) -> Promise[Any]:
        """Return the value of `key` for this transaction, its own pending one first. Fails with WriteConflict."""
        answer: Promise[Any] = Promise()
        state = self._state_for(ref, position)
        if state is None:
            answer.fail(WriteConflict(f"transaction {ref.id} is not open here"))
        # A repetition of the read that waits for its lock; the first one will be answered.
        elif state.waits and position < state.next_position:
            return answer
        else:
            state.read_keys[key] = None
            self._read(state, key, answer)
        return answer

    def put(self, ref: TransactionRef, key: str, value: Any, position: int) -> bool:
        """Keep a value until the transaction commits; return False when it is not open here, and so cannot commit."""
        state = self._state_for(ref, position)
        if state is None:
            return False
        # A repeated request counts no second time: a later one may have overwritten its value already.
        if position == state.next_position - 1:
            state.pending[key] = value
        return True

    def _state_for(self, ref: TransactionRef, position: int) -> TransactionState | None:
        """Return the open transaction, with `position` counted.

        Return None when it ended, or when requests before this one are lost.
        """
        if not self._may_open(ref.id):
            return None
        state = self.open.get(ref.id)
        if state is None and position == 0:
            state = self.open[ref.id] = TransactionState(ref, 0)
        if state is not None and state.prepared_at is not None:
            return None
        if state is None or position > state.next_position:
            # Earlier requests of it were lost in a crash. Promising the rest would commit half of the transaction.
            self._ports.trace.sometimes("open-transaction-lost")
            self._forget(ref.id)
            return None
        state.next_position = max(state.next_position, position + 1)
        state.touched_us = self._ports.clock.monotonic_us()
        return state

    def _may_open(self, transaction: TransactionId) -> bool:
        """Return whether a request may open the transaction: not after it has ended, when its requests come late."""
        return not self._has_ended(transaction)

    def _has_ended(self, transaction: TransactionId) -> bool:
        return transaction in self._ended or transaction in self._dropped

    def _read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        if key in state.pending:
            answer.complete(state.pending[key])
        elif not self._locks_reads:
            self.snapshots.read_at(key, state.ref.start).then(answer.complete, answer.fail)
        else:
            granted = self._lock(state, key, LockMode.READ)
            granted.then(lambda _: self._answer_read(state, key, answer), answer.fail)

    def _answer_read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        answer.complete(self.snapshots.latest(key))

    def _lock(self, state: TransactionState, key: str, mode: LockMode) -> Promise[None]:
        """Ask for a lock, and give up when that takes too long."""
        held = self.locks.holds(state.ref.id, key, mode)
        granted = self.locks.acquire(state.ref, key, mode)
        if not granted.done:
            self._ports.trace.sometimes("lock-waited-for")
            state.waits = True
            timer = self._later(self._timing.lock_wait_us, lambda: self._stop_waiting(state, key))
            granted.then(lambda _: timer.cancel(), lambda _: timer.cancel())
        granted.then(lambda _: self._locked(state, key, mode, told=held), lambda _: None)
        return granted

    def _locked(self, state: TransactionState, key: str, mode: LockMode, *, told: bool) -> None:
        """Trace that the lock is held, unless an older transaction wounded this one in the same instant."""
        state.waits = False
        if not told and self.locks.holds(state.ref.id, key, mode):
            self._ports.trace.emit(LockGranted(state.ref.id, key, mode))

    def _stop_waiting(self, state: TransactionState, key: str) -> None:
        owners = self.locks.blockers(state.ref.id, key)
        self._ports.trace.sometimes("lock-wait-ended")
        self._ports.trace.emit(WaitEnded(state.ref, key, owners, self._policy is WaitPolicy.WAIT_DIE))
        self.locks.give_up(state.ref.id, key)

    def prepare(self, request: PrepareTransaction) -> Promise[Vote]:
        """Promise to commit, if all that the transaction did here is still known; a no forgets the transaction."""
        vote: Promise[Vote] = Promise()
        transaction = request.ref.id
        state = self.open.get(transaction)
        if state is not None and state.prepared_at is not None:
            vote.complete(Vote(transaction, True, state.prepared_at))
        elif self._has_ended(transaction) or not self._has_everything(state, request.keys):
            self._refuse(transaction, vote)
        elif state is not None and not state.is_preparing:
            state.is_preparing = True
            self._lock_next(state, sorted(state.pending), vote)
        return vote

    def _has_everything(self, state: TransactionState | None, keys: tuple[str, ...]) -> bool:
        """Return whether each key that the coordinator was told of is known here, and each that was read is still
        locked.
        """
        if state is None:
            return False
        known = all(key in state.read_keys or key in state.pending for key in keys)
        return known and self._reads_are_valid(state)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        if not self._locks_reads:
            return all(self.snapshots.is_unchanged_since(state.ref.start, key) for key in state.pending)
        return all(
            self.locks.holds(state.ref.id, key, LockMode.READ) for key in state.read_keys if key not in state.pending
        )

    def _lock_next(self, state: TransactionState, keys: list[str], vote: Promise[Vote]) -> None:
        """Take one write lock after the other, then promise."""
        # The transaction ended while it waited for a lock.
        if self.open.get(state.ref.id) is not state:
            self._refuse(state.ref.id, vote)
        elif keys:
            first, *rest = keys
            granted = self._lock(state, first, LockMode.WRITE)
            granted.then(lambda _: self._lock_next(state, rest, vote), lambda _: self._refuse(state.ref.id, vote))
        elif self._reads_are_valid(state):
            self._promise(state, vote)
        else:
            self._refuse(state.ref.id, vote)

    def _refuse(self, transaction: TransactionId, vote: Promise[Vote]) -> None:
        self._forget(transaction)
        vote.complete(Vote(transaction, False, BEFORE_ALL))

    def _promise(self, state: TransactionState, vote: Promise[Vote]) -> None:
        ref = state.ref
        # The vote lies above the start, and above every time at which this server has answered a read.
        self._stamps.update_to(ref.start)
        state.prepared_at = self._stamps.tick()
        for key, value in state.pending.items():
            self._log.append(PendingValue(ref.id, key, value))
        locks = self.locks.locks_of(ref.id)
        self._log.append(Prepared(ref, locks, state.prepared_at))
        self._log.flush()
        self.snapshots.promise(ref.id, state.pending, state.prepared_at)
        self._ports.trace.emit(Promised(ref.id, locks))
        vote.complete(Vote(ref.id, True, state.prepared_at))

    def commit(self, decision: CommitTransaction) -> Acknowledged:
        """Make the writes visible; a transaction that ended before is only acknowledged again."""
        state = self.open.get(decision.id)
        if state is not None and state.prepared_at is not None:
            # Durable first, visible second, unlocked last: the next owner of a lock must see the values, and a crash
            # must not take back values that were seen.
            self._end(decision.id, decision.time)
            self._show(state, decision.time)
            self._release(decision.id)
        return Acknowledged(decision.id)

    def roll_back(self, decision: RollBackTransaction) -> Acknowledged:
        """Forget the transaction, and remember that it ended."""
        self._forget(decision.id)
        return Acknowledged(decision.id)

    def _show(self, state: TransactionState, time: HybridTimestamp) -> None:
        self._stamps.update_to(time)
        at = self._time_of_values(state, time)
        for key, value in state.pending.items():
            self.snapshots.store(state.ref.id, key, at, value)

    def _time_of_values(self, state: TransactionState, decided: HybridTimestamp) -> HybridTimestamp:
        """Return the time to store the values at: the decided one, which is the same at all participants."""
        return decided

    def _forget(self, transaction: TransactionId) -> None:
        if not self._has_ended(transaction):
            self._end(transaction, None)
            self._release(transaction)

    def _end(self, transaction: TransactionId, time: HybridTimestamp | None) -> None:
        """Record that the transaction is over, durably if it was promised."""
        state = self.open.get(transaction)
        if time is not None or (state is not None and state.prepared_at is not None):
            self._log.append(Finished(transaction, time))
            self._log.flush()
            self._ended[transaction] = time
        else:
            self._dropped[transaction] = None
        self._ports.trace.emit(Finished(transaction, time))

    def _release(self, transaction: TransactionId) -> None:
        state = self.open.pop(transaction, None)
        if state is not None:
            self._ports.trace.emit(LocksReleased(transaction))
            self.snapshots.settle(transaction, state.pending)
        self.locks.release_all(transaction)

    def _is_prepared(self, transaction: TransactionId) -> bool:
        state = self.open.get(transaction)
        return state is not None and state.prepared_at is not None

    def _wound(self, victim: TransactionRef, by: TransactionRef) -> None:
        """Abort `victim`, from which an older transaction takes a lock: it cannot commit any more."""
        self._ports.trace.sometimes("transaction-wounded")
        self._ports.trace.emit(Wounded(victim, by, self._is_prepared(victim.id)))
        self._forget(victim.id)

    def tick(self) -> None:
        """Ask the coordinators of transactions that were not heard of for a while; runs from time to time."""
        now_us = self._ports.clock.monotonic_us()
        for state in list(self.open.values()):
            if now_us - state.touched_us > self._timing.inquiry_us:
                state.touched_us = now_us
                self._ask(state)

    def _ask(self, state: TransactionState) -> None:
        self._send(NodeId(state.ref.id.server), Inquiry(state.ref.id))

    def promises(self) -> list[Promised]:
        """Return the prepared transactions, each with its present locks."""
        prepared = [transaction for transaction, state in sorted(self.open.items()) if state.prepared_at is not None]
        return [Promised(transaction, self.locks.locks_of(transaction)) for transaction in prepared]

    def ended(self) -> list[TransactionId]:
        """Return the transactions that ended here, as the log has it."""
        return list(self._ended)

    def records(self) -> Iterator[PendingValue | Prepared | Finished | Ceiling | VersionKept]:
        """Return the fewest records from which the same durable state comes."""
        yield from self.snapshots.records()
        yield from (Finished(transaction, time) for transaction, time in self._ended.items())
        for _, state in sorted(self.open.items()):
            if state.prepared_at is not None:
                yield from (PendingValue(state.ref.id, key, value) for key, value in state.pending.items())
                yield Prepared(state.ref, self.locks.locks_of(state.ref.id), state.prepared_at)

    def forget_what_is_over(self, remembered: int) -> None:
        """Forget which transactions ended, except the latest `remembered`.

        A request that comes later than that opens its transaction again; the coordinator has it rolled back.
        """
        self._ended = dict(list(self._ended.items())[-remembered:])
        self._dropped = dict(list(self._dropped.items())[-remembered:])

    def replay(self, record: PendingValue | Prepared | Finished | Ceiling | VersionKept) -> None:
        """Take a record of the log, read back after a restart, in order."""
        if isinstance(record, PendingValue):
            self._recovered_values.setdefault(record.id, {})[record.key] = record.value
        elif isinstance(record, Prepared):
            self._replay_promise(record)
        elif isinstance(record, Finished):
            self._replay_end(record)
        else:
            self.snapshots.replay(record)

    def _replay_promise(self, record: Prepared) -> None:
        state = self.open[record.ref.id] = TransactionState(record.ref, 0)
        state.pending = self._recovered_values.pop(record.ref.id, {})
        state.prepared_at = record.time
        self._stamps.update_to(record.time)
        self.snapshots.promise(record.ref.id, state.pending, record.time)
        for key, mode in record.locks.items():
            self.locks.take(record.ref, key, mode)

    def _replay_end(self, record: Finished) -> None:
        state = self.open.pop(record.id, None)
        self._ended[record.id] = record.time
        self.locks.release_all(record.id)
        if state is None:
            return
        self.snapshots.settle(record.id, state.pending)
        if record.time is not None:
            self._stamps.update_to(record.time)
            for key, value in state.pending.items():
                self.snapshots.versions.put(key, record.time, value)

    def finish_recovery(self) -> None:
        """Trace the locks that are still held, and ask for the outcome of their transactions.

        Runs after the last record.
        """
        self._recovered_values.clear()
        self._ports.trace.emit(ParticipantStarted(self.snapshots.ceiling))
        for state in self.open.values():
            self._ports.trace.sometimes("in-doubt-after-restart")
            locks = self.locks.locks_of(state.ref.id)
            for key, mode in locks.items():
                self._ports.trace.emit(LockGranted(state.ref.id, key, mode))
            self._ports.trace.emit(Promised(state.ref.id, locks))
            self._ask(state)
