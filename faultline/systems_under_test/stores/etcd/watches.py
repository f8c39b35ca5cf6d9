"""A client that changes keys below paths, lists them, and watches them.

| function | does |
|---|---|
| `put`, `delete` | change a key; the answer is the revision, none when the key did not exist |
| `attach` | puts a key on a lease that this client holds; without one no request is sent (`not-held`) |
| `list` | reads the keys at and below a path: `{"index": revision, "values": {…}}` |
| `watch` | begins to watch a path, in the place of an earlier watch on it |
| `drain` | takes the events since the last drain (`watch_stream`) |

A lease that ends deletes all its keys in one revision.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from typing import ClassVar

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.patterns.cluster_management.lease import NOT_HELD
from faultline.systems_under_test.stores.etcd import leases
from faultline.systems_under_test.stores.etcd.gateway import ask, encoded, packed
from faultline.systems_under_test.stores.etcd.leases import LeasingClient
from faultline.systems_under_test.stores.etcd.watch_stream import WatchStream, content_of, range_of
from faultline.systems_under_test.stores.watch_keeping import WatchKeeping

__all__ = ["PROGRESS_S", "WATCH_FUNCTIONS", "WatchingClient"]

WATCH_FUNCTIONS = ("put", "delete", "attach", "list", "watch", "drain")
PROGRESS_S = 0.2
"""The time without events after which etcd reports the revision up to which it told all of them."""

_SILENCE_S = 4 * PROGRESS_S
"""The silence after which a stream counts as dead."""


class WatchingClient(LeasingClient):
    """A client with watches of its own, each a thread."""

    outcomes: ClassVar[OutcomeRegistry] = OutcomeRegistry([*leases.outcomes.definite, NOT_HELD])
    reads: ClassVar[frozenset[str]] = frozenset({"read", "list"})

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
    ) -> None:
        super().__init__(
            address_of, members, node, serializable=serializable, timeout_s=timeout_s, lease_ttl_s=lease_ttl_s
        )
        self._resumes_at_now = resumes_at_now
        self._watches = WatchKeeping(self._watch)

    def invoke(self, operation: Operation) -> Outcome:
        """Watch and drain without waiting for the store; perform any other operation as usual."""
        return self._watches.serve(operation) or super().invoke(operation)

    def perform(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        """Change a key, list a path, or perform any other operation."""
        f, key = operation.f, str(operation.key)
        if f == "put":
            return ok(_put(connection, key, operation.value), node)
        if f == "delete":
            answer = ask(connection, "/v3/kv/deleterange", {"key": encoded(key)})
            return ok(int(answer["header"]["revision"]) if "deleted" in answer else None, node)
        if f == "attach":
            return self._attach(connection, operation, node)
        if f == "list":
            body = {**range_of(key), "serializable": self._serializable}
            revision, values = content_of(ask(connection, "/v3/kv/range", body), key)
            return ok({"index": revision, "values": values}, node)
        return super().perform(connection, operation, node)

    def close(self) -> None:
        """End all watches, and hang up."""
        self._watches.close()
        super().close()

    def _watch(self, path: str) -> WatchStream:
        now = self._resumes_at_now
        return WatchStream(path, self.connect_within, self._node, silence_s=_SILENCE_S, resumes_at_now=now)

    def _attach(self, connection: http.client.HTTPConnection, operation: Operation, node: str) -> Outcome:
        lease = self.keeping.held(operation.value["lease"])
        if lease is None:
            return self.outcomes.outcome(NOT_HELD, node)
        return ok(_put(connection, str(operation.key), operation.value["value"], lease.hook.number), node)


def _put(connection: http.client.HTTPConnection, key: str, value: object, lease: int = 0) -> int:
    """Write, and return the revision."""
    body = {"key": encoded(key), "value": packed(value), "lease": str(lease)}
    return int(ask(connection, "/v3/kv/put", body)["header"]["revision"])
