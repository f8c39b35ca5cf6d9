"""A node of `paxos-kv`: proposer and acceptor in one, for every key.

Every message and every timer of the node passes through its singular update queue, one at a time. A client's request
becomes a change of its key; the proposer gets it decided; the answer is taken from the register that was decided.

    client ── request ──► update queue ──► proposer ── prepare, accept, commit ──► stores of all nodes
    client ◄── answer ──────────────────── the decided register

`PaxosKvParts` names the classes the node is built from; most planted bugs are subclasses of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.data_replication.paxos import Acceptor, MonotonicIds, PaxosQuorums
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import Proposer
from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    AcceptRequest,
    AcceptResponse,
    Commit,
    CommitNotice,
    PaxosStore,
    PrepareRequest,
    PrepareResponse,
)
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue, crash
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.reference.paxos_kv.messages import OutcomeUnknown, PaxosClientRequest
from faultline.systems_under_test.reference.paxos_kv.options import PaxosKvSettings
from faultline.systems_under_test.reference.paxos_kv.register import register_in
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, GetValue
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

__all__ = ["ClientChange", "PaxosKvNode", "PaxosKvParts"]

_QUEUE_CAPACITY = 1_000


class ClientChange:
    """A client's request under way: implements `Change`, and answers the client at the end."""

    def __init__(self, node: PaxosKvNode, source: NodeId, request: PaxosClientRequest, deadline_us: int) -> None:
        self._node = node
        self._source = source
        self._request = request
        self.deadline_us = deadline_us
        self.only_reads = node.settings.prepares_only and self._reads

    @property
    def _reads(self) -> bool:
        return type(self._request.command) is GetValue

    def wanted(self, committed: Commit | None) -> bytes | None:
        """Return the register with the command executed; None if the request, or a later one of the client, is in it.

        A read is a no-op: the same register once more.
        """
        request, register = self._request, register_in(committed)
        if not self._reads and self.stands_in(register.last_request(request.client)):
            return None
        return register.after(request.client, request.request_number, request.command).encoded()

    def stands_in(self, last_request: int) -> bool:
        """Return whether this request was decided before, given the client's last one: the duplicate detection."""
        return self._request.request_number <= last_request

    def finish(self, committed: Commit | None) -> None:
        """Answer with the decided register; a late copy of an older request gets no answer."""
        request, register = self._request, register_in(committed)
        self._node.forget(request)
        if self._reads:
            self._reply(ClientResponse(request.request_number, None, register.value))
            return
        answer = register.answers.get(request.client)
        if answer is None or answer.request_number <= request.request_number:
            saved = answer if answer is not None and answer.request_number == request.request_number else None
            error, value = (saved.error, saved.value) if saved is not None else (None, None)
            self._reply(ClientResponse(request.request_number, error, value))

    def give_up(self) -> None:
        """Tell the client that it may ask elsewhere."""
        self._node.forget(self._request)
        self._reply(OutcomeUnknown(self._request.request_number))

    def _reply(self, answer: ClientResponse | OutcomeUnknown) -> None:
        self._node.ports.network.send(self._source, answer)


@dataclass(frozen=True, slots=True)
class _TimerRang:
    """The node's own event: a timer of the proposer rang."""

    callback: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PaxosKvParts:
    """The classes a node is built from; `quorums` deviates only for a planted bug."""

    acceptor: Callable[[], Acceptor] = Acceptor
    ids: Callable[[str], MonotonicIds] = MonotonicIds
    store: type[PaxosStore] = PaxosStore
    proposer: type[Proposer] = Proposer
    change: type[ClientChange] = ClientChange
    quorums: Callable[[PaxosKvSettings, int], PaxosQuorums] = PaxosKvSettings.quorums


class PaxosKvNode:
    """One node: implements `Node` over its ports."""

    def __init__(
        self, ports: Ports, members: tuple[NodeId, ...], settings: PaxosKvSettings, parts: PaxosKvParts
    ) -> None:
        if len(members) < 2:
            raise UsageError("paxos-kv needs at least 2 nodes to agree.", "Use 3 or 5 nodes (--nodes 3).")
        self.ports = ports
        self.settings = settings
        self._parts = parts
        self._requests: list[PaxosClientRequest] = []
        log = WriteAheadLog(ports.storage, name="paxos", segment_size_bytes_max=settings.segment_size_bytes)
        self.ids = parts.ids(ports.node_id)
        self.store = parts.store(ports, log, self.ids, rejects=settings.rejections, acceptor=parts.acceptor)
        self.proposer = parts.proposer(
            ports, members, self.store, self.ids, parts.quorums(settings, len(members)), settings.timing, self._enter
        )
        self._handlers = HandlerTable(
            {
                PrepareRequest: self._handle_prepare,
                AcceptRequest: self._handle_accept,
                PrepareResponse: self.proposer.handle_prepare_response,
                AcceptResponse: self.proposer.handle_accept_response,
                CommitNotice: self.proposer.handle_commit_notice,
                PaxosClientRequest: self._handle_client_request,
                _TimerRang: self._handle_timer,
            }
        )
        self._queue: SingularUpdateQueue[tuple[NodeId, Any], None] = SingularUpdateQueue(
            self._handle, _QUEUE_CAPACITY, on_error=crash
        )

    def start(self) -> None:
        """Recover the acceptors. Proposals under way are forgotten; a later proposer finds the accepted ones."""
        self.store.recover()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take a message into the queue."""
        self._queue.post((source, message))

    def status(self) -> NodeStatus:
        """Return `ready`: no node leads; the highest round this node knows stands for a generation."""
        return NodeStatus(role=READY, generation=self.ids.round, detail={"undecided": len(self.proposer)})

    def _enter(self, callback: Callable[[], None]) -> None:
        self._queue.post((self.ports.node_id, _TimerRang(callback)))

    def _handle_timer(self, _: NodeId, timer: _TimerRang) -> None:
        timer.callback()

    def _handle(self, item: tuple[NodeId, Any]) -> None:
        source, message = item
        self._handlers[type(message)](source, message)

    def _handle_prepare(self, source: NodeId, request: PrepareRequest) -> None:
        response = self.store.prepare(request)
        if response is not None:
            self.ports.network.send(source, response)

    def _handle_accept(self, source: NodeId, request: AcceptRequest) -> None:
        response = self.store.accept(request)
        if response is not None:
            self.ports.network.send(source, response)

    def _handle_client_request(self, source: NodeId, request: PaxosClientRequest) -> None:
        if request in self._requests:
            return
        self._requests.append(request)
        deadline_us = self.ports.clock.monotonic_us() + self.settings.client_timeout_us
        self.proposer.submit(request.command.key, self._parts.change(self, source, request, deadline_us))

    def forget(self, request: PaxosClientRequest) -> None:
        """Forget `request`, which is answered: another copy of it is taken up anew."""
        self._requests.remove(request)
