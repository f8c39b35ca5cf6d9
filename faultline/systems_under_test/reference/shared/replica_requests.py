"""Asking replicas on behalf of a client: one message to each, and one conclusion from however many answers come.

Who answered is noted beside the answers, per distinct request, so that invariants can compare quorums by their members.

The coordinator of a leaderless operation sends the same request to every replica, itself included, under a correlation
id each (request waiting list, RWL-R3 and RWL-R5). What waits is registered before anything is sent (RWL-R4).

A message of a node to itself does not touch the network: it goes straight into the node's own update queue. Its answer
is then counted before the node's own write is durable. That is sound, because whatever is sent because of it, the
answer to the client included, leaves the outbox only after that write is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from faultline.harness.world.ports import Network, NodeId
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestCallback,
    RequestWaitingList,
)

__all__ = ["QuorumAnswers", "ReplicaRequests"]

Answer = TypeVar("Answer")


class ReplicaRequests:
    """Sends requests to replicas and gives their answers to what waits for them."""

    __slots__ = ("_ids", "_network", "_node_id", "_post_to_self", "waiting")

    def __init__(
        self,
        node_id: NodeId,
        network: Network,
        post_to_self: Callable[[tuple[NodeId, Any]], None],
        waiting: RequestWaitingList[int, Any],
        ids: CorrelationIds,
    ) -> None:
        self._node_id = node_id
        self._network = network
        self._post_to_self = post_to_self
        self._ids = ids
        self.waiting = waiting

    def ask(
        self,
        replicas: Sequence[NodeId],
        request: Callable[[int], msgspec.Struct],
        callback: RequestCallback[Any],
        heard: list[NodeId] | None = None,
    ) -> None:
        """Send `request(correlation id)` to each of `replicas`; `callback` gets an answer or an error from each.

        Whoever answers is added to `heard` before the callback hears of it.
        """
        requests = [(replica, self._ids.next()) for replica in replicas]
        for replica, correlation_id in requests:
            self.waiting.add(correlation_id, callback if heard is None else _Noting(replica, heard, callback))
        for replica, correlation_id in requests:
            self.send(replica, request(correlation_id))

    def send(self, to: NodeId, message: msgspec.Struct) -> None:
        """Send `message` to a node, which may be this one."""
        if to == self._node_id:
            self._post_to_self((to, message))
        else:
            self._network.send(to, message)


class _Noting:
    """Notes that `replica` answered, and passes everything on."""

    __slots__ = ("_callback", "_heard", "_replica")

    def __init__(self, replica: NodeId, heard: list[NodeId], callback: RequestCallback[Any]) -> None:
        self._replica = replica
        self._heard = heard
        self._callback = callback

    def on_response(self, response: Any) -> None:
        self._heard.append(self._replica)
        self._callback.on_response(response)

    def on_error(self, error: Exception) -> None:
        self._callback.on_error(error)


class QuorumAnswers(Generic[Answer]):
    """Collects answers until there are enough to go on, or too few can still come; then says so, once.

    The twin of `WriteQuorumCallback` for questions whose answers matter. Answers after the conclusion go to `late`.
    """

    __slots__ = ("_answers", "_done", "_enough", "_errors", "_fail", "_late", "_needed", "_spare")

    def __init__(
        self,
        replicas: int,
        needed: int,
        enough: Callable[[list[Answer]], None],
        fail: Callable[[], None],
        late: Callable[[Answer], None] | None = None,
    ) -> None:
        """`enough` gets the first `needed` answers of `replicas` replicas; `fail` is called when they cannot come."""
        self._needed = needed
        self._spare = replicas - needed
        self._enough = enough
        self._fail = fail
        self._late = late
        self._answers: list[Answer] = []
        self._errors = 0
        self._done = False

    def on_response(self, response: Answer) -> None:
        """One replica answered."""
        if self._done:
            if self._late is not None:
                self._late(response)
            return
        self._answers.append(response)
        if len(self._answers) >= self._needed:
            self._done = True
            self._enough(self._answers)

    def on_error(self, error: Exception) -> None:
        """One replica will not answer."""
        self._errors += 1
        if not self._done and self._errors > self._spare:
            self._done = True
            self._fail()
