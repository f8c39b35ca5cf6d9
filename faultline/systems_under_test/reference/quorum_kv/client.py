"""The client of `quorum-kv`: it remembers the context of its last read of each key, and writes with it.

A read returns all concurrent values, and the client keeps their context; its next write of the key carries the context
and so replaces those values and no others. A write leaves the context as it is: the version that the write got may
stand beside siblings the client has never seen, and would claim to know them.

With the option `conflicts` the application resolves the siblings it reads (VVC-R16): values are then sets, a read
returns one, and an `add` reads, resolves, adds its element and writes with the context of all siblings. The union loses
nothing.

A read is repeated at the next replica when one is silent. A write is not, because it may have been taken; so the client
first finds a replica that answers (as opening a connection would), in the order of the key's replicas, and sends the
write there once. A refusal as obsolete goes to the caller, and never to the next replica, where the same write would
only become a sibling (VVC-R8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.version_vector import EMPTY_VECTOR, VersionVector
from faultline.systems_under_test.reference.quorum_kv.messages import (
    GetSiblings,
    LocateRequest,
    LocateResponse,
    PutValue,
    SiblingsResponse,
)
from faultline.systems_under_test.reference.quorum_kv.node import OBSOLETE_VERSION
from faultline.systems_under_test.reference.quorum_kv.options import KeyValueSettings, replicas_of
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation

__all__ = ["DEFINITE_ERRORS", "FUNCTIONS", "NOT_ENOUGH_NODES", "QuorumKeyValueClient"]

FUNCTIONS = ("read", "write", "add")
"""The operations that a client can perform."""

NOT_ENOUGH_NODES = "not-enough-nodes"
"""No replica of the key answered, so the write was never sent."""

DEFINITE_ERRORS = OutcomeRegistry((UNSUPPORTED, NOT_ENOUGH_NODES, OBSOLETE_VERSION))
"""The errors after which the operation certainly did not and will not happen."""


class QuorumKeyValueClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: KeyValueSettings) -> None:
        self._ports = ports
        self._members = members
        self._home = node
        self._settings = settings
        self._contexts: dict[str, VersionVector] = {}
        self._updates: dict[str, int] = {}
        self._number = 0
        self._key = ""
        self._operation: Operation | None = None
        self._written = False
        self._order: tuple[NodeId, ...] = ()
        self._attempt = 0
        self._open = OpenOperation(ports)

    def start(self) -> None:
        """Do nothing: a client has no session to open."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`: read, write (a value), or add (an element to a set, for clients that resolve)."""
        if operation.f not in FUNCTIONS or (operation.f == "add" and not self._settings.resolves):
            done(DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        self._operation, self._written, self._attempt = operation, False, 0
        self._key = operation.key if operation.key is not None else ""
        self._order = self._replicas_in_order()
        self._open.begin(done, self._settings.client_timeout_us)
        self._transmit()

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer; ignore a late one to an earlier attempt."""
        if not self._open or message.request_number != self._number:
            return
        if type(message) is LocateResponse:
            self._put(source, self._operation.value if self._operation is not None else None)
        elif type(message) is SiblingsResponse:
            self._handle_response(source, message)

    def _replicas_in_order(self) -> tuple[NodeId, ...]:
        """Return the replicas of the key, the primary first, or the client's own node when it may coordinate."""
        replicas = replicas_of(self._key, self._members, self._settings.replicas)
        if self._settings.coordinator == "primary" or self._home not in replicas:
            return replicas
        first = replicas.index(self._home)
        return replicas[first:] + replicas[:first]

    @property
    def _target(self) -> NodeId:
        return self._order[self._attempt % len(self._order)]

    def _transmit(self) -> None:
        assert self._operation is not None
        self._number += 1
        self._open.expect(self._settings.request_timeout_us, self._handle_silence)
        if self._operation.f == "write":
            self._ports.network.send(self._target, LocateRequest(self._number))
        else:
            self._ports.network.send(self._target, GetSiblings(self._number, self._key))

    def _put(self, target: NodeId, value: Any) -> None:
        """Send the write, once, to a replica that has just answered."""
        assert self._operation is not None
        self._written = True
        self._number += 1
        self._updates[self._key] = update = self._updates.get(self._key, 0) + 1
        self._open.expect(self._settings.client_timeout_us, self._handle_silence)
        context = self._contexts.get(self._key, EMPTY_VECTOR)
        message = PutValue(self._number, self._key, value, context, update)
        self._ports.network.send(target, message)

    def _handle_silence(self) -> None:
        if self._open.is_overdue:
            self._give_up()
        else:
            self._turn_to_next_replica()

    def _turn_to_next_replica(self) -> None:
        self._ports.trace.sometimes("next-replica-asked")
        self._attempt += 1
        self._transmit()

    def _give_up(self) -> None:
        assert self._operation is not None
        never_sent = self._operation.f != "read" and not self._written
        self._open.end(DEFINITE_ERRORS.outcome(NOT_ENOUGH_NODES if never_sent else TIMEOUT))

    def _handle_response(self, source: NodeId, response: SiblingsResponse) -> None:
        if self._written and response.error is not None:
            self._handle_refusal(source, response.error)
        elif self._written:
            self._open.end(ok(None, source))
        elif response.error is not None:
            self._turn_to_next_replica()
        else:
            self._contexts[self._key] = response.context
            self._handle_siblings(source, response.values)

    def _handle_siblings(self, source: NodeId, values: tuple[Any, ...]) -> None:
        """End a read with the resolved siblings; of an add, write them with its element."""
        assert self._operation is not None
        seen = self._settings.resolver(values)
        if self._operation.f == "add":
            self._put(source, [*seen, self._operation.value])
        else:
            self._open.end(ok(seen, source))

    def _handle_refusal(self, source: NodeId, error: str) -> None:
        """End a write that was answered with an error: at another replica it would become a sibling.

        An add that was refused as obsolete has read too early, and reads again (VVC-R21).
        """
        if error == OBSOLETE_VERSION and self._operation is not None and self._operation.f == "add":
            self._written = False
            self._transmit()
            return
        self._open.end(DEFINITE_ERRORS.outcome(error, source))
