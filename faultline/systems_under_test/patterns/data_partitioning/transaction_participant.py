"""A participant of two-phase commit: a store of versions that promises before it changes anything.

Reads take a read lock and writes are buffered, invisible to everybody but their own transaction. Preparing takes the
write locks, writes the pending values and then the promise, with all locks held, to the log. Committing is one more
record, then the values become visible, then the locks go: in this order, so that whoever gets a lock sees the values.

    get, put ──▶ OPEN ── prepare: all locks, all values logged ──▶ PREPARED ── commit ───▶ visible, forgotten
                  └─ conflict, wound, silence, crash ─▶ forgotten     └─ rollback ────────▶ forgotten

Before the promise a participant may forget a transaction at any time, and does so in a crash. So that it never promises
half of one, the requests of a transaction to a server are numbered: the second one without the first is refused. After
the promise it may not decide anything: it waits, and asks the coordinator from time to time. A transaction that ended
is remembered, so that a late request of it locks nothing.

Every value is stored under the commit time of its transaction. A participant votes with a time above everything it has
seen, so that what it votes for lies above every time that was read here; the coordinator takes the largest. A *snapshot
read* at some time takes no locks. If there is a promise on its key at or below that time, nobody knows yet on which
side the write will be: the read waits for the outcome, with a bound. (CockroachDB fails it, Spanner waits.) What was
read must stay so over a restart, so the log has a *ceiling* above all times that were read.

Under `isolation=snapshot` transactions read at their start time without locks, and the first who commits a key wins:
lost updates are excluded, write skew is not (Berenson et al., 1995).

Sources: Patterns of Distributed Systems ch. 21; Corbett et al., "Spanner" (OSDI 2012) §4.1 and §4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports, Timer
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
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import RecordLog
from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.data_replication.versioned_value import IndexedVersions
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp

__all__ = [
    "Ceiling",
    "Finished",
    "LockGranted",
    "LocksReleased",
    "Participant",
    "ParticipantStarted",
    "ParticipantTiming",
    "PendingValue",
    "Prepared",
    "PreparedWrite",
    "Promised",
    "ReadBlocked",
    "SnapshotServed",
    "Stamps",
    "TransactionState",
    "Unlocked",
    "ValueStored",
    "WaitEnded",
    "Wounded",
]


# -- the log ----------------------------------------------------------------------------------------------------------


class PendingValue(msgspec.Struct, frozen=True, tag="pending-value"):
    """Log record: a transaction will set `key` to `value` if it commits."""

    id: TransactionId
    key: str
    value: Any


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """Log record: the promise, with all locks that back it and the time that was voted for."""

    ref: TransactionRef
    locks: dict[str, LockMode]
    time: HybridTimestamp


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Log record and trace: the transaction ended here; committed under `time`, or rolled back when that is None."""

    id: TransactionId
    time: HybridTimestamp | None


class Ceiling(msgspec.Struct, frozen=True, tag="ceiling"):
    """Log record: times up to this one may have been read."""

    time: HybridTimestamp


# -- the trace --------------------------------------------------------------------------------------------------------


class ParticipantStarted(msgspec.Struct, frozen=True):
    """Trace: a new process has read its log; what it holds locked is told again."""


class LockGranted(msgspec.Struct, frozen=True):
    """Trace: a transaction owns a lock from now on."""

    id: TransactionId
    key: str
    mode: LockMode


class LocksReleased(msgspec.Struct, frozen=True):
    """Trace: a transaction owns no lock here any more."""

    id: TransactionId


class Unlocked(msgspec.Struct, frozen=True):
    """Trace: a transaction gave one lock back before its end."""

    id: TransactionId
    key: str


class Promised(msgspec.Struct, frozen=True):
    """Trace: a transaction is prepared here, with these locks."""

    id: TransactionId
    locks: dict[str, LockMode]


class Wounded(msgspec.Struct, frozen=True):
    """Trace: a transaction was aborted here so that another one could go on."""

    victim: TransactionRef
    by: TransactionRef
    was_prepared: bool


class WaitEnded(msgspec.Struct, frozen=True):
    """Trace: a transaction waited too long for a lock; for these owners."""

    ref: TransactionRef
    key: str
    owners: list[TransactionRef]


class ValueStored(msgspec.Struct, frozen=True):
    """Trace: a version became visible."""

    id: TransactionId
    key: str
    time: HybridTimestamp


class SnapshotServed(msgspec.Struct, frozen=True):
    """Trace: a key was read at a time."""

    key: str
    time: HybridTimestamp


# -- the participant --------------------------------------------------------------------------------------------------


class ReadBlocked(Exception):
    """The outcome of a promised write at or below the time of the read is not known, for too long."""


