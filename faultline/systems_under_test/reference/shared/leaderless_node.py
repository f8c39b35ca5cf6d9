"""The common part of nodes without a leader: a replica and coordinator that asks others and waits for their answers.

Messages and timers of such a node pass through its singular update queue, one at a time. Open questions stand in its
request waiting list; a timer, as often as the expiration, gives up on those that have waited too long. At each start
the node begins a new incarnation, durable before any message of it leaves, so that its correlation ids are never used
again.

A node takes each request number of a client once. A client never repeats one, but a network may; executing a write
again would make a second, newer write of it. Limit: a crash forgets the numbers. So a write that comes stale, over a
connection of before the crash, is executed again, and the systems promise nothing where both happen.

Two invariants of the request waiting list are checked on the reports of these nodes. Limit: that a request is answered
*in time* is checked after the heal only, since a paused node answers late and is right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.harness.promises import Asked
from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestWaitingList,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.reference.shared.handler_table import Handlers, HandlerTable
from faultline.systems_under_test.reference.shared.replica_requests import ReplicaRequests

__all__ = [
    "LeaderlessNode",
    "NodeStarted",
    "NothingWaitsForLong",
    "OneAnswerPerRequest",
    "RequestAnswered",
    "RequestTaken",
    "WaitingSwept",
    "reason_of_forgotten_requests",
    "waiting_invariants",
]

_QUEUE_CAPACITY = 1_000

_WAITS_MAX = 4
"""A request asks replicas twice at the most; each time it waits for an expiration, and up to another for the sweep."""

_SLACK_US = 100_000


def reason_of_forgotten_requests(asked: Asked) -> str | None:
    """Return in a clause why a write may be executed twice: requests come again to nodes that restart; else None."""
    comes_again = asked.weather.stale or asked.weather.duplicate
    if not comes_again or not asked.ends_processes:
        return None
    return "a node that restarts forgets which requests it has executed, and executes one that comes again"


class _Sweep(msgspec.Struct, frozen=True):
    """The node's own event: time to give up on questions that have waited too long."""


_SWEEP = _Sweep()


class NodeStarted(msgspec.Struct, frozen=True):
    """Trace: a new incarnation of the node begins, without open questions."""

    incarnation: int


class RequestTaken(msgspec.Struct, frozen=True):
    """Trace: the node takes a request of a client; it waits for replicas no longer than `answered_within_us`."""

    client: str
    request_number: int
    answered_within_us: int


class RequestAnswered(msgspec.Struct, frozen=True):
    """Trace: the node answers this request of a client."""

    client: str
    request_number: int


class WaitingSwept(msgspec.Struct, frozen=True):
    """Trace: after a sweep so many waits are left, the oldest of this age; `expiration_us` is the most there may be."""

    waiting: int
    oldest_us: int
    expiration_us: int


