"""The owner of a lock: it refuses operations without the lock, asks no server about it, and is late on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.systems_under_test.stores.lock_owner import LockOwner


@dataclass(frozen=True)
class Lock:
    name: str = "lock0"
    token: int = 7
    ttl_s: float = 2.0


class Keeping:
    """Holds what `locks` says."""

    def __init__(self, did: list[Any]) -> None:
        self.locks: dict[str, Lock] = {}
        self._did = did

    def held(self, name: str) -> Lock | None:
        return self.locks.get(name)

    def drop(self, name: str) -> None:
        self._did.append("drop")
        self.locks.pop(name, None)

    def close(self) -> None:
        self._did.append("drop all")


class Client:
    """Remembers what it was asked and in which order; what is `granted` it keeps before it answers."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.answer: Outcome = ok(33, "athens")
        self.keeping = Keeping(self.did)
        self.granted: Lock | None = None

    def invoke(self, operation: Operation) -> Outcome:
        self.did.append((operation.f, operation.value))
        if self.granted is not None:
            self.keeping.locks[self.granted.name] = self.granted
        return self.answer

    def close(self) -> None:
        self.did.append("close")


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def owner(client: Client) -> LockOwner:
    return LockOwner(client, sleep=lambda nap_s: client.did.append(f"sleep {nap_s:g}"))


def do(owner: LockOwner, f: str, value: Any = None) -> Outcome:
    return owner.invoke(Operation(0, f, "lock0", value))


@pytest.mark.parametrize("f", ["check", "guarded-write", "late-write", "release"])
def test_an_operation_on_a_lock_that_is_not_held_is_refused_without_asking_the_store(
    owner: LockOwner, client: Client, f: str
) -> None:
    assert do(owner, f, 5) == fail("not-held")
    assert client.did == []


def test_an_owner_does_not_ask_the_store_whether_it_is_one(owner: LockOwner, client: Client) -> None:
    client.keeping.locks["lock0"] = Lock()
    assert do(owner, "check") == ok({"token": 7})
    assert client.did == []


def test_a_write_goes_under_the_token_and_tells_its_place(owner: LockOwner, client: Client) -> None:
    client.keeping.locks["lock0"] = lock = Lock()
    assert do(owner, "guarded-write", 5) == ok({"token": 7, "index": 33}, "athens")
    assert client.did == [("guarded-write", (lock, 5))]
    client.answer = fail("stale-token")
    assert do(owner, "guarded-write", 6) == fail("stale-token")


def test_a_late_writer_lets_its_lock_end_before_it_writes_under_the_token_of_before(
    owner: LockOwner, client: Client
) -> None:
    client.keeping.locks["lock0"] = lock = Lock()
    assert do(owner, "late-write", 5) == ok({"token": 7, "index": 33}, "athens")
    assert client.did == ["drop", "sleep 3", ("late-write", (lock, 5))]
    assert do(owner, "check") == fail("not-held")


@pytest.mark.parametrize("answer", [ok(None, "athens"), info("timeout"), fail("not-connected")])
def test_nothing_is_held_after_a_release_whatever_came_of_it(owner: LockOwner, client: Client, answer: Outcome) -> None:
    client.keeping.locks["lock0"] = lock = Lock()
    client.answer = answer
    assert do(owner, "release") == answer
    assert client.did == [("release", (lock, None)), "drop"]
    assert do(owner, "check") == fail("not-held")


def test_a_lock_that_was_granted_too_late_to_be_used_is_none(owner: LockOwner, client: Client) -> None:
    client.answer = ok({"token": 7}, "athens")
    assert do(owner, "acquire") == Outcome("fail", None, "lease-over", "athens")
    client.granted = Lock()
    assert do(owner, "acquire") == client.answer


def test_what_became_of_an_attempt_to_get_a_lock_may_be_unknown(owner: LockOwner, client: Client) -> None:
    client.answer = info("timeout")
    assert do(owner, "acquire") == info("timeout")


def test_a_lock_that_is_held_is_not_asked_for_again_until_it_is_abandoned(owner: LockOwner, client: Client) -> None:
    client.keeping.locks["lock0"] = client.granted = Lock()
    assert do(owner, "acquire") == fail("already-held") and client.did == []
    assert do(owner, "abandon") == ok() and client.did == ["drop"]
    assert do(owner, "acquire") == client.answer


def test_everything_else_is_the_clients_and_locks_are_dropped_before_it_is_closed(
    owner: LockOwner, client: Client
) -> None:
    assert do(owner, "read") is client.answer
    owner.close()
    assert client.did == [("read", None), "drop all", "close"]
