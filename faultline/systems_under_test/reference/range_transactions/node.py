"""A node of `range-transactions`: coordinator of the transactions that began here, and host of ranges of keys.

    client ── begin, keys, commit ──▶ coordinator ── prepare, commit, roll back ──▶ range, wherever it is
           ── get, put, read at ────▶ range       ── vote, done, what happened? ──▶ coordinator
    table  ── host, split, move ────▶ host        ── the whole range ─────────────▶ other host

All messages and timers go through the node's update queue, one at a time. Coordinator and ranges write to one log,
which the node is given; the node that also keeps the table of ranges stands in `stored_node`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faultline.harness.world.ports import NodeId, NodeStatus, Ports, Timer
from faultline.systems_under_test.patterns.data_partitioning.coordinator_records import CoordinatorRecord, RecordLog
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    Acknowledged,
    Inquiry,
    TransactionId,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import LocksAreBounded
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.range_transactions.messages import CommitTold, FromRange, RangeRefused
from faultline.systems_under_test.reference.ranges.messages import TableResponse
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable
from faultline.systems_under_test.reference.transactions.messages import AskCommit
from faultline.systems_under_test.reference.transactions.requests import CoordinatorRequests

if TYPE_CHECKING:  # the node is given these, already made
    from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
    from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Outcome
    from faultline.systems_under_test.reference.range_transactions.options import RangeTransactionSettings
    from faultline.systems_under_test.reference.range_transactions.parts import Parts
    from faultline.systems_under_test.reference.range_transactions.reads import RangeRequests
    from faultline.systems_under_test.reference.range_transactions.records import Record

__all__ = ["RangeTransactionsNode"]

_QUEUE_CAPACITY = 10_000


class RangeTransactionsNode:
    """One node, once its log is replayed into it: it writes to `log` from then on."""

    def __init__(
        self, ports: Ports, table_node: NodeId, settings: RangeTransactionSettings, parts: Parts, log: RecordLog
    ) -> None:
        self.ports = ports
        self.settings = settings
        self._table_node = table_node
        self._parts = parts
        self.times = parts.times(ports, settings, self._later)
        self.routes = parts.routes(ports, table_node)
        self.coordinator = parts.coordinator(
            ports, log, self.times, self.routes.range_of, self.routes.send, settings.transaction_timeout_us
        )
        self.store = parts.store(ports, log, self._make_participant)
        self.host = parts.host(ports, table_node, settings, self.store, self._every)
        self._of_coordinator: dict[type, Callable[[NodeId, Any], None]] = {
            Vote: self.coordinator.handle_vote,
            Acknowledged: self.coordinator.handle_acknowledged,
            Inquiry: self.coordinator.handle_inquiry,
        }
        self._requests = CoordinatorRequests(ports, self.times, self.coordinator)
        self.handlers = HandlerTable(
            {
                **self._requests.handlers,
                AskCommit: self._handle_commit_request,
                **self.host.handlers,
                FromRange: self._handle_from_range,
                RangeRefused: self.routes.handle_refusal,
                TableResponse: self.routes.handle_table,
                _TimerRang: lambda _, timer: timer.callback(),
            }
        )
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def _make_participant(self, ports: Ports, log: RecordLog) -> tuple[Participant, RangeRequests]:
        """Return the participant of a range, over its own ports and records, and the door to it."""
        participant = self._parts.participant(
            ports,
            log,
            self.times,
            ports.network.send,
            self._later,
            self.settings.wait_policy,
            self.settings.timing,
        )
        return participant, self._parts.requests(ports, self.times, participant)

    def serve(self) -> None:
        """Take requests from now on, all records of the log being replayed."""
        self.routes.refresh()
        self.host.start()
        self._every(self.settings.resend_us, self._tick)
        self._enter(self._finish_recovery)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: the coordinator of the table leads, so that faults aimed at a leader hit it."""
        role = "leader" if self.ports.node_id == self._table_node else "follower"
        return NodeStatus(role=role, leader=self._table_node, detail={"ranges": sorted(self.store.held)})

    def replay(self, record: Record) -> None:
        """Replay a record of the log, or of a snapshot; they come in order."""
        if isinstance(record, CoordinatorRecord):
            self.coordinator.replay(record)
        else:
            self.store.replay(record)

    def records(self) -> list[Record]:
        """Return records that lead to the same state as the log, and are fewer."""
        return [*self.coordinator.records(), *self.store.records()]

    def forget_what_is_over(self) -> None:
        """Drop the memory of all but the latest transactions that ended."""
        self.coordinator.forget_what_is_over(self.settings.transactions_remembered)
        self.store.forget_what_is_over(self.settings.transactions_remembered)

    def _finish_recovery(self) -> None:
        self.ports.trace.emit(LocksAreBounded(self.settings.locks_held_us_max))
        self.store.finish_recovery()
        self.coordinator.finish_recovery()

    def _tick(self) -> None:
        self.coordinator.tick()
        self.host.tick()

    def _later(self, delay_us: int, callback: Callable[[], None]) -> Timer:
        return self.ports.timers.after(delay_us, lambda: self._enter(callback))

    def _every(self, interval_us: int, callback: Callable[[], None]) -> None:
        self.ports.timers.every(interval_us, lambda: self._enter(callback))

    def _enter(self, callback: Callable[[], None]) -> None:
        self._queue.post((self.ports.node_id, _TimerRang(callback)))

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self.handlers[type(message)](source, message)

    def _handle_from_range(self, _: NodeId, envelope: FromRange) -> None:
        self._of_coordinator[type(envelope.message)](NodeId(envelope.name), envelope.message)

    def _handle_commit_request(self, source: NodeId, request: AskCommit) -> None:
        """Ask for the commit, and report the instant in which it is first told."""
        found = self.coordinator.transactions.get(request.id)
        is_decided = found is None or found.outcome.done
        self._requests.handlers[AskCommit](source, request)
        # Told again it proves nothing: the clock may have been put back since, within its bound.
        if found is not None and not is_decided and self.settings.waits_at_commit:
            found.outcome.then(lambda end: self._report_commit(request.id, end))

    def _report_commit(self, transaction: TransactionId, end: Outcome) -> None:
        if end.time is not None:
            self.ports.trace.emit(CommitTold(transaction, end.time, self.times.earliest_us))


@dataclass(frozen=True, slots=True)
class _TimerRang:
    """The node's own event: the callback of a timer that rang."""

    callback: Callable[[], None]