class LeaderlessNode(ABC):
    """The common part of a node: implements `Node` over its ports. A subclass adds its handlers and its recovery."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        waiting: RequestWaitingList[int, Any],
        expiration_us: int,
        handlers: Handlers,
    ) -> None:
        self.ports = ports
        self.waiting = waiting
        self._members = members
        self._expiration_us = expiration_us
        self._incarnation = GenerationClock(ports.storage, "incarnation")
        self._last_number: dict[NodeId, int] = {}
        self._handlers = HandlerTable({**handlers, _Sweep: self._handle_sweep})
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def start(self) -> None:
        """Recover the stored state, and begin a new incarnation, durable before any message of it leaves."""
        self._recover()
        self._incarnation.recover()
        self._incarnation.adopt(self._incarnation.generation + 1)
        self.ports.trace.emit(NodeStarted(self._incarnation.generation))
        ids = self._correlation_ids(self._incarnation.generation)
        requests = ReplicaRequests(self.ports.node_id, self.ports.network, self._queue.post, self.waiting, ids)
        self._begin(requests, ids)
        self.ports.timers.every(self._expiration_us, lambda: self._queue.post((self.ports.node_id, _SWEEP)))

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return the status: every node is a replica, and none leads."""
        return NodeStatus(role=READY, generation=self._incarnation.generation, detail={"waiting": len(self.waiting)})

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers[type(message)](source, message)

    @abstractmethod
    def _recover(self) -> None:
        """Read the stored state."""

    @abstractmethod
    def _begin(self, requests: ReplicaRequests, ids: CorrelationIds) -> None:
        """Take the means with which this incarnation asks replicas."""

    def _correlation_ids(self, incarnation: int) -> CorrelationIds:
        return CorrelationIds(incarnation)

    def _is_new(self, source: NodeId, number: int) -> bool:
        if number <= self._last_number.get(source, 0):
            return False
        self._last_number[source] = number
        self.ports.trace.emit(RequestTaken(source, number, _WAITS_MAX * self._expiration_us))
        return True

    def _answer(self, client: NodeId, number: int, answer: msgspec.Struct) -> None:
        self.ports.trace.emit(RequestAnswered(client, number))
        self.ports.network.send(client, answer)

    def _handle_answer(self, _: NodeId, response: Any) -> None:
        self.waiting.handle_response(response.correlation_id, response)

    def _handle_sweep(self, _: NodeId, __: _Sweep) -> None:
        swept_us = self.waiting.expire()
        if self.waiting:
            oldest_us = self.waiting.oldest_us(swept_us)
            self.ports.trace.emit(WaitingSwept(len(self.waiting), oldest_us, self._expiration_us))


class OneAnswerPerRequest(ReportingInvariant):
    """RWL-I1, within an incarnation: the client hears once, and in time, also when replicas are away."""

    id = "RWL-I1"
    statement = "A node that lives answers each request of a client once, as soon as it has waited long enough."
    events = (NodeStarted, RequestTaken, RequestAnswered)

    def __init__(self) -> None:
        self._due_us: dict[str, dict[tuple[str, int], tuple[int, int]]] = {}

    def observe(
        self, time_us: int, node: str, event: NodeStarted | RequestTaken | RequestAnswered, report: Report
    ) -> None:
        """Remember the requests taken since the node started, until they are answered."""
        if isinstance(event, NodeStarted):
            self._due_us[node] = {}
            return
        open_requests = self._due_us.setdefault(node, {})
        request = (event.client, event.request_number)
        if isinstance(event, RequestTaken):
            open_requests[request] = (time_us, event.answered_within_us)
        elif open_requests.pop(request, None) is None:
            sentence = f"{node} answered request {event.request_number} of {event.client} a second time."
            self._breach(report, time_us, node, sentence)

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Report a breach for each request without an answer long after the heal."""
        for node, open_requests in self._due_us.items():
            for (client, number), (taken_us, within_us) in open_requests.items():
                if max(taken_us, healed_us) + within_us + _SLACK_US < end_us:
                    sentence = f"{node} never answered request {number} of {client}, although it lived."
                    self._breach(report, end_us, node, sentence)


class NothingWaitsForLong(ReportingInvariant):
    """RWL-I4: after a sweep no wait is older than the expiration, so a quiet node has none."""

    id = "RWL-I4"
    statement = "After a sweep of the request waiting list, no request in it has waited longer than the expiration."
    events = (WaitingSwept,)

    def observe(self, time_us: int, node: str, event: WaitingSwept, report: Report) -> None:
        """Compare the oldest wait with the expiration."""
        if event.oldest_us > event.expiration_us:
            sentence = (
                f"After a sweep of {node}, one of {event.waiting} waits was {event.oldest_us // 1_000} ms old;"
                f" {event.expiration_us // 1_000} ms are the most."
            )
            self._breach(report, time_us, node, sentence)


def waiting_invariants() -> list[Invariant]:
    """Return new instances, for one run."""
    return [OneAnswerPerRequest(), NothingWaitsForLong()]
