"""A node of `transactional-kv`: coordinator of the transactions that began here, participant with the keys it holds.

A coordinator talks to the participant beside it as to any other, over the network, so that this one too hears of a
decision only when it is durable. Messages and timers go through the node's update queue, one at a time. Both roles
write to one log.

    client ── begin, keys, commit ──▶ coordinator ── prepare, commit, roll back ──▶ participants (the own one too)
           ── get, put ─────────────▶ participant ── vote, done, what happened? ──▶ coordinator

With `clock=oracle` the first node is the timestamp oracle as well. The node is given its log: one on its own disk
(`unreplicated_node`), or with `replication_factor=3` that of a group, which the group's leader writes to
(`group_replica`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports, Timer
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord, RecordLog
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    Inquiry,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import LocksAreBounded
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Coordinator
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.distributed_time.timestamp_oracle import TimestampOracle
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.transactional_kv.clocks import (
    HybridTimes,
    LamportTimes,
    OracleTimes,
    Times,
)
from faultline.systems_under_test.reference.transactional_kv.messages import OracleTime, OracleTimeRequest
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings, host_of
from faultline.systems_under_test.reference.transactional_kv.records import (
    OracleLimit,
    Record,
    TimeGiven,
)
from faultline.systems_under_test.reference.transactions.requests import CoordinatorRequests, ParticipantRequests

__all__ = ["Parts", "TransactionalKvNode"]

_QUEUE_CAPACITY = 10_000


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes a node is built from; a planted bug is put in front of one of them."""

    coordinator: type[Coordinator] = Coordinator
    participant: type[Participant] = Participant


class TransactionalKvNode:
    """One node, once its log is replayed into it: it writes to `log` from then on."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: TransactionSettings,
        parts: Parts,
        log: RecordLog,
    ) -> None:
        self.ports = ports
        self.settings = settings
        self._log = log
        self._oracle = TimestampOracle(self._reserve)
        self.times = self._make_times(members)
        self.coordinator = parts.coordinator(
            ports,
            self._log,
            self.times,
            lambda key: host_of(members, key),
            self.ports.network.send,
            settings.transaction_timeout_us,
        )
        self.participant = parts.participant(
            ports,
            self._log,
            self.times,
            self.ports.network.send,
            self._later,
            settings.wait_policy,
            settings.timing,
            locks_reads=settings.locks_reads,
        )
        self._handlers = HandlerTable(self._make_handlers())
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def _make_times(self, members: tuple[NodeId, ...]) -> Times:
        if self.settings.clock == "hybrid":
            return HybridTimes(self.ports, self.settings.forward_jump_us)
        if self.settings.clock == "lamport":
            return LamportTimes(self.ports)
        return OracleTimes(self.ports, members[0], self.ports.network.send)

    def _make_handlers(self) -> dict[type, Callable[[NodeId, Any], None]]:
        return {
            **CoordinatorRequests(self.ports, self.times, self.coordinator).handlers,
            **ParticipantRequests(self.ports, self.times, self.participant).handlers,
            Vote: self.coordinator.handle_vote,
            Acknowledged: self.coordinator.handle_acknowledged,
            Inquiry: self.coordinator.handle_inquiry,
            OracleTimeRequest: self._handle_oracle_request,
            OracleTime: self._handle_oracle_time,
            _TimerRang: self._handle_timer,
        }

    def serve(self) -> None:
        """Take requests from now on, all records of the log being replayed."""
        self.ports.timers.every(self.settings.resend_us, lambda: self._enter(self._tick))
        self._enter(self._finish_recovery)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: no node leads."""
        return NodeStatus(role=READY, detail={"open": len(self.participant.open)})

    def replay(self, record: Record) -> None:
        """Replay a record of the log, or of a snapshot; they come in order."""
        if isinstance(record, CoordinatorRecord):
            self.coordinator.replay(record)
        elif isinstance(record, OracleLimit):
            self._oracle.restore(record.limit)
        else:
            self.participant.replay(record)

    def records(self) -> list[Record]:
        """Return records that lead to the same state as the log, and are fewer."""
        limit = self._oracle.limit
        oracle = [OracleLimit(limit)] if limit else []
        return [*oracle, *self.coordinator.records(), *self.participant.records()]

    def forget_what_is_over(self) -> None:
        """Drop the memory of all but the latest transactions that ended."""
        remembered = self.settings.transactions_remembered
        self.coordinator.forget_what_is_over(remembered)
        self.participant.forget_what_is_over(remembered)

    def _finish_recovery(self) -> None:
        self.ports.trace.emit(LocksAreBounded(self.settings.locks_held_us_max))
        self.participant.finish_recovery()
        self.coordinator.finish_recovery()

    def _tick(self) -> None:
        self.times.retry()
        self.coordinator.tick()
        self.participant.tick()

    def _later(self, delay_us: int, callback: Callable[[], None]) -> Timer:
        return self.ports.timers.after(delay_us, lambda: self._enter(callback))

    def _enter(self, callback: Callable[[], None]) -> None:
        self._queue.post((self.ports.node_id, _TimerRang(callback)))

    def _handle_timer(self, _: NodeId, timer: _TimerRang) -> None:
        timer.callback()

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers[type(message)](source, message)

    def _handle_oracle_request(self, source: NodeId, request: OracleTimeRequest) -> None:
        time = self._oracle.next(request.above)
        self.ports.trace.emit(TimeGiven(time))
        self.ports.network.send(source, OracleTime(request.number, HybridTimestamp(time, 0)))

    def _handle_oracle_time(self, _: NodeId, answer: OracleTime) -> None:
        if isinstance(self.times, OracleTimes):
            self.times.handle_time(answer)

    def _reserve(self, limit: int) -> None:
        # Durable before any number below it is given out: after a restart the oracle begins above the limit.
        self._log.append(OracleLimit(limit))
        self._log.flush()


@dataclass(frozen=True, slots=True)
class _TimerRang:
    """The node's own event: the callback of a timer that rang."""

    callback: Callable[[], None]
