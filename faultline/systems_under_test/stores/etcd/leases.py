"""Leases of etcd under a name: taken by one client at a time, kept alive by a thread, and gone without a refresh.

A lease of etcd has a number and a time to live; keys that are attached to it are deleted with it, all in one revision.
So that a name has one owner, `acquire` grants a lease and creates the key `locks/NAME` on it, on condition that it does
not exist; the revision of that key is the token, which only grows. A failed grant leaves at most a lease without any
key, which no client sees and which ends by itself: that is definite.

`abandon` stops refreshing, as an owner that crashed does. The owner counts from when it *sent* a request, never from
the answer, and uses three quarters of the time, so by its own clock a lease is over before it is by etcd's.

Source: etcd's documentation, "Lease" and "Concurrency"; Gray and Cheriton, "Leases" (SOSP 1989).
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from typing import ClassVar

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.patterns.cluster_management.lease import DUPLICATE_LEASE
from faultline.systems_under_test.stores.etcd import gateway
from faultline.systems_under_test.stores.etcd.gateway import EtcdClient, EtcdRefusal, ask, encoded
from faultline.systems_under_test.stores.lock_keeping import LockKeeping
from faultline.systems_under_test.stores.timed_hook import TimedHook

__all__ = ["Lease", "LeasingClient", "outcomes"]

NOT_GRANTED = "lease-not-granted"
outcomes = OutcomeRegistry([*gateway.outcomes.definite, DUPLICATE_LEASE, NOT_GRANTED])
"""The errors after which a change certainly did not happen."""

_ANSWERED_SHARE = 0.25
"""The share of its lease's time for which an owner waits for one answer: another member can still be asked then."""


class Lease(TimedHook[http.client.HTTPConnection]):
    """A lease that a client took, under etcd's `number` for it."""

    def __init__(self, client: EtcdClient, first_member: int, number: int, ttl_s: int) -> None:
        super().__init__(client, lambda member: client.connect_within(member, _ANSWERED_SHARE * ttl_s), first_member)
        self.number = number

    def prolong(self, connection: http.client.HTTPConnection) -> bool:
        """Refresh the lease; return whether etcd still knows it."""
        answer = ask(connection, "/v3/lease/keepalive", {"ID": str(self.number)})
        if "result" not in answer:
            raise EtcdRefusal("no-result")
        return "TTL" in answer["result"]


class LeasingClient(EtcdClient):
    """A client that can hold leases; an unrefreshed lease lives for `lease_ttl_s`, in whole seconds."""

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
        self.keeping = LockKeeping[Lease]()
        self._lease_ttl_s = lease_ttl_s

    def perform(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        """Acquire a lease, or perform any other operation."""
        if operation.f == "acquire":
            return self._acquire(connection, str(operation.key), node)
        return super().perform(connection, operation, node)

    def _acquire(self, connection: http.client.HTTPConnection, name: str, node: str) -> Outcome:
        sent_us = self.keeping.clock.monotonic_us()
        number, ttl_s = self._granted(connection)
        key = encoded(f"locks/{name}")
        compare = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        create = {"request_put": {"key": key, "value": encoded(name), "lease": str(number)}}
        answer = ask(connection, "/v3/kv/txn", {"compare": [compare], "success": [create]})
        if not answer.get("succeeded"):
            self._give_up(connection, number)
            return outcomes.outcome(DUPLICATE_LEASE, node)
        token = int(answer["header"]["revision"])
        self.keeping.granted(name, token, Lease(self, self._node, number, ttl_s), sent_us, ttl_s)
        return ok({"token": token}, node)

    def _give_up(self, connection: http.client.HTTPConnection, number: int) -> None:
        """End a lease without a key; if that fails, it ends by itself, and the next operation connects anew."""
        try:
            ask(connection, "/v3/lease/revoke", {"ID": str(number)})
        except self.failures:
            self.disconnect()

    def _granted(self, connection: http.client.HTTPConnection) -> tuple[int, int]:
        """Return number and seconds of a new lease; these may be more than requested, as etcd has a least time."""
        try:
            answer = ask(connection, "/v3/lease/grant", {"TTL": str(self._lease_ttl_s)})
            return int(answer["ID"]), int(answer["TTL"])
        except self.failures as error:
            # Definite even without an answer: a lease without a key owns no name.
            raise EtcdRefusal(NOT_GRANTED) from error
