"""Two-phase commit: writes on several servers take effect on all of them, or on none.

*Problem.* Values that belong together are on different servers. Each server can make its own part durable, but if a
server fails in between, half of the change is visible and stays visible.

*Idea.* The decision is separated from the work. First every participant *promises*: it locks, writes the pending values
to its log, and can commit from now on, even after a crash. Then one server, the *coordinator*, decides, with one record
in its log. That record is the commit point. A crash before it means rollback. After it all participants commit, even if
they learn of it late.

    client ── begin, keys ──▶ coordinator                         log: begun, key, key
           ── get, put ─────▶ participants                        read locks; writes are buffered
           ── commit ───────▶ coordinator ── prepare ──▶ all      log: preparing
                                          ◀── yes ────── all      write locks, pending values, *prepared* in their logs
                              coordinator decides                 log: **committed**
           ◀── committed ──── coordinator ── commit ───▶ all      committed in their logs, visible, locks released
                                          ◀── done ───── all      log: complete

The coordinator keeps keys and not addresses: the participants are computed from the keys when they are needed. It
repeats the prepare or the decision until all have answered, and a participant in doubt asks it too. A transaction
without a decision in the log is rolled back after a restart (presumed abort). One without messages for `timeout_us` is
rolled back too, unless it is decided: a decision never changes.

Coordinator and participants need not be single servers. Where each partition is a group with a replicated log, the same
code runs at the group's leader: its records go to the group's log, messages that rest on them leave once a majority has
them, and a new leader starts from the log as a server does after a crash (`replication_factor=3` of `transactional-kv`;
its modules `groups`, `group_ports` and `group_replica`). The participants of the keys are then the *present* leaders of
their groups: that is why the coordinator keeps keys.

`transaction_participant` is the participant's half, with its locks in `transaction_locks`. `transaction_client` is the
client's part. All values of a transaction are stored under one timestamp, the largest that a participant voted for.

*Invariants.* TPC-I2 all participants get the same decision, and it never changes. TPC-I6 a prepared participant keeps
its locks until it knows the decision. TPC-I7 a transaction waits only for owners that exist, and not for ever. TPC-I8
no key stays locked. TPC-I9 versions never change, and none appears at or below a time that was read. TPC-I1, TPC-I3 and
TPC-I4 are about histories.

*Tolerates.* Crashes of any server at any point, lost, repeated and late messages, clients that die. With replication,
also servers that stay down, as long as a majority of each group is up: no prepared transaction is lost or blocked.

*Does not tolerate.* Without replication, a coordinator that stays down, as prepared participants are blocked until it
returns, and the loss of a disk. With replication, monotonic clocks that drift apart by more than the margin of the
leader's lease. Messages later than the `transactions_remembered` latest transactions of their server: the outcome of
earlier ones is forgotten when the log is cut short. A client that asks for one is not told of a rollback, but that the
outcome is forgotten. A late step of such a transaction begins it again. Old versions of values are kept for ever.

*Workloads.* `bank`, `booking`, `txn-append`, `txn-register`, `lost-update`, `write-skew` and `predicates` on
`transactional-kv`.

*Checkers.* `bank`, `booking`, `list-append`, `rw-register` and `closed-predicate` (strict serializability); invariants
TPC-I2 to TPC-I9; TPC-R44 and TPC-S18 over changes of leaders.

*Planted bugs.* `decision-not-logged`, `votes-with-lost-buffers`, `forgets-its-promise`, `timeout-after-decision`,
`read-locks-released-early`, `no-read-locks`, `wounds-the-prepared`, `age-inverted`, `first-waiter-only`,
`locks-released-before-apply`, `snapshot-ignores-prepared`, `own-prepare-time`, `clock-ignores-reads`, `late-put-locks`,
`commit-replayed`, `ids-not-durable`; of replicated partitions `vote-before-replication`, `decision-before-replication`,
`serves-when-elected`, `locks-not-taken-over`, `deposed-leader-lets-go`, `deposed-leader-answers`,
`participants-by-address`, `stamped-when-replayed`. That reading downgrades a write lock is a subclass in the tests, as
no run can show it.

Sources: Patterns of Distributed Systems ch. 21; Gray, "Notes on Data Base Operating Systems" (1978); Mohan, Lindsay and
Obermarck, "Transaction Management in the R* Distributed Database Management System" (TODS 1986) for presumed abort.
Two-phase commit over foreign systems (XA) is not implemented; a transactional outbox is the usual replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import (
    Begun,
    CoordinatorRecord,
    KeyAdded,
    NumbersForgotten,
    RecordLog,
    StatusChanged,
    TransactionStatus,
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
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["CommitTimes", "Coordinator", "Outcome", "OutcomeForgotten", "TransactionMetadata"]


_UNDECIDED = (TransactionStatus.ACTIVE, TransactionStatus.PREPARING)
_OVER = (TransactionStatus.COMPLETE, TransactionStatus.ROLLED_BACK)


class OutcomeForgotten(Exception):
    """The transaction ended so long ago that its outcome is forgotten here."""


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """The answer to the client of a transaction: whether it is committed, and the time of its values."""

    committed: bool
    time: HybridTimestamp | None = None


class CommitTimes(Protocol):
    """The source of the times of transactions: the server's own clock, or an oracle elsewhere."""

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return a time for a transaction that begins, of a client that knows of `seen`."""

    def commit_time(self, voted: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return the time of a transaction's values, given the largest time its participants voted for."""


