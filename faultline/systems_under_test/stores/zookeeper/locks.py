"""Locks in ZooKeeper: an ephemeral node, and the resource that it guards.

A lock is acquired by making its node, which fails when the node exists, and the node is deleted with its session.
ZooKeeper's own recipe waits in a queue of sequential nodes instead of trying once, but depends on a session in the same
way. The **fencing token** is the node's `czxid`, the number of the transaction that made it: ZooKeeper numbers all
changes in one order.

A member that is cut off answers its clients for as long as it believes in its leader, which is five ticks
(`syncLimit`), while the leader counts from when it last heard of them. So an owner leaves two fifths of its session's
time unused, which covers five ticks of the fifteen that a session lives by default.

The guarded resource is another node, written over another session, as if it were in another store: otherwise ZooKeeper
would be a fence by itself, since it takes no writes of a session that has ended. **With fencing** a guarded write reads
that node, and then is one transaction, a `multi`: the lock exists, and the node still has the version that was read,
under which no newer token had been written. **Without** fencing the write goes in unconditionally.

Sources: ZooKeeper's documentation, "Recipes and Solutions"; Kleppmann, "How to do distributed locking" (2016).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.systems_under_test.patterns.cluster_management.lease import DUPLICATE_LEASE, STALE_TOKEN
from faultline.systems_under_test.stores.lock_keeping import KeptLock, LockKeeping
from faultline.systems_under_test.stores.lock_owner import lock_outcomes
from faultline.systems_under_test.stores.zookeeper import client as client_module
from faultline.systems_under_test.stores.zookeeper.client import BAD_VERSION, ZooKeeperClient, outcomes
from faultline.systems_under_test.stores.zookeeper.lock_session import LockSession
from faultline.systems_under_test.stores.zookeeper.tree import ROOT, ReadMode, Tree

__all__ = ["ZooKeeperLocks"]

_TRUSTED_SHARE = 0.6
_ATTEMPTS = 4
"""The attempts of a guarded write that lost against another to the same node."""


class ZooKeeperLocks(ZooKeeperClient):
    """The `LockingClient` of one client process; each lock has a session of its own, of `session_s`."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        read_mode: ReadMode,
        timeout_s: float,
        session_s: float,
        is_fenced: bool,
    ) -> None:
        super().__init__(address_of, members, node, read_mode=read_mode, timeout_s=timeout_s, session_s=session_s)
        self._is_fenced = is_fenced
        self.keeping = LockKeeping[LockSession](_TRUSTED_SHARE)

    def perform(self, connection: KazooClient, operation: Operation, node: str) -> Outcome:
        """Acquire, write, release, or perform any other operation."""
        if operation.f == "acquire":
            return self._acquire(connection, str(operation.key), node)
        if operation.f == "release":
            lock, _ = operation.value
            lock.hook.release()
            lock.hook.end()
            return ok(None, node)
        if operation.f in ("guarded-write", "late-write"):
            resource = _Resource(connection, time.monotonic() + self._timeout_s)
            write = resource.write_fenced if self._is_fenced else resource.write
            lock, value = operation.value
            return write(lock, value, node)
        return super().perform(connection, operation, node)

    def _acquire(self, connection: KazooClient, name: str, node: str) -> Outcome:
        """Acquire the lock; most clients find it taken, so that is checked before a session is made."""
        if connection.exists_async(_lock_path(name)).get(timeout=self._timeout_s) is not None:
            return lock_outcomes.outcome(DUPLICATE_LEASE, node)
        address = f"{self._address_of(node)}:{client_module.CLIENT_PORT}"
        session = LockSession(address, _lock_path(name), self._session_s, self._timeout_s)
        sent_us = self.keeping.clock.monotonic_us()
        try:
            session.open()
            token = session.acquire()
        except NodeExistsError:
            session.end()
            return lock_outcomes.outcome(DUPLICATE_LEASE, node)
        except self.failures:
            # Whether the node was made is unknown, so the session must end without a word, as that of an owner that
            # crashed.
            session.let_go()
            raise
        self.keeping.granted(name, token, session, sent_us, self._session_s)
        return ok({"token": token}, node)


class _Resource(Tree):
    """The resource of a lock: a node with the token of its last writer; a write answers its transaction's number."""

    def write(self, lock: KeptLock[LockSession], value: Any, node: str) -> Outcome:
        """Write without a look at the lock or its token."""
        path = _resource_path(lock.name)
        content = _content(lock, value)
        try:
            stat = self._wait(self._session.set_async(path, content))
        except NoNodeError:
            self.make(f"{lock.name}-resource")
            stat = self._wait(self._session.set_async(path, content))
        return ok(int(stat.mzxid), node)

    def write_fenced(self, lock: KeptLock[LockSession], value: Any, node: str) -> Outcome:
        """Write if no newer token has written and the lock exists; a write that lost every attempt has not happened."""
        for _ in range(_ATTEMPTS):
            found = self.find_or_make(f"{lock.name}-resource")
            if found.value is not None and found.value[0] > lock.token:
                return lock_outcomes.outcome(STALE_TOKEN, node)
            transaction = self._session.transaction()
            transaction.check(_lock_path(lock.name), -1)
            transaction.set_data(_resource_path(lock.name), _content(lock, value), found.version)
            exists, stat = self._wait(transaction.commit_async())
            if isinstance(exists, NoNodeError):
                return lock_outcomes.outcome(STALE_TOKEN, node)
            if not isinstance(stat, Exception):
                return ok(int(stat.mzxid), node)
        return outcomes.outcome(BAD_VERSION, node)


def _content(lock: KeptLock[LockSession], value: Any) -> bytes:
    return msgspec.json.encode([lock.token, value])


def _lock_path(name: str) -> str:
    return f"{ROOT}/{name}"


def _resource_path(name: str) -> str:
    return f"{ROOT}/{name}-resource"
