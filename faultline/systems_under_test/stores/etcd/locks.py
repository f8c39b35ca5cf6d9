"""Locks in etcd: the key of a lease, and the resource that it guards.

A lock is acquired by one transaction that makes its key on condition that it does not exist, as etcd's documentation
describes (`leases`). etcd's own service, `/v3/lock/lock`, waits in a queue instead of trying once, so it is not used;
its key depends on a lease in the same way. The **fencing token** is the revision at which the key was made: etcd counts
all changes in one order, so tokens grow from owner to owner.

**With fencing** a guarded write is one transaction on condition that the lock's key is still the one of that revision:
if it is gone, or belongs to another owner by now, etcd refuses the write. **Without** fencing the write goes in
unconditionally, as from clients that take a lock for a promise about other keys.

Sources: Kleppmann, "How to do distributed locking" (2016); Jepsen, "etcd 3.4.3" (2020), on locks.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.systems_under_test.patterns.cluster_management.lease import STALE_TOKEN
from faultline.systems_under_test.stores.etcd.gateway import ask, encoded, packed
from faultline.systems_under_test.stores.etcd.leases import Lease
from faultline.systems_under_test.stores.etcd.watches import WatchingClient
from faultline.systems_under_test.stores.lock_keeping import KeptLock
from faultline.systems_under_test.stores.lock_owner import lock_outcomes

__all__ = ["EtcdLocks"]


class EtcdLocks(WatchingClient):
    """The `LockingClient` of one client process, with all functions of clients of etcd."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        serializable: bool,
        timeout_s: float,
        lease_ttl_s: int,
        resumes_at_now: bool,
        is_fenced: bool,
    ) -> None:
        super().__init__(
            address_of,
            members,
            node,
            serializable=serializable,
            timeout_s=timeout_s,
            lease_ttl_s=lease_ttl_s,
            resumes_at_now=resumes_at_now,
        )
        self._is_fenced = is_fenced

    def perform(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        """Write to the resource of a lock, give a lock back, or perform any other operation."""
        if operation.f in ("guarded-write", "late-write"):
            lock, value = operation.value
            return self._write(connection, lock, value, node)
        if operation.f == "release":
            lock, _ = operation.value
            ask(connection, "/v3/lease/revoke", {"ID": str(lock.hook.number)})
            return ok(None, node)
        return super().perform(connection, operation, node)

    def _write(self, connection: http.client.HTTPConnection, lock: KeptLock[Lease], value: Any, node: str) -> Outcome:
        put = {"key": encoded(f"resources/{lock.name}"), "value": packed([lock.token, value])}
        if not self._is_fenced:
            return ok(_revision(ask(connection, "/v3/kv/put", put)), node)
        key = encoded(f"locks/{lock.name}")
        owned = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": str(lock.token)}
        answer = ask(connection, "/v3/kv/txn", {"compare": [owned], "success": [{"request_put": put}]})
        return ok(_revision(answer), node) if answer.get("succeeded") else lock_outcomes.outcome(STALE_TOKEN, node)


def _revision(answer: dict[str, Any]) -> int:
    """Return the revision of the store in this answer: that of the change which it reports."""
    return int(answer["header"]["revision"])
