"""The owner of locks that end by themselves: the decisions of a client before it asks any store.

| function | does |
|---|---|
| `acquire` | tries once to get the lock that is named by the key, and keeps it alive from then on; answers its token |
| `check` | asks the owner itself whether it may still act; sends nothing |
| `guarded-write` | writes to the resource of the same name, if the owner may still act |
| `late-write` | decides to write, sleeps for longer than the lock lives, and only then writes |
| `release` | stops acting, then gives the lock back |
| `abandon` | stops refreshing, as an owner that crashed does |

An owner knows from its own monotonic clock whether it may still act. It counts from the moment at which it *sent* the
request that was granted or refreshed, and leaves a part of the time to live unused. It also stops acting when the
session or the entry that the lock depends on is gone, as far as it knows. It never takes up a lock again that it has
let go, without another `acquire`. A client that is closed counts as crashed: it stops refreshing, and the store
notices.

**Outcomes.** A refusal by the owner itself is definite, since no request was sent: `already-held`, `not-held`, and
`lease-over` for a lock that was granted so late that it must not be used. So is a refusal of the store after it has
looked: `duplicate-lease` for a lock that has an owner, and `stale-token` from a resource that refuses a former owner.

Sources: Gray and Cheriton, "Leases" (SOSP 1989); Kleppmann, "How to do distributed locking" (2016).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, OutcomeRegistry, ok
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.cluster_management.lease import (
    ALREADY_HELD,
    DUPLICATE_LEASE,
    LEASE_OVER,
    NOT_HELD,
    STALE_TOKEN,
)

__all__ = ["FENCING", "LOCK_FUNCTIONS", "HeldLock", "HeldLocks", "LockOwner", "LockingClient", "lock_outcomes"]

LOCK_FUNCTIONS = ("acquire", "check", "guarded-write", "late-write", "release", "abandon")
"""The functions that the workload `locks` uses."""

FENCING = OptionDescription(
    default="on", choices=("on", "off"), summary="whether what a lock guards refuses writes of former owners"
)
"""The option of every store that has locks."""

lock_outcomes = OutcomeRegistry([ALREADY_HELD, DUPLICATE_LEASE, LEASE_OVER, NOT_HELD, STALE_TOKEN])
"""The errors after which an operation on a lock certainly did not happen."""

_NAP_IN_LIVES = 1.5
"""The sleep of a late writer, in times to live of its lock: stores end locks late, never early."""


class HeldLock(Protocol):
    """A lock that a client has; each store has its own kind of session or entry behind it."""

    @property
    def name(self) -> str:
        """The key under which it was acquired."""

    @property
    def token(self) -> int:
        """The fencing token: greater than those of all earlier owners."""

    @property
    def ttl_s(self) -> float:
        """The time for which it lives without a refresh."""


class HeldLocks(Protocol):
    """The locks that a client has; no method here sends a request."""

    @property
    def has_some(self) -> bool:
        """True while there is a lock that was granted and not dropped."""

    def held(self, name: str) -> HeldLock | None:
        """Return the lock of that name, if this client may still act as its owner."""

    def drop(self, name: str) -> None:
        """Refresh it no more, so that it ends by itself, without a message to the store."""

    def close(self) -> None:
        """Drop all of the locks."""


class LockingClient(Protocol):
    """A `StoreClient` that can get locks, and keeps what it was granted in `keeping`.

    It serves `acquire`, which answers `{"token": n}`, as the workload wants it; `guarded-write`, `late-write` and
    `release` have `(lock, value)` as their value, and a write answers the index of its place among all changes. Whether
    the client may act is decided before it is called.
    """

    @property
    def keeping(self) -> HeldLocks:
        """The locks of this client."""

    @property
    def is_connected(self) -> bool:
        """True while there is a connection that the next operation would use."""

    def connects(self) -> bool:
        """Try to connect once; return whether there is a connection now."""

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and wait for its outcome."""

    def close(self) -> None:
        """Close the connection for good."""


class LockOwner:
    """One client process: it decides itself about the locks that it holds, and leaves the rest to `client`."""

    def __init__(self, client: LockingClient, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._locks = client.keeping
        self._sleep = sleep
        self._owned = {
            "check": self._check,
            "guarded-write": self._write,
            "late-write": self._write_late,
            "release": self._release,
        }

    @property
    def is_connected(self) -> bool:
        """True if the next operation need not wait for a connection: the owner of a lock acts on it without one."""
        return self._locks.has_some or self._client.is_connected

    def connects(self) -> bool:
        """Try to connect once; return whether there is a connection now."""
        return self._client.connects()

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and wait for its outcome; a `late-write` sleeps first, and takes that much longer."""
        name = operation.key or ""
        if operation.f == "acquire":
            return self._acquire(operation, name)
        if operation.f == "abandon":
            self._locks.drop(name)
            return ok()
        act = self._owned.get(operation.f)
        if act is None:
            return self._client.invoke(operation)
        lock = self._locks.held(name)
        return lock_outcomes.outcome(NOT_HELD) if lock is None else act(operation, lock)

    def close(self) -> None:
        """Crash as far as locks are concerned, and hang up."""
        self._locks.close()
        self._client.close()

    def _acquire(self, operation: Operation, name: str) -> Outcome:
        """Acquire the lock; one that was granted too late for use is not held."""
        if self._locks.held(name) is not None:
            return lock_outcomes.outcome(ALREADY_HELD)
        outcome = self._client.invoke(operation)
        # The store has granted it, but the owner's own clock says that it may be over by now; the store lets it run
        # out.
        if outcome.kind == "ok" and self._locks.held(name) is None:
            return lock_outcomes.outcome(LEASE_OVER, outcome.node)
        return outcome

    def _check(self, _operation: Operation, lock: HeldLock) -> Outcome:
        return ok({"token": lock.token})

    def _write(self, operation: Operation, lock: HeldLock) -> Outcome:
        outcome = self._client.invoke(_about(operation, lock))
        return ok({"token": lock.token, "index": outcome.value}, outcome.node) if outcome.kind == "ok" else outcome

    def _write_late(self, operation: Operation, lock: HeldLock) -> Outcome:
        self._locks.drop(lock.name)
        # Longer than the lock lives, so that another owner can have it when the write is sent: only a fence stops it
        # then.
        self._sleep(_NAP_IN_LIVES * lock.ttl_s)
        return self._write(operation, lock)

    def _release(self, operation: Operation, lock: HeldLock) -> Outcome:
        """Release the lock; no act of the owner comes after the request, whatever its outcome."""
        outcome = self._client.invoke(_about(operation, lock))
        self._locks.drop(lock.name)
        return outcome


def _about(operation: Operation, lock: HeldLock) -> Operation:
    """Return the same operation for the client, which must know the lock."""
    return msgspec.structs.replace(operation, value=(lock, operation.value))
