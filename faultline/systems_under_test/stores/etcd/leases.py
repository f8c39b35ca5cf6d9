"""Leases of etcd under a name: taken by one client at a time, kept alive by a thread, and gone when nobody does.

A lease of etcd has a number and a time to live; keys that are attached to it are deleted with it, all in one revision.
So that a name has one owner, `acquire` grants a lease and creates the key `locks/NAME` on it, on condition that there
is none; the revision of that key is the token, which only grows. A failed grant leaves at most a lease without any key
behind, which nobody sees and which ends by itself: that is definite.

`abandon` stops refreshing, as an owner that crashed does. The owner counts from when it *sent* a request, never from
the answer, and uses three quarters of the time, so by its own clock a lease is over before it is by etcd's.

Source: etcd's documentation, "Lease" and "Concurrency"; Gray and Cheriton, "Leases" (SOSP 1989).
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.patterns.cluster_management.lease import ALREADY_HELD, DUPLICATE_LEASE
from faultline.systems_under_test.stores.etcd import gateway
from faultline.systems_under_test.stores.etcd.gateway import Connect, EtcdClient, EtcdRefusal, ask, encoded

__all__ = ["LEASE_FUNCTIONS", "HeldLease", "LeaseHolding", "LeasingClient", "outcomes"]

LEASE_FUNCTIONS = ("acquire", "abandon")
NOT_GRANTED = "lease-not-granted"
outcomes = OutcomeRegistry([*gateway.outcomes.definite, ALREADY_HELD, DUPLICATE_LEASE, NOT_GRANTED])
"""The errors after which a change certainly did not happen."""

_REFRESHES_PER_LIFE = 4
_TRUSTED_SHARE = 0.75
"""How much of its lease's time an owner uses: clocks run differently, and what it does then takes a while itself."""


@dataclass(slots=True)
class HeldLease:
    """A lease that this client took: etcd's `number` for it, its `token`, and how long it lives unrefreshed.

    `sent_s`, of `time.monotonic`, is when the newest request was sent that etcd granted.
    """

    name: str
    number: int
    token: int
    ttl_s: int
    sent_s: float

    @property
    def is_valid(self) -> bool:
        """May its owner still act as such?"""
        return time.monotonic() < self.sent_s + _TRUSTED_SHARE * self.ttl_s


class LeaseHolding:
    """The leases of one client, refreshed by a thread that asks one member after the other until one answers."""

    def __init__(self, connect: Connect, first_member: int, ttl_s: int) -> None:
        self.ttl_s = ttl_s
        self._connect = connect
        self._member = first_member
        self._connection: http.client.HTTPConnection | None = None
        self._held: dict[str, HeldLease] = {}
        self._is_over = threading.Event()
        self._refreshing: threading.Thread | None = None

    def granted(self, lease: HeldLease) -> None:
        """The lease is ours: keep it alive from now on."""
        self._held[lease.name] = lease
        if self._refreshing is None:
            self._refreshing = threading.Thread(target=self._refresh_all, name="etcd-leases", daemon=True)
            self._refreshing.start()

    def held(self, name: str) -> HeldLease | None:
        """The lease of that name, if this client may still act as its owner."""
        lease = self._held.get(name)
        if lease is not None and not lease.is_valid:
            self.drop(name)
            return None
        return lease

    def drop(self, name: str) -> None:
        """Act as the owner no longer, and refresh no longer."""
        self._held.pop(name, None)

    def close(self) -> None:
        """Refresh nothing any more: what is held ends when its time is over."""
        self._held.clear()
        self._is_over.set()
        if self._refreshing is not None:
            self._refreshing.join()

    def _refresh_all(self) -> None:
        while not self._is_over.wait(self.ttl_s / _REFRESHES_PER_LIFE):
            for name in list(self._held):
                lease = self.held(name)
                if lease is not None:
                    self._refresh(lease)
        self._hang_up()

    def _refresh(self, lease: HeldLease) -> None:
        try:
            if self._connection is None:
                self._connection = self._connect(self._member, self.ttl_s / _REFRESHES_PER_LIFE)
            sent_s = time.monotonic()
            answer = ask(self._connection, "/v3/lease/keepalive", {"ID": str(lease.number)})
        except EtcdClient.failures:
            self._turn_to_next_member()
            return
        if "result" not in answer:
            self._turn_to_next_member()
        elif "TTL" in answer["result"]:
            lease.sent_s, lease.ttl_s = sent_s, int(answer["result"]["TTL"])
        else:
            self.drop(lease.name)

    def _turn_to_next_member(self) -> None:
        self._hang_up()
        self._member += 1

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class LeasingClient(EtcdClient):
    """A client that can hold leases; `lease_ttl_s` is how long one lives that is not refreshed, in whole seconds."""

    outcomes: ClassVar[OutcomeRegistry] = outcomes

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        serializable: bool,
        timeout_s: float,
        lease_ttl_s: int,
    ) -> None:
        super().__init__(address_of, members, node, serializable=serializable, timeout_s=timeout_s)
        self.holding = LeaseHolding(self.connect_to, self._node, lease_ttl_s)

    def invoke(self, operation: Operation) -> Outcome:
        """Abandon a lease without asking anybody; everything else as usual."""
        if operation.f == "abandon":
            self.holding.drop(str(operation.key))
            return ok()
        return super().invoke(operation)

    def perform(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        """Acquire a lease, or perform what others perform."""
        if operation.f == "acquire":
            return self._acquire(connection, str(operation.key), node)
        return super().perform(connection, operation, node)

    def close(self) -> None:
        """Hang up, and let the leases end."""
        self.holding.close()
        super().close()

    def _acquire(self, connection: http.client.HTTPConnection, name: str, node: str) -> Outcome:
        if self.holding.held(name) is not None:
            return outcomes.outcome(ALREADY_HELD, node)
        sent_s = time.monotonic()
        number, ttl_s = self._granted(connection)
        key = encoded(f"locks/{name}")
        compare = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        create = {"request_put": {"key": key, "value": encoded(name), "lease": str(number)}}
        answer = ask(connection, "/v3/kv/txn", {"compare": [compare], "success": [create]})
        if not answer.get("succeeded"):
            self._give_up(connection, number)
            return outcomes.outcome(DUPLICATE_LEASE, node)
        token = int(answer["header"]["revision"])
        self.holding.granted(HeldLease(name, number, token, ttl_s, sent_s))
        return ok({"token": token}, node)

    def _give_up(self, connection: http.client.HTTPConnection, number: int) -> None:
        """End a lease that has no key. Should that fail, it ends by itself, and the next operation connects anew."""
        try:
            ask(connection, "/v3/lease/revoke", {"ID": str(number)})
        except self.failures:
            self.disconnect()

    def _granted(self, connection: http.client.HTTPConnection) -> tuple[int, int]:
        """Number and seconds of a new lease, which may be more than were asked for: etcd has a least time."""
        try:
            answer = ask(connection, "/v3/lease/grant", {"TTL": str(self.holding.ttl_s)})
            return int(answer["ID"]), int(answer["TTL"])
        except self.failures as error:
            raise EtcdRefusal(NOT_GRANTED) from error
