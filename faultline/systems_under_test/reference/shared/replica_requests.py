"""Questions to replicas on behalf of a client: one message to each, and one conclusion from their answers.

The replicas that answered are noted beside the answers, per distinct request, so that invariants can compare quorums by
their members.

The coordinator of a leaderless operation sends the same request to every replica, itself included, under a correlation
id each (request waiting list, RWL-R3 and RWL-R5). Each wait is registered before the first message leaves (RWL-R4).

A message of a node to itself does not touch the network: it goes straight into the node's own update queue. Its answer
is then counted before the node's own write is durable. That is sound, because each message that follows from it, the
answer to the client included, leaves the outbox only after that write is durable.
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
    """The sender of requests to replicas, which hands their answers to the waiting callbacks."""

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

        A replica that answers is added to `heard` before the callback hears of it.
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
    """A callback that notes that `replica` answered, and passes the answer on."""

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
    """A collector of answers that calls back once: when there are enough, or when too few can still come.

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
        """Give `enough` the first `needed` answers of `replicas` replicas; call `fail` when they cannot come."""
        self._needed = needed
        self._spare = replicas - needed
        self._enough = enough
        self._fail = fail
        self._late = late
        self._answers: list[Answer] = []
        self._errors = 0
        self._done = False

    def on_response(self, response: Answer) -> None:
        """Count the answer of a replica."""
        if self._done:
            if self._late is not None:
                self._late(response)
            return
        self._answers.append(response)
        if len(self._answers) >= self._needed:
            self._done = True
            self._enough(self._answers)

    def on_error(self, error: Exception) -> None:
        """Count a replica that will not answer."""
        self._errors += 1
        if not self._done and self._errors > self._spare:
            self._done = True
            self._fail()
