"""The requests of clients to the two halves of two-phase commit at one server, and the answers to them.

A coordinator begins transactions and brings them to an end; a participant reads and writes. Both answer with a `Reply`
of the request's number, once there is an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    CommitTransaction,
    PrepareTransaction,
    RollBackTransaction,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.two_phase_commit import Coordinator, Outcome
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.promise import Promise
from faultline.systems_under_test.reference.transactions.messages import (
    AddKey,
    AskCommit,
    AskRollback,
    Begin,
    GetInTransaction,
    PutInTransaction,
    ReadAt,
    ReadTime,
    Reply,
)

__all__ = ["REFUSED", "CoordinatorRequests", "ParticipantRequests", "RequestTimes"]

REFUSED = "refused"
"""The error of a request that cannot be served: its transaction must be given up, and may be tried again."""

_FORGOTTEN = "forgotten"


class RequestTimes(Protocol):
    """The source of the times at which transactions begin."""

    def accepts(self, time: HybridTimestamp) -> bool:
        """Return whether a request with this time can be served."""

    def start_time(self, seen: HybridTimestamp) -> Promise[HybridTimestamp]:
        """Return a time for a transaction that begins, of a client that knows of `seen`."""


class _Requests:
    def __init__(self, ports: Ports, times: RequestTimes) -> None:
        self._ports = ports
        self._times = times

    def _reply(self, to: NodeId, reply: Reply) -> None:
        self._ports.network.send(to, reply)

    def _accepts(self, source: NodeId, number: int, time: HybridTimestamp) -> bool:
        """Return whether the time of a request is acceptable; refuse the request if it is too far ahead."""
        if self._times.accepts(time):
            return True
        self._ports.trace.sometimes("time-too-far-ahead")
        self._reply(source, Reply(number, REFUSED))
        return False


class CoordinatorRequests(_Requests):
    """The requests of clients to the coordinator of a server."""

    def __init__(self, ports: Ports, times: RequestTimes, coordinator: Coordinator) -> None:
        super().__init__(ports, times)
        self._coordinator = coordinator
        self._begun: dict[NodeId, tuple[int, Reply | None]] = {}
        self.handlers: dict[type, Callable[[NodeId, Any], None]] = {
            Begin: self._handle_begin,
            AddKey: self._handle_add_key,
            AskCommit: self._handle_commit_request,
            AskRollback: self._handle_rollback_request,
            ReadTime: self._handle_read_time,
        }

    def _handle_begin(self, source: NodeId, request: Begin) -> None:
        # A repeated request gets the same transaction: a second one would hold locks that no client knows of.
        number, reply = self._begun.get(source, (0, None))
        if request.number == number:
            if reply is not None:
                self._reply(source, reply)
        elif self._accepts(source, request.number, request.seen):
            self._begun[source] = (request.number, None)
            self._times.start_time(request.seen).then(lambda start: self._begin(source, request, start))

    def _begin(self, source: NodeId, request: Begin, start: HybridTimestamp) -> None:
        reply = Reply(request.number, ref=self._coordinator.begin(start, request.first))
        self._begun[source] = (request.number, reply)
        self._reply(source, reply)

    def _handle_add_key(self, source: NodeId, request: AddKey) -> None:
        error = None if self._coordinator.add_key(request.id, request.key) else REFUSED
        self._reply(source, Reply(request.number, error))

    def _handle_commit_request(self, source: NodeId, request: AskCommit) -> None:
        self._tell_outcome(source, request.number, self._coordinator.commit(request.id))

    def _handle_rollback_request(self, source: NodeId, request: AskRollback) -> None:
        self._tell_outcome(source, request.number, self._coordinator.roll_back(request.id))

    def _tell_outcome(self, to: NodeId, number: int, outcome: Promise[Outcome]) -> None:
        outcome.then(
            lambda end: self._reply(to, Reply(number, value=end.committed, time=end.time)),
            lambda _: self._reply(to, Reply(number, _FORGOTTEN)),
        )

    def _handle_read_time(self, source: NodeId, request: ReadTime) -> None:
        if self._accepts(source, request.number, request.seen):
            time = self._times.start_time(request.seen)
            time.then(lambda start: self._reply(source, Reply(request.number, time=start)))


class ParticipantRequests(_Requests):
    """The requests of clients and coordinators to a participant."""

    def __init__(self, ports: Ports, times: RequestTimes, participant: Participant) -> None:
        super().__init__(ports, times)
        self._participant = participant
        self.handlers: dict[type, Callable[[NodeId, Any], None]] = {
            GetInTransaction: self._handle_get,
            PutInTransaction: self._handle_put,
            ReadAt: self._handle_read_at,
            PrepareTransaction: self._handle_prepare,
            CommitTransaction: self._handle_commit,
            RollBackTransaction: self._handle_roll_back,
        }

    def _handle_get(self, source: NodeId, request: GetInTransaction) -> None:
        self._tell_value(source, request.number, self._participant.get(request.ref, request.key, request.position))

    def _handle_put(self, source: NodeId, request: PutInTransaction) -> None:
        kept = self._participant.put(request.ref, request.key, request.value, request.position)
        self._reply(source, Reply(request.number, None if kept else REFUSED))

    def _handle_read_at(self, source: NodeId, request: ReadAt) -> None:
        if self._accepts(source, request.number, request.time):
            self._tell_value(source, request.number, self._participant.snapshots.read_at(request.key, request.time))

    def _tell_value(self, to: NodeId, number: int, value: Promise[Any]) -> None:
        value.then(
            lambda found: self._reply(to, Reply(number, value=found)),
            lambda _: self._reply(to, Reply(number, REFUSED)),
        )

    def _handle_prepare(self, source: NodeId, request: PrepareTransaction) -> None:
        self._participant.prepare(request).then(lambda vote: self._ports.network.send(source, vote))

    def _handle_commit(self, source: NodeId, decision: CommitTransaction) -> None:
        self._ports.network.send(source, self._participant.commit(decision))

    def _handle_roll_back(self, source: NodeId, decision: RollBackTransaction) -> None:
        self._ports.network.send(source, self._participant.roll_back(decision))
