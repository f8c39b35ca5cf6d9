"""The client of a Raft key-value store with leases and watches.

| function | does |
|---|---|
| `acquire` | registers the lease that is named by the key, and keeps it alive from then on; answers its token |
| `check` | asks the client itself whether it may still act as the owner; sends nothing |
| `guarded-write` | writes to the resource of the same name under the token, if it may still act as the owner |
| `late-write` | falls asleep between the decision to write and the writing, for longer than its lease lives |
| `release` | stops acting as the owner, then revokes the lease |
| `abandon` | stops refreshing, as an owner that crashed does |
| `attach` | writes a key that lives as long as the lease `value["lease"]`, if there is one |
| `put`, `delete` | change a key; the answer is the index of the entry, the number of the event |
| `list` | reads a path: `{"index": …, "values": {…}}`, linearizable |
| `watch`, `drain` | begin to watch a path; take what came since (see `watching_client`) |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.lease import (
    ALREADY_HELD,
    DUPLICATE_LEASE,
    LEASE_OVER,
    NO_LEASE,
    NOT_HELD,
    STALE_TOKEN,
    HeldLease,
)
from faultline.systems_under_test.reference.leases_and_watches.lease_holding import LeaseHolding
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    WatchBatch,
    WatchRefused,
    WatchState,
)
from faultline.systems_under_test.reference.leases_and_watches.settings import ServicedSettings
from faultline.systems_under_test.reference.leases_and_watches.watching_client import ClientWatches
from faultline.systems_under_test.reference.raft.client import DEFINITE_ERRORS, KeyValueClient
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.key_commands import (
    Command,
    DeleteKey,
    GuardedWrite,
    ListValues,
    RegisterLease,
    RevokeLease,
    SetValue,
    SetWithLease,
)

__all__ = ["SERVICE_FUNCTIONS", "ServicedClient"]

NOT_WATCHING = "not-watching"

SERVICE_ERRORS = OutcomeRegistry(
    (
        *DEFINITE_ERRORS.definite,
        ALREADY_HELD,
        DUPLICATE_LEASE,
        LEASE_OVER,
        NOT_HELD,
        NOT_WATCHING,
        NO_LEASE,
        STALE_TOKEN,
    )
)
"""The errors after which an operation certainly did not and will not happen, in the sense of `ServicedClient`."""

SERVICE_FUNCTIONS = (
    "acquire",
    "check",
    "guarded-write",
    "late-write",
    "release",
    "abandon",
    "attach",
    "put",
    "delete",
    "list",
    "watch",
    "drain",
)
"""The operations of a client with leases and watches."""

_OF_WATCHES = (WatchBatch, WatchState, WatchRefused)


class ServicedClient(KeyValueClient):
    """One logical client, with the leases it holds and the watches it has set.

    `acquire` that fails with `duplicate-lease` means that this client does not hold the lease and never will by this
    request: a copy of the request on its way may yet be granted, without an owner, until its time is over.
    """

    holding_type: type[LeaseHolding] = LeaseHolding
    watches_type: type[ClientWatches] = ClientWatches

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: ServicedSettings) -> None:
        super().__init__(ports, members, node, settings)
        self._lease_ttl_us = settings.service.lease_ttl_us
        self.holding = self.holding_type(ports, members, node, settings.service)
        self.watches = self.watches_type(ports, members, node, settings.service)
        self._served: dict[str, Callable[[Operation, Callable[[Outcome], None]], None]] = {
            "acquire": self._acquire,
            "check": self._check,
            "guarded-write": self._guarded_write,
            "late-write": self._late_write,
            "release": self._release,
            "abandon": self._abandon,
            "attach": self._attach,
            "put": lambda operation, done: self._send(operation, done, SetValue(_key(operation), operation.value)),
            "delete": lambda operation, done: self._send(operation, done, DeleteKey(_key(operation))),
            "list": lambda operation, done: self._send(operation, done, ListValues(_key(operation))),
            "watch": self._watch,
            "drain": self._drain,
        }

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of `SERVICE_FUNCTIONS` or of the usual ones."""
        serve = self._served.get(operation.f)
        if serve is None:
            super().invoke(operation, done)
        else:
            serve(operation, done)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer, or news about leases and watches."""
        kind = type(message)
        if kind is LeaseRefreshed:
            self.holding.receive(source, message)
        elif kind in _OF_WATCHES:
            self.watches.receive(source, message)
        else:
            super().receive(source, message)

    # Leases.

    def _acquire(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        if self.holding.held(_key(operation)) is not None:
            done(SERVICE_ERRORS.outcome(ALREADY_HELD))
            return
        self._send(operation, done, RegisterLease(_key(operation), self._lease_ttl_us))

    def _check(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        held = self.holding.held(_key(operation))
        done(SERVICE_ERRORS.outcome(NOT_HELD) if held is None else ok({"token": held.token}))

    def _guarded_write(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        held = self.holding.held(_key(operation))
        if held is None:
            done(SERVICE_ERRORS.outcome(NOT_HELD))
        else:
            key = f"resource/{_key(operation)}"
            self._send(operation, done, GuardedWrite(key, held.token, operation.value), held)

    def _late_write(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        held = self.holding.held(_key(operation))
        if held is None:
            done(SERVICE_ERRORS.outcome(NOT_HELD))
            return
        self.holding.drop(held.name)
        command = GuardedWrite(f"resource/{held.name}", held.token, operation.value)
        nap_us = self._lease_ttl_us * 3 // 2
        self._ports.timers.after(nap_us, lambda: self._send(operation, done, command, held))

    def _release(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        held = self.holding.held(_key(operation))
        if held is None:
            done(SERVICE_ERRORS.outcome(NOT_HELD))
            return
        self.holding.drop(held.name)
        self._send(operation, done, RevokeLease(held.name, held.token))

    def _abandon(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        self.holding.drop(_key(operation))
        done(ok())

    def _attach(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        command = SetWithLease(_key(operation), operation.value["value"], operation.value["lease"])
        self._send(operation, done, command)

    # Watches.

    def _watch(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        done(ok({"number": self.watches.watch(_key(operation)).number}))

    def _drain(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        watch = self.watches.get(_key(operation))
        if watch is None:
            done(SERVICE_ERRORS.outcome(NOT_WATCHING))
        else:
            done(ok({"number": watch.number, "items": self.watches.drain(watch)}))

    # Commands.

    def _send(
        self,
        operation: Operation,
        done: Callable[[Outcome], None],
        command: Command,
        held: HeldLease | None = None,
    ) -> None:
        """Send `command` like any other; when it was executed, remember what it granted."""
        sent_us = self._ports.clock.monotonic_us()

        def finished(outcome: Outcome) -> None:
            if type(command) is RegisterLease and outcome.kind == "ok":
                outcome = self._granted(command.key, outcome, sent_us)
            if held is not None and outcome.kind == "ok":
                outcome = ok({"token": held.token, "index": outcome.value}, outcome.node)
            if outcome.kind == "info" and outcome.error in SERVICE_ERRORS.definite:
                outcome = SERVICE_ERRORS.outcome(str(outcome.error), outcome.node)
            if outcome.error == STALE_TOKEN:
                self._ports.trace.sometimes("guarded-write-refused")
            done(outcome)

        self._begin(command, finished)

    def _granted(self, name: str, outcome: Outcome, sent_us: int) -> Outcome:
        """Hold the lease, unless the answer took so long that the lease may be over."""
        self.holding.granted(name, outcome.value, sent_us)
        if self.holding.held(name) is None:
            return SERVICE_ERRORS.outcome(LEASE_OVER, outcome.node)
        return ok({"token": outcome.value}, outcome.node)

    def _complete(self, source: NodeId, response: ClientResponse) -> None:
        self.holding.turn_to(source)
        super()._complete(source, response)


def _key(operation: Operation) -> str:
    return operation.key or ""
