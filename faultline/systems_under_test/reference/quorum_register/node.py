"""A node of `quorum-register`: a replica of every key, and a coordinator for the clients that ask it.

There is no leader and no common log (see `leaderless_node`). A replica acknowledges a copy once it is in its
write-ahead log; the coordinator carries out the operations of clients in two phases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from faultline.harness.world.ports import Clock, NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestWaitingList,
)
from faultline.systems_under_test.reference.quorum_register.coordinator import Coordinator
from faultline.systems_under_test.reference.quorum_register.messages import (
    CopyStored,
    QueryRequest,
    QueryResponse,
    ReadValue,
    StoreRequest,
    StoreResponse,
    ValueResponse,
    WriteValue,
)
from faultline.systems_under_test.reference.quorum_register.options import RegisterSettings
from faultline.systems_under_test.reference.quorum_register.stamped_copies import Copy, StampedCopies
from faultline.systems_under_test.reference.shared.handler_table import Handlers
from faultline.systems_under_test.reference.shared.leaderless_node import LeaderlessNode
from faultline.systems_under_test.reference.shared.replica_requests import ReplicaRequests

__all__ = ["Parts", "QuorumRegisterNode"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a node is built from; a planted bug changes one of them."""

    copies: type[StampedCopies] = StampedCopies
    coordinator: type[Coordinator] = Coordinator
    waiting: Callable[[Clock, int], RequestWaitingList[int, Any]] = RequestWaitingList
    correlation_ids: Callable[[int], CorrelationIds] = CorrelationIds


class QuorumRegisterNode(LeaderlessNode):
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: RegisterSettings, parts: Parts) -> None:
        handlers: Handlers = {
            ReadValue: self._handle_read,
            WriteValue: self._handle_write,
            QueryRequest: self._handle_query,
            QueryResponse: self._handle_answer,
            StoreRequest: self._handle_store,
            StoreResponse: self._handle_answer,
        }
        waiting = parts.waiting(ports.clock, settings.expiration_us)
        super().__init__(ports, members, waiting, settings.expiration_us, handlers)
        self.copies = parts.copies(ports)
        self._settings = settings
        self._parts = parts

    def _recover(self) -> None:
        self.copies.recover()

    def _correlation_ids(self, incarnation: int) -> CorrelationIds:
        return self._parts.correlation_ids(incarnation)

    def _begin(self, requests: ReplicaRequests, ids: CorrelationIds) -> None:
        self._requests = requests
        self._coordinator = self._parts.coordinator(
            self.ports, self._members, self._settings, requests, ids, self.copies
        )

    def _handle_read(self, source: NodeId, request: ReadValue) -> None:
        if self._is_new(source, request.request_number):
            self._coordinator.read(request.key, request.request_number, self._responder(source))

    def _handle_write(self, source: NodeId, request: WriteValue) -> None:
        if self._is_new(source, request.request_number):
            self._coordinator.write(request.key, request.value, request.request_number, self._responder(source))

    def _responder(self, source: NodeId) -> Callable[[ValueResponse], None]:
        return lambda response: self._answer(source, response.request_number, response)

    def _handle_query(self, source: NodeId, request: QueryRequest) -> None:
        copy = self.copies.get(request.key)
        self._requests.send(source, QueryResponse(request.correlation_id, copy.stamp, copy.value))

    def _handle_store(self, source: NodeId, request: StoreRequest) -> None:
        copy = Copy(request.key, request.stamp, request.value)
        is_new = self.copies.store(copy)
        held = self.copies.get(copy.key)
        if not is_new and copy.stamp < held.stamp:
            self.ports.trace.sometimes("older-copy-refused")
        # A copy may be there although nothing was told of it: the process before this one ended in the sync.
        told = copy if is_new or copy.stamp == held.stamp else held
        checksum = crc32(msgspec.msgpack.encode(told.value))
        self.ports.trace.emit(CopyStored(told.key, told.stamp, checksum))
        self._requests.send(source, StoreResponse(request.correlation_id))
