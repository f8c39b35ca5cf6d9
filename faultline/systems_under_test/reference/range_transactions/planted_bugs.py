"""The planted bugs of `range-transactions`: each a class put in front of the part that it breaks.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import KeyRange
from faultline.systems_under_test.patterns.data_partitioning.snapshot_reads import SnapshotReads
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import (
    Answer,
    Call,
    Pause,
    TransactionAborted,
    Verb,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    CommitTransaction,
    Inquiry,
    PrepareTransaction,
    RollBackTransaction,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import PendingValue, Prepared
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import TransactionState
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import (
    Coordinator,
    TransactionMetadata,
)
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise
from faultline.systems_under_test.reference.range_transactions.host import RangeHost
from faultline.systems_under_test.reference.range_transactions.messages import (
    READ_AGAIN,
    FromRange,
    RangeRecord,
    ToRange,
)
from faultline.systems_under_test.reference.range_transactions.parts import Parts
from faultline.systems_under_test.reference.range_transactions.ranges import HeldRange, RangeStore, name_of
from faultline.systems_under_test.reference.range_transactions.reads import SnapshotExecutor
from faultline.systems_under_test.reference.range_transactions.times import BoundedTimes
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_OF_SNAPSHOTS = ("list-append", "rw-register", "TPC-I9")

BUGS = PlantedBugs("range-transactions", Parts, pattern="two-phase-commit", campaign="moving-ranges")

_CLOCKS = BUGS.group(
    pattern="clock-bound-wait", campaign="commit-wait-on-ranges", caught_by=("list-append", "rw-register")
)
_RESTARTS = BUGS.group(pattern="clock-bound-wait", campaign="snapshot-restarts", options={"wait": "restart"})


@_CLOCKS.plant("no-commit-wait", "CBW-R25", part="times", caught_by=("list-append", "rw-register", "CBW-I4"))
class _NoCommitWait(BoundedTimes):
    """A coordinator tells of a commit at once, while its time may lie ahead of other clocks.

    Shows as: a reader at a node whose clock is slow misses a commit that was acknowledged.
    """

    def _when_it_may_be_told(self, time: HybridTimestamp, then: Callable[[], None]) -> None:
        then()


@_CLOCKS.plant("locks-released-before-the-wait", "CBW-R25", part="times", campaign="crowded-ranges")
class _TellsParticipantsAtOnce(BoundedTimes):
    """A coordinator lets participants commit at once, and only its answer to the client waits for the clock.

    Shows as: one reader sees the new value, and another one that begins after it ended does not.
    """

    def _when_it_may_be_told(self, time: HybridTimestamp, then: Callable[[], None]) -> None:
        then()


@BUGS.also("locks-released-before-the-wait", part="coordinator")
class _AnswersAfterTheWait(Coordinator):
    _times: BoundedTimes

    def _decide(self, found: TransactionMetadata, time: HybridTimestamp) -> None:
        told = found.outcome
        found.outcome = Promise()
        super()._decide(found, time)
        decided, found.outcome = found.outcome, told
        if decided.done and not told.done:
            self._times.when_past(time, lambda: told.complete(decided.result()))


class _LooksAtNoPromise(SnapshotReads):
    def _is_uncertain(self, key: str, time: HybridTimestamp) -> bool:
        return False


@_CLOCKS.plant("reads-past-promises", "CBW-M6", part="participant", caught_by=_OF_SNAPSHOTS)
class _ReadsPastPromises(Participant):
    """A read at a time does not wait for prepared transactions that may commit before it.

    Shows as: a snapshot has half of a transfer, or misses a commit that was acknowledged.
    """

    snapshots_class = _LooksAtNoPromise


@_RESTARTS.plant("restart-of-one-key", "CBW-R14", part="executor", caught_by=("bank",))
class _RestartOfOneKey(SnapshotExecutor):
    """A reader that meets a version which it cannot place reads that key anew, and keeps what it has of the others.

    Shows as: the balances of one read are as of two times, and do not add up.
    """

    def _read_at(self, node: NodeId, key: str, time: HybridTimestamp) -> Generator[Call | Pause, Answer, Any]:
        answer = yield Call(node, Verb.READ_AT, (key, time, self._limit_us))
        while answer.error == READ_AGAIN:
            self._trace.sometimes("read-restarted")
            answer = yield Call(node, Verb.READ_AT, (key, answer.time, self._limit_us))
        if answer.error is not None:
            raise TransactionAborted
        return answer


@BUGS.plant("move-leaves-promises-behind", "TPC-S15", part="store", caught_by=("bank", "list-append", "TPC-S15"))
class _MoveLeavesPromisesBehind(RangeStore):
    """A range that moves takes its versions along, and not the transactions that are prepared on it.

    Shows as: the decision finds nothing to commit at the new host, and half of a transfer is lost.
    """

    def _travelling(self, records: list[RangeRecord]) -> list[RangeRecord]:
        return [record for record in records if not isinstance(record, PendingValue | Prepared)]


@BUGS.plant("split-forgets-locks", "TPC-S15", part="store", caught_by=("bank", "list-append", "TPC-S15"))
class _SplitForgetsLocks(RangeStore):
    """The right half of a range that is split has the values of prepared transactions, and not their locks.

    Shows as: another transaction reads a key that is about to change, and one of two updates is lost.
    """

    def _locks_in(self, part: KeyRange, promise: Prepared) -> dict[str, Any]:
        locks = super()._locks_in(part, promise)
        return locks if part.start == "" else dict.fromkeys((), None)


@BUGS.plant("old-host-acknowledges", "TPC-S15", part="host", caught_by=("bank", "list-append", "TPC-I2"))
class _OldHostAcknowledges(RangeHost):
    """A node that has let a range go acknowledges decisions for it, and the coordinator forgets the transaction.

    Shows as: the new host asks, hears that no such transaction is known, and rolls its half back.
    """

    def _refuse(self, source: NodeId, envelope: ToRange) -> None:
        if isinstance(envelope.message, CommitTransaction | RollBackTransaction):
            answer = FromRange(name_of(envelope.range_id), Acknowledged(envelope.message.id))
            self._ports.network.send(source, answer)
        else:
            super()._refuse(source, envelope)


@BUGS.also("old-host-acknowledges", part="coordinator")
class _ForgetsWhatIsAcknowledged(Coordinator):
    def handle_inquiry(self, source: NodeId, inquiry: Inquiry) -> None:
        if inquiry.id in self.transactions and inquiry.id not in self._unfinished:
            self._send(source, RollBackTransaction(inquiry.id))
        else:
            super().handle_inquiry(source, inquiry)


@BUGS.plant("votes-for-a-lost-range", "TPC-R11", part="participant", caught_by=("bank", "list-append"))
class _VotesForALostRange(Participant):
    """A participant votes yes for a transaction that it does not know, as one whose range was split or moved.

    Shows as: the writes that the transaction made before the move are lost, and half of a transfer with them.
    """

    def prepare(self, request: PrepareTransaction) -> Promise[Vote]:
        known = request.ref.id in self.open or not self._may_open(request.ref.id)
        if not known:
            self.open[request.ref.id] = TransactionState(request.ref, self._ports.clock.monotonic_us())
        return super().prepare(request)

    def _has_everything(self, state: TransactionState | None, keys: tuple[str, ...]) -> bool:
        return True


@BUGS.plant(
    "no-generation-check", "KRP-M1", part="store", pattern="key-range-partitions", caught_by=("bank", "list-append")
)
class _NoGenerationCheck(RangeStore):
    """A host serves each message for a range that it holds, whatever generation the sender knows.

    Shows as: keys of the half that moved away are read as empty, and writes to them are lost.
    """

    def find(self, range_id: int, generation: int) -> HeldRange | None:
        return self.held.get(range_id)
