"""Locks in Redis behind Sentinel: a key with an owner's name that times out, and the resource that it guards.

A lock is acquired by `SET key owner NX PX`, refreshed and given back by scripts that compare the owner (Redis
documentation, "Distributed locks", the pattern for a single instance). The **fencing token** is a counter that is
incremented in the same script. **With fencing** a script refuses a guarded write when a greater token has written
before; **without** fencing it just writes. The number of a write is counted beside its value.

All of this is replicated asynchronously. So a fail-over may forget locks, tokens and writes; and the owner at a deposed
master goes on refreshing its lock there. The documentation says so: the pattern has "a race condition" with
replication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, ok
from faultline.systems_under_test.patterns.cluster_management.lease import DUPLICATE_LEASE, STALE_TOKEN
from faultline.systems_under_test.stores.client import ForeignAnswer
from faultline.systems_under_test.stores.lock_keeping import KeptLock, LockKeeping
from faultline.systems_under_test.stores.lock_owner import lock_outcomes
from faultline.systems_under_test.stores.redis.commands import Waiting, outcomes
from faultline.systems_under_test.stores.redis.sentinel_client import SentinelClient, SentinelSession
from faultline.systems_under_test.stores.timed_hook import TimedHook

__all__ = ["SentinelLocks"]

_ACQUIRE = """
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCR', KEYS[2])
"""
_REFRESH = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""
_WRITE = """
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return redis.call('HINCRBY', KEYS[1], 'index', 1)
"""
_WRITE_FENCED = f"""
if tonumber(redis.call('HGET', KEYS[1], 'token') or 0) > tonumber(ARGV[1]) then return 0 end
{_WRITE}
"""


class SentinelLocks(SentinelClient):
    """The `LockingClient` of one client process; its locks live for `ttl_ms` without a refresh."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        reads_replicas: bool,
        waiting: Waiting,
        timeout_s: float,
        ttl_ms: int,
        is_fenced: bool,
        password: str = "",
    ) -> None:
        super().__init__(
            address_of,
            members,
            node,
            reads_replicas=reads_replicas,
            waiting=waiting,
            timeout_s=timeout_s,
            password=password,
        )
        self._ttl_ms = ttl_ms
        self._write_script = _WRITE_FENCED if is_fenced else _WRITE
        self.keeping = LockKeeping[_Entry]()
        self._acquired = 0

    def perform(self, connection: SentinelSession, operation: Operation, node: str) -> Outcome:
        """Acquire, write, release, or perform any other operation."""
        if operation.f == "acquire":
            return self._acquire(connection, operation)
        if operation.f == "release":
            lock, _ = operation.value
            connection.master.ask("EVAL", _RELEASE, 1, _lock_key(lock.name), lock.hook.owner)
            return self._replicated(connection, None)
        if operation.f in ("guarded-write", "late-write"):
            lock, value = operation.value
            return self._write(connection, lock, value)
        return super().perform(connection, operation, node)

    def _acquire(self, session: SentinelSession, operation: Operation) -> Outcome:
        name = str(operation.key)
        self._acquired += 1
        owner = f"{operation.process}.{self._acquired}"
        sent_us = self.keeping.clock.monotonic_us()
        keys = (_lock_key(name), f"locks/{name}/token")
        token = _number(session.master.ask("EVAL", _ACQUIRE, len(keys), *keys, owner, self._ttl_ms))
        if not token:
            return lock_outcomes.outcome(DUPLICATE_LEASE, session.master_name)
        outcome = self._replicated(session, {"token": token})
        if outcome.kind == "ok":
            entry = _Entry(self, name, owner, self._ttl_ms)
            self.keeping.granted(name, token, entry, sent_us, self._ttl_ms / 1000)
        return outcome

    def _write(self, session: SentinelSession, lock: KeptLock[_Entry], value: Any) -> Outcome:
        content = msgspec.json.encode(value).decode()
        place = f"resources/{lock.name}"
        index = _number(session.master.ask("EVAL", self._write_script, 1, place, lock.token, content))
        if not index:
            return lock_outcomes.outcome(STALE_TOKEN, session.master_name)
        return self._replicated(session, index)

    def _replicated(self, session: SentinelSession, result: Any) -> Outcome:
        missing = self._waiting.missing(session.master)
        return ok(result, session.master_name) if missing is None else outcomes.outcome(missing, session.master_name)


class _Entry(TimedHook[SentinelSession]):
    """A lock's key with its owner's name, refreshed at the first master that was found, for as long as that answers."""

    def __init__(self, client: SentinelLocks, name: str, owner: str, ttl_ms: int) -> None:
        super().__init__(client, client.connect_to, first_member=0)
        self.owner = owner
        self._name = name
        self._ttl_ms = ttl_ms

    def prolong(self, connection: SentinelSession) -> bool:
        """Refresh the entry; return whether it still belongs to this owner."""
        return bool(connection.master.ask("EVAL", _REFRESH, 1, _lock_key(self._name), self.owner, self._ttl_ms))


def _number(answer: Any) -> int:
    """Return the answer of a script: 0 where it refuses."""
    if type(answer) is not int:
        raise ForeignAnswer(f"a script was answered with {answer!r:.80}")
    return answer


def _lock_key(name: str) -> str:
    return f"locks/{name}"
