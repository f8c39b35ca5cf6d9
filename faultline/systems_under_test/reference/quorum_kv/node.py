"""A node of `quorum-kv`: a replica of some keys, and a coordinator for the clients that ask it.

    write   give the value a version ── own log ──► all siblings to the other replicas, wait for W ──► answer
    read    ask all replicas, wait for R ── siblings of all together ──► answer ──► repair those that lacked one

Replicas always exchange *all* siblings of a key: a context that names a node's third update claims to know the first
two, so no replica may have the third without them (see `version_vector`). A write that too few replicas acknowledge is
not undone; its outcome is unknown, and read repair carries it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    CorrelationIds,
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.systems_under_test.patterns.data_replication.version_vector import (
    ObsoleteVersion,
    VersionVector,
    context_of,
)
from faultline.systems_under_test.reference.quorum_kv.messages import (
    CountersRecovered,
    FetchRequest,
    FetchResponse,
    GetSiblings,
    LocateRequest,
    LocateResponse,
    PutValue,
    ReplicateRequest,
    ReplicateResponse,
    SiblingsReceived,
    SiblingsResponse,
    SiblingsStored,
    WriteRefused,
    WriteTaken,
)
from faultline.systems_under_test.reference.quorum_kv.options import KeyValueSettings, replicas_of
from faultline.systems_under_test.reference.quorum_kv.sibling_store import (
    VERSIONINGS,
    Siblings,
    SiblingStore,
    Update,
    Versioning,
)
from faultline.systems_under_test.reference.shared.handler_table import Handlers
from faultline.systems_under_test.reference.shared.leaderless_node import LeaderlessNode
from faultline.systems_under_test.reference.shared.replica_requests import QuorumAnswers, ReplicaRequests

__all__ = [
    "NOT_ENOUGH_COPIES",
    "NO_QUORUM",
    "OBSOLETE_VERSION",
    "NoRepair",
    "Parts",
    "QuorumKeyValueNode",
    "ReadRepair",
]

OBSOLETE_VERSION = "obsolete-version"
"""The client did not know the node's latest update; nothing was written."""

NOT_ENOUGH_COPIES = "not-enough-copies"
"""Too few replicas acknowledged the write; those that have it keep it, so the outcome is unknown."""

NO_QUORUM = "no-quorum"
"""Too few replicas answered the read."""


class _RepairSent:
    """The callback of a repair, whose acknowledgements change nothing."""

    def on_response(self, response: object) -> None:
        """Ignore that the replica is repaired."""

    def on_error(self, error: Exception) -> None:
        """Ignore that it was not: the next read tries again."""


class ReadRepair:
    """The repair of the replicas that answered one read, late answers included (VVC-R19)."""

    def __init__(self, versioning: Versioning, send: Callable[[NodeId, Siblings], None]) -> None:
        self._versioning = versioning
        self._send = send
        self._held: dict[NodeId, Siblings] = {}
        self.merged: Siblings = ()

    def hear(self, answer: FetchResponse) -> None:
        """Take one replica's siblings into account."""
        self._held[NodeId(answer.replica)] = answer.siblings
        self.merged = self._versioning.merged(self.merged, answer.siblings)

    def repair(self) -> None:
        """Send all siblings to the replicas that lack one."""
        for replica, held in self._held.items():
            if held != self.merged:
                # Noted as held at once: each late answer calls this again, and one repair of a replica is enough.
                self._held[replica] = self.merged
                self._send(replica, self.merged)


class NoRepair(ReadRepair):
    """No repair: replicas stay as they are until the next write (option `read_repair`)."""

    def repair(self) -> None:
        """Leave them as they are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a node is built from; a planted bug changes one of them."""

    versionings: Mapping[str, Callable[[], Versioning]] = field(default_factory=lambda: VERSIONINGS)
    store: Callable[[Ports, Versioning], SiblingStore] = SiblingStore
    repair: Callable[[Versioning, Callable[[NodeId, Siblings], None]], ReadRepair] = ReadRepair
    context: Callable[[Siblings], VersionVector] = context_of


