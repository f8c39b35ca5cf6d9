"""The owner of a lock: it refuses itself what it does not hold, asks nobody whether it does, and is late on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.systems_under_test.stores.lock_owner import HeldLock, LockOwner


@dataclass(frozen=True)
class Lock:
    name: str = "lock0"
    token: int = 7
    ttl_s: float = 2.0


class Client:
    """Holds what `locks` says; remembers what it was asked and in which order."""

    def __init__(self) -> None:
        self.locks: dict[str, Lock] = {}
        self.did: list[Any] = []
        self.answer: Outcome = ok(33, "athens")

    def invoke(self, operation: Operation) -> Outcome:
        self.did.append((operation.f, operation.value))
        return self.answer

    def held(self, name: str) -> Lock | None:
        return self.locks.get(name)

    def drop(self, lock: HeldLock) -> None:
        self.did.append("drop")
        del self.locks[lock.name]

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
def test_what_is_not_held_is_refused_and_nobody_is_asked(owner: LockOwner, client: Client, f: str) -> None:
    assert do(owner, f, 5) == fail("not-held")
    assert client.did == []


def test_an_owner_asks_nobody_whether_it_is_one(owner: LockOwner, client: Client) -> None:
    client.locks["lock0"] = Lock()
    assert do(owner, "check") == ok({"token": 7})
    assert client.did == []


def test_a_write_goes_under_the_token_and_tells_its_place(owner: LockOwner, client: Client) -> None:
    client.locks["lock0"] = lock = Lock()
    assert do(owner, "guarded-write", 5) == ok({"token": 7, "index": 33}, "athens")
    assert client.did == [("guarded-write", (lock, 5))]
    client.answer = fail("stale-token")
    assert do(owner, "guarded-write", 6) == fail("stale-token")


def test_a_late_writer_lets_its_lock_end_before_it_writes_under_the_token_of_before(
    owner: LockOwner, client: Client
) -> None:
    client.locks["lock0"] = lock = Lock()
    assert do(owner, "late-write", 5) == ok({"token": 7, "index": 33}, "athens")
    assert client.did == ["drop", "sleep 3", ("late-write", (lock, 5))]
    assert do(owner, "check") == fail("not-held")


@pytest.mark.parametrize("answer", [ok(None, "athens"), info("timeout"), fail("not-connected")])
def test_nothing_is_held_after_a_release_whatever_came_of_it(owner: LockOwner, client: Client, answer: Outcome) -> None:
    client.locks["lock0"] = lock = Lock()
    client.answer = answer
    assert do(owner, "release") == answer
    assert client.did == [("release", (lock, None)), "drop"]
    assert do(owner, "check") == fail("not-held")


def test_a_lock_that_was_granted_too_late_to_be_used_is_none(owner: LockOwner, client: Client) -> None:
    client.answer = ok({"token": 7}, "athens")
    assert do(owner, "acquire") == Outcome("fail", None, "lease-over", "athens")
    client.locks["lock0"] = Lock()
    assert do(owner, "acquire") == client.answer
    client.answer = info("timeout")
    assert do(owner, "acquire") == info("timeout")


def test_everything_else_is_the_clients(owner: LockOwner, client: Client) -> None:
    assert do(owner, "read") is client.answer and do(owner, "abandon") is client.answer
    owner.close()
    assert client.did == [("read", None), ("abandon", None), "close"]
