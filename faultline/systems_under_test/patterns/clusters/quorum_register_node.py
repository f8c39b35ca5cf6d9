"""A node of `quorum-register`: a replica of every key, and a coordinator for the clients that ask it.

There is no leader and no log in common. What happens to a node passes through its singular update queue; what a
replica is asked to keep goes to its write-ahead log before it is acknowledged; what a coordinator waits for stands in
its request waiting list.

A node takes each request number of a client once. The client never repeats one, but a network may; executing a write
again would give it a second, newer stamp. The numbers seen are forgotten in a crash: so is the connection on which a
network could repeat them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from faultline.harness.world.ports import READY, Clock, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.clusters.quorum_register_coordinator import Coordinator
from faultline.systems_under_test.patterns.clusters.quorum_register_messages import (
    CopyStored,
    QueryRequest,
    QueryResponse,
    ReadValue,
    StoreRequest,
    StoreResponse,
    ValueResponse,
    WriteValue,
)
from faultline.systems_under_test.patterns.clusters.quorum_register_options import RegisterSettings
from faultline.systems_under_test.patterns.clusters.replica_requests import ReplicaRequests
from faultline.systems_under_test.patterns.clusters.stamped_copies import Copy, StampedCopies
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestWaitingList,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue

__all__ = ["Parts", "QuorumRegisterNode"]

_QUEUE_CAPACITY = 1_000


class _Sweep(msgspec.Struct, frozen=True):
    """The node's own event: time to give up on what has waited too long."""


_SWEEP = _Sweep()


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes a node is built from; a planted bug replaces one of them."""

    copies: type[StampedCopies] = StampedCopies
    coordinator: type[Coordinator] = Coordinator
    waiting: Callable[[Clock, int], RequestWaitingList[int, Any]] = RequestWaitingList
    correlation_ids: Callable[[int], CorrelationIds] = CorrelationIds


class QuorumRegisterNode:
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: RegisterSettings, parts: Parts) -> None:
        self.ports = ports
        self.copies = parts.copies(ports)
        self.waiting = parts.waiting(ports.clock, settings.expiration_us)
        self._incarnation = GenerationClock(ports.storage, "incarnation")
        self._members = members
        self._settings = settings
        self._parts = parts
        self._last_number: dict[NodeId, int] = {}
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=_crash
        )
        self._handlers: dict[type, Callable[[NodeId, Any], None]] = {
            ReadValue: self._handle_read,
            WriteValue: self._handle_write,
            QueryRequest: self._handle_query,
            QueryResponse: self._handle_answer,
            StoreRequest: self._handle_store,
            StoreResponse: self._handle_answer,
            _Sweep: self._handle_sweep,
        }

    # -- Node ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover the copies, and begin a new incarnation, durable before any message of it leaves."""
        self.copies.recover()
        self._incarnation.recover()
        self._incarnation.adopt(self._incarnation.generation + 1)
        ids = self._parts.correlation_ids(self._incarnation.generation)
        self._requests = ReplicaRequests(self.ports.node_id, self.ports.network, self._queue.post, self.waiting, ids)
        self._coordinator = self._parts.coordinator(
            self.ports, self._members, self._settings, self._requests, ids, self.copies
        )
        self.ports.timers.every(self._settings.expiration_us, lambda: self._queue.post((self.ports.node_id, _SWEEP)))

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Every node is a replica; none leads."""
        return NodeStatus(role=READY, generation=self._incarnation.generation, detail={"waiting": len(self.waiting)})

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers[type(message)](source, message)

    # -- clients ------------------------------------------------------------------------------------------------------

    def _handle_read(self, source: NodeId, request: ReadValue) -> None:
        if self._is_new(source, request.request_number):
            self._coordinator.read(request.key, request.request_number, self._responder(source))

    def _handle_write(self, source: NodeId, request: WriteValue) -> None:
        if self._is_new(source, request.request_number):
            self._coordinator.write(request.key, request.value, request.request_number, self._responder(source))

    def _is_new(self, source: NodeId, number: int) -> bool:
        if number <= self._last_number.get(source, 0):
            return False
        self._last_number[source] = number
        return True

    def _responder(self, source: NodeId) -> Callable[[ValueResponse], None]:
        return lambda response: self.ports.network.send(source, response)

    # -- the replica --------------------------------------------------------------------------------------------------

    def _handle_query(self, source: NodeId, request: QueryRequest) -> None:
        copy = self.copies.get(request.key)
        self._requests.send(source, QueryResponse(request.correlation_id, copy.stamp, copy.value))

    def _handle_store(self, source: NodeId, request: StoreRequest) -> None:
        copy = Copy(request.key, request.stamp, request.value)
        if self.copies.store(copy):
            checksum = crc32(msgspec.msgpack.encode(copy.value))
            self.ports.trace.emit(CopyStored(copy.key, copy.stamp, checksum))
        elif copy.stamp < self.copies.get(copy.key).stamp:
            self.ports.trace.sometimes("older-copy-refused")
        self._requests.send(source, StoreResponse(request.correlation_id))

    # -- what comes back ----------------------------------------------------------------------------------------------

    def _handle_answer(self, _: NodeId, response: QueryResponse | StoreResponse) -> None:
        self.waiting.handle_response(response.correlation_id, response)

    def _handle_sweep(self, _: NodeId, __: _Sweep) -> None:
        self.waiting.expire()


def _crash(_: tuple[NodeId, Any], error: Exception) -> None:
    """An exception in a handler ends the process (SYS-R2)."""
    raise error