class ParticipantTiming(msgspec.Struct, frozen=True):
    """How long a request waits for a lock or a promised write, and after how long of silence a coordinator is asked."""

    lock_wait_us: int
    inquiry_us: int


class Stamps(Protocol):
    """The clock of the server, for the times of values."""

    def tick(self) -> HybridTimestamp:
        """A time above everything seen here."""

    def update_to(self, time: HybridTimestamp) -> None:
        """Vote for nothing at or below `time` any more."""

    def ceiling(self, time: HybridTimestamp) -> HybridTimestamp:
        """A time some way above `time`: how far to reserve when `time` is read."""


class PreparedWrite(msgspec.Struct, frozen=True):
    """A promise on a key: whose, and at which time at the earliest."""

    id: TransactionId
    time: HybridTimestamp


class TransactionState:
    """One open transaction here: what it touched, what it will write, and whether the promise is given."""

    __slots__ = ("is_preparing", "next_position", "pending", "prepared_at", "read_keys", "ref", "touched_us", "waits")

    def __init__(self, ref: TransactionRef, now_us: int) -> None:
        self.ref = ref
        self.read_keys: dict[str, None] = {}
        self.pending: dict[str, Any] = {}
        self.next_position = 0
        self.waits = False
        self.is_preparing = False
        self.prepared_at: HybridTimestamp | None = None
        self.touched_us = now_us