class QuorumKeyValueNode(LeaderlessNode):
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: KeyValueSettings, parts: Parts) -> None:
        handlers: Handlers = {
            LocateRequest: self._handle_locate,
            GetSiblings: self._handle_get,
            PutValue: self._handle_put,
            FetchRequest: self._handle_fetch,
            FetchResponse: self._handle_answer,
            ReplicateRequest: self._handle_replicate,
            ReplicateResponse: self._handle_answer,
        }
        waiting: RequestWaitingList[int, Any] = RequestWaitingList(ports.clock, settings.expiration_us)
        super().__init__(ports, members, waiting, settings.expiration_us, handlers)
        self._versioning = parts.versionings[settings.versions]()
        self.store = parts.store(ports, self._versioning)
        self._repair_class = parts.repair if settings.read_repair else NoRepair
        self._settings = settings
        self._parts = parts

    def _recover(self) -> None:
        self.store.recover()
        self.ports.trace.emit(CountersRecovered(self.store.counters()))

    def _begin(self, requests: ReplicaRequests, _: CorrelationIds) -> None:
        self._requests = requests

    def _replicas_of(self, key: str) -> tuple[NodeId, ...]:
        return replicas_of(key, self._members, self._settings.replicas)

    def _handle_locate(self, source: NodeId, request: LocateRequest) -> None:
        self.ports.network.send(source, LocateResponse(request.request_number))

    def _handle_get(self, source: NodeId, request: GetSiblings) -> None:
        key, number = request.key, request.request_number
        if not self._is_new(source, number):
            return
        repair = self._repair_class(self._versioning, lambda replica, siblings: self._repair(replica, key, siblings))

        def enough(answers: list[FetchResponse]) -> None:
            for answer in answers:
                repair.hear(answer)
            values = tuple(sibling.value for sibling in repair.merged)
            self._respond(source, SiblingsResponse(number, None, values, self._parts.context(repair.merged)))
            repair.repair()

        def late(answer: FetchResponse) -> None:
            repair.hear(answer)
            repair.repair()

        def fail() -> None:
            self._respond(source, SiblingsResponse(number, NO_QUORUM))

        replicas = self._replicas_of(key)
        callback = QuorumAnswers(len(replicas), self._settings.read_quorum, enough, fail, late)
        self._requests.ask(replicas, lambda correlation_id: FetchRequest(correlation_id, key), callback)

    def _handle_put(self, source: NodeId, request: PutValue) -> None:
        """Take a write as its first replica. A repetition by the network is ignored (see `leaderless_node`)."""
        if not self._is_new(source, request.request_number):
            return
        before = len(self.store.get(request.key))
        update = Update(request.context, source, request.update)
        try:
            self.store.put(request.key, request.value, update, self.ports.clock.wall_us())
        except ObsoleteVersion:
            self.ports.trace.sometimes("obsolete-write-refused")
            self.ports.trace.emit(WriteRefused(request.key, source, request.update))
            self._respond(source, SiblingsResponse(request.request_number, OBSOLETE_VERSION))
            return
        self.ports.trace.emit(WriteTaken(request.key, source, request.update))
        self._report(request.key, before)
        self._replicate(source, request)

    def _replicate(self, source: NodeId, request: PutValue) -> None:
        replicas = self._replicas_of(request.key)

        def conclude(number: int, result: WriteResult) -> None:
            if result is not WriteResult.SUCCESS:
                self.ports.trace.sometimes("not-enough-copies")
            self._respond(source, SiblingsResponse(number, _ERROR_OF[result]))

        callback = WriteQuorumCallback(len(replicas), request.request_number, conclude, self._settings.write_quorum)
        siblings = self.store.get(request.key)
        self._requests.ask(replicas, lambda number: ReplicateRequest(number, request.key, siblings), callback)

    def _respond(self, source: NodeId, response: SiblingsResponse) -> None:
        self._answer(source, response.request_number, response)

    def _handle_fetch(self, source: NodeId, request: FetchRequest) -> None:
        siblings = self.store.get(request.key)
        self._requests.send(source, FetchResponse(request.correlation_id, self.ports.node_id, siblings))

    def _handle_replicate(self, source: NodeId, request: ReplicateRequest) -> None:
        if source != self.ports.node_id:
            self.ports.trace.emit(SiblingsReceived(request.key, request.siblings))
        before = len(self.store.get(request.key))
        if self.store.merge(request.key, request.siblings):
            self._report(request.key, before)
        self._requests.send(source, ReplicateResponse(request.correlation_id))

    def _repair(self, replica: NodeId, key: str, siblings: Siblings) -> None:
        self.ports.trace.sometimes("read-repaired")
        self._requests.ask((replica,), lambda number: ReplicateRequest(number, key, siblings), _REPAIR_SENT)

    def _report(self, key: str, before: int) -> None:
        siblings = self.store.get(key)
        self.ports.trace.emit(SiblingsStored(key, siblings))
        if len(siblings) > 1:
            self.ports.trace.sometimes("siblings-kept")
        elif before > 1:
            self.ports.trace.sometimes("siblings-resolved")


_REPAIR_SENT = _RepairSent()
_ERROR_OF = {WriteResult.SUCCESS: None, WriteResult.UNKNOWN: NOT_ENOUGH_COPIES}