class TransactionMetadata:
    """One transaction at its coordinator; its keys are kept in the order in which they came."""

    __slots__ = ("acknowledged", "keys", "outcome", "ref", "status", "time", "updated_us", "votes")

    def __init__(self, ref: TransactionRef, now_us: int) -> None:
        self.ref = ref
        self.status = TransactionStatus.ACTIVE
        self.keys: dict[str, None] = {}
        self.votes: dict[NodeId, HybridTimestamp] = {}
        self.acknowledged: dict[NodeId, None] = {}
        self.time: HybridTimestamp | None = None
        self.updated_us = now_us
        self.outcome: Promise[Outcome] = Promise()


class Coordinator:
    """The transactions that began at this server.

    `host_of` names the present host of a key, `send` reaches any server.
    """

    def __init__(
        self,
        ports: Ports,
        log: RecordLog,
        times: CommitTimes,
        host_of: Callable[[str], NodeId],
        send: Callable[[NodeId, Any], None],
        timeout_us: int,
    ) -> None:
        self._ports = ports
        self._log = log
        self._times = times
        self._host_of = host_of
        self._send = send
        self._timeout_us = timeout_us
        self._number = 0
        self._forgotten = 0
        self.transactions: dict[TransactionId, TransactionMetadata] = {}
        self._unfinished: dict[TransactionId, TransactionMetadata] = {}

    def begin(self, start: HybridTimestamp, first: TransactionRef | None) -> TransactionRef:
        """Return a new transaction that starts at `start`; `first` is the attempt that it repeats."""
        self._number += 1
        transaction = TransactionId(self._number, self._ports.node_id)
        ref = TransactionRef(
            transaction, start, first.first_start if first else start, first.first_id if first else transaction
        )
        self._write(Begun(ref))
        self._enter(ref)
        return ref

    def add_key(self, transaction: TransactionId, key: str) -> bool:
        """Note that the client is about to touch `key`, durably before it hears yes.

        Return False when the transaction is not open any more.
        """
        found = self.transactions.get(transaction)
        if found is None or found.status is not TransactionStatus.ACTIVE:
            return False
        found.updated_us = self._ports.clock.monotonic_us()
        if key not in found.keys:
            found.keys[key] = None
            self._write(KeyAdded(transaction, key))
        return True

    def commit(self, transaction: TransactionId) -> Promise[Outcome]:
        """Bring the transaction to a decision; asked again, return the same one.

        An unknown transaction was rolled back. Fails with OutcomeForgotten for one that may have committed, long ago.
        """
        found = self.transactions.get(transaction)
        if found is None:
            return self._outcome_of_unknown(transaction)
        if found.status is TransactionStatus.ACTIVE:
            self._change(found, TransactionStatus.PREPARING)
            self._push(found)
            self._decide_when_all_voted(found)
        return found.outcome

    def roll_back(self, transaction: TransactionId) -> Promise[Outcome]:
        """Give the transaction up, unless it is committed; the answer is its outcome, as that of `commit`."""
        found = self.transactions.get(transaction)
        if found is None:
            return self._outcome_of_unknown(transaction)
        self._roll_back(found)
        return found.outcome

    def _outcome_of_unknown(self, transaction: TransactionId) -> Promise[Outcome]:
        outcome: Promise[Outcome] = Promise()
        if transaction.number <= self._forgotten:
            # "Rolled back" would be a guess: it may have committed before its outcome was forgotten.
            outcome.fail(OutcomeForgotten(f"transaction {transaction} ended long ago"))
        else:
            outcome.complete(Outcome(False))
        return outcome

    def handle_vote(self, source: NodeId, vote: Vote) -> None:
        """Count a yes; a single no rolls the transaction back."""
        found = self.transactions.get(vote.id)
        # A late vote must not revive a transaction that was rolled back meanwhile.
        if found is None or found.status is not TransactionStatus.PREPARING:
            return
        if not vote.yes:
            self._ports.trace.sometimes("voted-no")
            self._roll_back(found)
            return
        found.votes[source] = vote.time
        self._decide_when_all_voted(found)

    def handle_acknowledged(self, source: NodeId, message: Acknowledged) -> None:
        """Count an acknowledgement; when all participants have the decision, the transaction is over."""
        found = self._unfinished.get(message.id)
        if found is None or found.status in _UNDECIDED:
            return
        found.acknowledged[source] = None
        self._finish_when_all_acknowledged(found)

    def handle_inquiry(self, source: NodeId, inquiry: Inquiry) -> None:
        """Send the decision to a participant that waits for it; an unknown transaction was rolled back."""
        found = self.transactions.get(inquiry.id)
        if found is None:
            # Presumed abort: a committed transaction is remembered until all participants have acknowledged it.
            self._send(source, RollBackTransaction(inquiry.id))
        elif found.status not in _UNDECIDED:
            self._ports.trace.sometimes("decision-asked-for")
            self._send(source, self._decision(found))

    def _decide_when_all_voted(self, found: TransactionMetadata) -> None:
        if self._missing(found, found.votes):
            return
        voted = max(found.votes.values(), default=found.ref.start)
        self._times.commit_time(voted).then(lambda time: self._decide(found, time))

    def _decide(self, found: TransactionMetadata, time: HybridTimestamp) -> None:
        """Pass the commit point, unless the transaction timed out while its time was being fetched."""
        if found.status is not TransactionStatus.PREPARING:
            return
        found.time = time
        self._log_decision(found)
        # The decision is durable here, so it may be told: a crash from now on cannot change it.
        found.outcome.complete(Outcome(True, time))
        self._push(found)
        self._finish_when_all_acknowledged(found)

    def _log_decision(self, found: TransactionMetadata) -> None:
        self._change(found, TransactionStatus.COMMITTED, found.time)

    def _roll_back(self, found: TransactionMetadata) -> None:
        if not self._may_roll_back(found):
            return
        self._change(found, TransactionStatus.ROLLING_BACK)
        if not found.outcome.done:
            found.outcome.complete(Outcome(False))
        self._push(found)
        self._finish_when_all_acknowledged(found)

    def _may_roll_back(self, found: TransactionMetadata) -> bool:
        return found.status in _UNDECIDED

    def _finish_when_all_acknowledged(self, found: TransactionMetadata) -> None:
        if not self._missing(found, found.acknowledged):
            committed = found.status is TransactionStatus.COMMITTED
            self._change(found, TransactionStatus.COMPLETE if committed else TransactionStatus.ROLLED_BACK, found.time)
            self._unfinished.pop(found.ref.id, None)

    def _participants(self, found: TransactionMetadata) -> dict[NodeId, list[str]]:
        hosts: dict[NodeId, list[str]] = {}
        for key in found.keys:
            hosts.setdefault(self._host_of(key), []).append(key)
        return hosts

    def _missing(self, found: TransactionMetadata, answered: Iterable[NodeId]) -> list[NodeId]:
        heard = list(answered)
        return [host for host in self._participants(found) if host not in heard]

    def _push(self, found: TransactionMetadata) -> None:
        """Send the present question or decision to all participants that have not answered it."""
        if found.status is TransactionStatus.PREPARING:
            for host, keys in self._participants(found).items():
                if host not in found.votes:
                    self._send(host, PrepareTransaction(found.ref, tuple(keys)))
        elif found.status not in _UNDECIDED:
            for host in self._missing(found, found.acknowledged):
                self._send(host, self._decision(found))

    def _decision(self, found: TransactionMetadata) -> CommitTransaction | RollBackTransaction:
        if found.status in (TransactionStatus.COMMITTED, TransactionStatus.COMPLETE):
            assert found.time is not None
            return CommitTransaction(found.ref.id, found.time)
        return RollBackTransaction(found.ref.id)

    def tick(self) -> None:
        """Roll back transactions without messages for too long, and send unanswered messages again.

        Runs from time to time.
        """
        now_us = self._ports.clock.monotonic_us()
        for found in list(self._unfinished.values()):
            if now_us - found.updated_us > self._timeout_us and self._may_time_out(found):
                self._ports.trace.sometimes("transaction-timed-out")
                self._roll_back(found)
            else:
                self._push(found)

    def _may_time_out(self, found: TransactionMetadata) -> bool:
        """Return whether a timeout may end it: only an undecided transaction, since a decision is never taken back."""
        return found.status in _UNDECIDED

    def replay(self, record: CoordinatorRecord) -> None:
        """Take a record of the log, read back after a restart, in order."""
        if isinstance(record, Begun):
            self._restore_number(record.ref.id)
            self._enter(record.ref)
        elif isinstance(record, NumbersForgotten):
            self._number = max(self._number, record.last)
            self._forgotten = record.last
        elif isinstance(record, KeyAdded):
            self.transactions[record.id].keys[record.key] = None
        else:
            found = self.transactions[record.id]
            found.status = record.status
            found.time = record.time if record.time is not None else found.time
            if record.status in _OVER:
                self._unfinished.pop(record.id, None)

    def _restore_number(self, transaction: TransactionId) -> None:
        self._number = max(self._number, transaction.number)

    def finish_recovery(self) -> None:
        """Roll back transactions without a decision, and bring the others to an end; runs after the last record."""
        for found in list(self.transactions.values()):
            if found.status in _UNDECIDED:
                self._ports.trace.sometimes("presumed-abort")
                self._roll_back(found)
            else:
                committed = found.status in (TransactionStatus.COMMITTED, TransactionStatus.COMPLETE)
                found.outcome.complete(Outcome(committed, found.time if committed else None))
                if found.status not in _OVER:
                    self._push(found)

    def records(self) -> Iterator[CoordinatorRecord]:
        """Return the fewest records with the same state: of a transaction that is over, only its outcome."""
        if self._forgotten:
            yield NumbersForgotten(self._forgotten)
        for found in self.transactions.values():
            yield Begun(found.ref)
            if found.status not in _OVER:
                yield from (KeyAdded(found.ref.id, key) for key in found.keys)
            if found.status is not TransactionStatus.ACTIVE:
                yield StatusChanged(found.ref.id, found.status, found.time)

    def forget_what_is_over(self, remembered: int) -> None:
        """Drop transactions that have ended, except the latest `remembered`; an open one is never dropped."""
        last = self._number - remembered
        if last > self._forgotten:
            self._forgotten = last
            kept = self.transactions.values()
            self.transactions = {
                found.ref.id: found for found in kept if found.ref.id.number > last or found.status not in _OVER
            }

    def _enter(self, ref: TransactionRef) -> None:
        found = TransactionMetadata(ref, self._ports.clock.monotonic_us())
        self.transactions[ref.id] = self._unfinished[ref.id] = found

    def _change(
        self, found: TransactionMetadata, status: TransactionStatus, time: HybridTimestamp | None = None
    ) -> None:
        found.status = status
        found.updated_us = self._ports.clock.monotonic_us()
        self._write(StatusChanged(found.ref.id, status, time))

    def _write(self, record: CoordinatorRecord) -> None:
        self._log.append(record)
        self._log.flush()