class Participant:
    """One server's part of all transactions."""

    locks_class: type[LockManager] = LockManager

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
        """`send` reaches any server, `later` sets a timer. `locks_reads` is strict two-phase locking; without it
        transactions read at their start time."""
        self._ports = ports
        self._log = log
        self._stamps = stamps
        self._send = send
        self._later = later
        self._timing = timing
        self._locks_reads = locks_reads
        self.locks = self.locks_class(policy, self._is_prepared, self._wound)
        self.versions: IndexedVersions[HybridTimestamp] = IndexedVersions()
        self.open: dict[TransactionId, TransactionState] = {}
        self._ended: dict[TransactionId, HybridTimestamp | None] = {}
        self._promised_writes: dict[str, PreparedWrite] = {}
        self._blocked_reads: list[tuple[str, HybridTimestamp, Promise[Any]]] = []
        self._ceiling = BEFORE_ALL
        self._recovered_values: dict[TransactionId, dict[str, Any]] = {}

    # -- data ---------------------------------------------------------------------------------------------------------

    def get(self, ref: TransactionRef, key: str, position: int) -> Promise[Any]:
        """The value of `key` for this transaction, its own pending one first. Fails with WriteConflict."""
        answer: Promise[Any] = Promise()
        state = self._state_for(ref, position)
        if state is None:
            answer.fail(WriteConflict(f"transaction {ref.id} is not open here"))
        elif state.waits and position < state.next_position:
            return answer
        else:
            state.read_keys[key] = None
            self._read(state, key, answer)
        return answer

    def put(self, ref: TransactionRef, key: str, value: Any, position: int) -> bool:
        """Keep a value until the transaction commits. False: it is not open here, and cannot commit."""
        state = self._state_for(ref, position)
        if state is None:
            return False
        if position == state.next_position - 1:
            state.pending[key] = value
        return True

    def _state_for(self, ref: TransactionRef, position: int) -> TransactionState | None:
        """The open transaction, with `position` counted; None when it ended, or when requests before it are lost."""
        if not self._may_open(ref.id):
            return None
        state = self.open.get(ref.id)
        if state is None and position == 0:
            state = self.open[ref.id] = TransactionState(ref, 0)
        if state is not None and state.prepared_at is not None:
            return None
        if state is None or position > state.next_position:
            self._ports.trace.sometimes("open-transaction-lost")
            self._forget(ref.id)
            return None
        state.next_position = max(state.next_position, position + 1)
        state.touched_us = self._ports.clock.monotonic_us()
        return state

    def _may_open(self, transaction: TransactionId) -> bool:
        """No request of a transaction that has ended brings it back."""
        return transaction not in self._ended

    def _read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        if key in state.pending:
            answer.complete(state.pending[key])
        elif not self._locks_reads:
            self.read_at(key, state.ref.start).then(answer.complete, answer.fail)
        else:
            granted = self._lock(state, key, LockMode.READ)
            granted.then(lambda _: self._answer_read(state, key, answer), answer.fail)

    def _answer_read(self, state: TransactionState, key: str, answer: Promise[Any]) -> None:
        answer.complete(self._latest(key))

    def _latest(self, key: str) -> Any:
        found = self.versions.latest(key)
        return None if found is None else found.value

    def _lock(self, state: TransactionState, key: str, mode: LockMode) -> Promise[None]:
        """Ask for a lock, and stop asking when that takes too long."""
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
        state.waits = False
        if not told:
            self._ports.trace.emit(LockGranted(state.ref.id, key, mode))

    def _stop_waiting(self, state: TransactionState, key: str) -> None:
        owners = self.locks.blockers(state.ref.id, key)
        self._ports.trace.sometimes("lock-wait-ended")
        self._ports.trace.emit(WaitEnded(state.ref, key, owners))
        self.locks.give_up(state.ref.id, key)

    # -- phase one ----------------------------------------------------------------------------------------------------

    def prepare(self, request: PrepareTransaction) -> Promise[Vote]:
        """Promise to commit, when all that the transaction did here is still there; a no forgets it."""
        vote: Promise[Vote] = Promise()
        transaction = request.ref.id
        state = self.open.get(transaction)
        if state is not None and state.prepared_at is not None:
            vote.complete(Vote(transaction, True, state.prepared_at))
        elif transaction in self._ended or not self._has_everything(state, request.keys):
            self._refuse(transaction, vote)
        elif state is not None and not state.is_preparing:
            state.is_preparing = True
            self._lock_next(state, sorted(state.pending), vote)
        return vote

    def _has_everything(self, state: TransactionState | None, keys: tuple[str, ...]) -> bool:
        """Is every key known here that the coordinator was told of, and locked that was read?"""
        if state is None:
            return False
        known = all(key in state.read_keys or key in state.pending for key in keys)
        return known and self._reads_are_valid(state)

    def _reads_are_valid(self, state: TransactionState) -> bool:
        if not self._locks_reads:
            return all(self._is_unchanged_since(state.ref.start, key) for key in state.pending)
        return all(
            self.locks.holds(state.ref.id, key, LockMode.READ) for key in state.read_keys if key not in state.pending
        )

    def _is_unchanged_since(self, time: HybridTimestamp, key: str) -> bool:
        found = self.versions.latest(key)
        return found is None or found.version <= time

    def _lock_next(self, state: TransactionState, keys: list[str], vote: Promise[Vote]) -> None:
        """One write lock after the other; then the promise."""
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
        self._stamps.update_to(ref.start)
        state.prepared_at = self._stamps.tick()
        for key, value in state.pending.items():
            self._log.append(PendingValue(ref.id, key, value))
        locks = self.locks.locks_of(ref.id)
        self._log.append(Prepared(ref, locks, state.prepared_at))
        self._log.flush()
        self._note_promise(state)
        self._ports.trace.emit(Promised(ref.id, locks))
        vote.complete(Vote(ref.id, True, state.prepared_at))

    def _note_promise(self, state: TransactionState) -> None:
        assert state.prepared_at is not None
        for key in state.pending:
            self._promised_writes[key] = PreparedWrite(state.ref.id, state.prepared_at)

    # -- phase two ----------------------------------------------------------------------------------------------------

    def commit(self, decision: CommitTransaction) -> Acknowledged:
        """Make the writes visible. What ended before is acknowledged again, and nothing else."""
        state = self.open.get(decision.id)
        if state is not None and state.prepared_at is not None:
            self._end(decision.id, decision.time)
            self._show(state, decision.time)
            self._release(decision.id)
        return Acknowledged(decision.id)

    def roll_back(self, decision: RollBackTransaction) -> Acknowledged:
        """Forget it, and remember that it ended."""
        self._forget(decision.id)
        return Acknowledged(decision.id)

    def _show(self, state: TransactionState, time: HybridTimestamp) -> None:
        self._stamps.update_to(time)
        at = self._time_of_values(state, time)
        for key, value in state.pending.items():
            self.versions.put(key, at, value)
            self._ports.trace.emit(ValueStored(state.ref.id, key, at))

    def _time_of_values(self, state: TransactionState, decided: HybridTimestamp) -> HybridTimestamp:
        """All participants store at the one time that was decided."""
        return decided

    def _forget(self, transaction: TransactionId) -> None:
        if transaction not in self._ended:
            self._end(transaction, None)
            self._release(transaction)

    def _end(self, transaction: TransactionId, time: HybridTimestamp | None) -> None:
        """The transaction is over here, durably when there is anything durable to end."""
        state = self.open.get(transaction)
        if time is not None or (state is not None and state.prepared_at is not None):
            self._log.append(Finished(transaction, time))
            self._log.flush()
        self._ended[transaction] = time
        self._ports.trace.emit(Finished(transaction, time))

    def _release(self, transaction: TransactionId) -> None:
        state = self.open.pop(transaction, None)
        for key in state.pending if state is not None else ():
            promised = self._promised_writes.get(key)
            if promised is not None and promised.id == transaction:
                del self._promised_writes[key]
        if state is not None:
            self._ports.trace.emit(LocksReleased(transaction))
        self.locks.release_all(transaction)
        self._answer_blocked_reads()

    def _is_prepared(self, transaction: TransactionId) -> bool:
        state = self.open.get(transaction)
        return state is not None and state.prepared_at is not None

    def _wound(self, victim: TransactionRef, by: TransactionRef) -> None:
        """An older transaction takes a lock away: this one cannot commit any more."""
        self._ports.trace.sometimes("transaction-wounded")
        self._ports.trace.emit(Wounded(victim, by, self._is_prepared(victim.id)))
        self._forget(victim.id)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def read_at(self, key: str, time: HybridTimestamp) -> Promise[Any]:
        """What `key` held at `time`: now or in the future it says the same. Fails with ReadBlocked."""
        answer: Promise[Any] = Promise()
        self._note_read(time)
        if self._is_uncertain(key, time):
            self._ports.trace.sometimes("snapshot-read-waited")
            self._blocked_reads.append((key, time, answer))
            self._later(self._timing.lock_wait_us, lambda: self._stop_reading(key, time, answer))
        else:
            self._answer_at(key, time, answer)
        return answer

    def _note_read(self, time: HybridTimestamp) -> None:
        """From now on, restarts included, nothing is voted for at or below `time`."""
        self._stamps.update_to(time)
        if time > self._ceiling:
            self._ceiling = self._stamps.ceiling(time)
            self._log.append(Ceiling(self._ceiling))
            self._log.flush()

    def _is_uncertain(self, key: str, time: HybridTimestamp) -> bool:
        promised = self._promised_writes.get(key)
        return promised is not None and promised.time <= time

    def _answer_at(self, key: str, time: HybridTimestamp, answer: Promise[Any]) -> None:
        found = self.versions.get(key, time)
        self._ports.trace.emit(SnapshotServed(key, time))
        answer.complete(None if found is None else found.value)

    def _answer_blocked_reads(self) -> None:
        if not self._blocked_reads:
            return
        waiting, self._blocked_reads = self._blocked_reads, []
        for key, time, answer in waiting:
            if self._is_uncertain(key, time):
                self._blocked_reads.append((key, time, answer))
            else:
                self._answer_at(key, time, answer)

    def _stop_reading(self, key: str, time: HybridTimestamp, answer: Promise[Any]) -> None:
        if not answer.done:
            self._blocked_reads = [waiting for waiting in self._blocked_reads if waiting[2] is not answer]
            answer.fail(ReadBlocked(f"a promised write of {key} is not decided"))

    # -- time and restarts --------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """From time to time: ask the coordinators of transactions that nobody has spoken of for a while."""
        now_us = self._ports.clock.monotonic_us()
        for state in list(self.open.values()):
            if now_us - state.touched_us > self._timing.inquiry_us:
                state.touched_us = now_us
                self._ask(state)

    def _ask(self, state: TransactionState) -> None:
        self._send(NodeId(state.ref.id.server), Inquiry(state.ref.id))

    def replay(self, record: PendingValue | Prepared | Finished | Ceiling) -> None:
        """A record of the log, read back after a restart, in order."""
        if isinstance(record, PendingValue):
            self._recovered_values.setdefault(record.id, {})[record.key] = record.value
        elif isinstance(record, Prepared):
            self._replay_promise(record)
        elif isinstance(record, Finished):
            self._replay_end(record)
        else:
            self._ceiling = max(self._ceiling, record.time)
            self._stamps.update_to(record.time)

    def _replay_promise(self, record: Prepared) -> None:
        state = self.open[record.ref.id] = TransactionState(record.ref, 0)
        state.pending = self._recovered_values.pop(record.ref.id, {})
        state.prepared_at = record.time
        self._stamps.update_to(record.time)
        self._note_promise(state)
        for key, mode in record.locks.items():
            self.locks.take(record.ref, key, mode)

    def _replay_end(self, record: Finished) -> None:
        state = self.open.pop(record.id, None)
        self._ended[record.id] = record.time
        self.locks.release_all(record.id)
        for key, value in state.pending.items() if state is not None else ():
            del self._promised_writes[key]
            if record.time is not None:
                self.versions.put(key, record.time, value)
        if record.time is not None:
            self._stamps.update_to(record.time)

    def finish_recovery(self) -> None:
        """After the last record: say what is still locked, and ask what became of it."""
        self._recovered_values.clear()
        self._ports.trace.emit(ParticipantStarted())
        for state in self.open.values():
            self._ports.trace.sometimes("in-doubt-after-restart")
            locks = self.locks.locks_of(state.ref.id)
            for key, mode in locks.items():
                self._ports.trace.emit(LockGranted(state.ref.id, key, mode))
            self._ports.trace.emit(Promised(state.ref.id, locks))
            self._ask(state)
