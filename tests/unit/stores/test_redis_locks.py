"""Locks of Redis: an owner's name and a counter, refreshed where the master was found, and a fence or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from lock_stories import NewOwner, do, owners_of, tell_of_a_late_write
from patience import PATIENT_S, HandSetClock, wait_until
from scripted_redis import Answer, Refused, ScriptedRedis
from scripted_server import HOST

from faultline.systems_under_test.stores.redis import locks, sentinel_client
from faultline.systems_under_test.stores.redis.commands import Waiting
from faultline.systems_under_test.stores.redis.locks import SentinelLocks

TTL_MS = 200
TRUSTED_US = 150_000
"""Three quarters of that."""


class Master:
    """A Redis that understands the scripts, and a Sentinel that names it; `refusal` is what scripts meet instead."""

    def __init__(self) -> None:
        self.owner: dict[str, str] = {}
        self.counters: dict[str, int] = {}
        self.resources: dict[str, tuple[int, str]] = {}
        self.refusal: Exception | None = None
        self.waited_for = 2
        self.refreshes = 0
        self.scripts: dict[str, Callable[[list[str]], Answer]] = {
            locks._ACQUIRE: self._acquire,
            locks._REFRESH: self._refresh,
            locks._RELEASE: self._release,
            locks._WRITE: self._write,
            locks._WRITE_FENCED: self._write_fenced,
        }
        self.redis = ScriptedRedis(self._answer)
        self.sentinel = ScriptedRedis(lambda _: [HOST, str(self.redis.port)])

    def _answer(self, words: list[str]) -> Answer:
        if words[0] == "ROLE":
            return ["master", 0, []]
        if words[0] == "WAIT":
            return self.waited_for
        assert words[0] == "EVAL" and int(words[2]) == (2 if words[1] == locks._ACQUIRE else 1)
        self.refreshes += words[1] == locks._REFRESH
        if self.refusal is not None:
            raise self.refusal
        return self.scripts[words[1]](words[3:])

    def _acquire(self, words: list[str]) -> Answer:
        key, counter, owner, ttl_ms = words
        assert int(ttl_ms) == TTL_MS
        if key in self.owner:
            return 0
        self.owner[key] = owner
        self.counters[counter] = self.counters.get(counter, 0) + 1
        return self.counters[counter]

    def _refresh(self, words: list[str]) -> Answer:
        return int(self.owner.get(words[0]) == words[1])

    def _release(self, words: list[str]) -> Answer:
        if self.owner.get(words[0]) != words[1]:
            return 0
        del self.owner[words[0]]
        return 1

    def _write(self, words: list[str]) -> Answer:
        self.resources[words[0]] = (int(words[1]), words[2])
        self.counters[words[0]] = self.counters.get(words[0], 0) + 1
        return self.counters[words[0]]

    def _write_fenced(self, words: list[str]) -> Answer:
        return 0 if self.resources.get(words[0], (0, ""))[0] > int(words[1]) else self._write(words)

    def close(self) -> None:
        self.redis.close()
        self.sentinel.close()


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    served = Master()
    monkeypatch.setattr(sentinel_client, "SENTINEL_PORT", served.sentinel.port)
    yield served
    served.close()


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


@pytest.fixture
def owners(master: Master, clock: HandSetClock) -> Iterator[NewOwner]:
    def new_client(*, is_fenced: bool = True, replicas: int = 0) -> SentinelLocks:
        return SentinelLocks(
            lambda node: HOST,
            ("athens",),
            "athens",
            reads_replicas=False,
            waiting=Waiting(replicas, 50),
            timeout_s=PATIENT_S,
            ttl_ms=TTL_MS,
            is_fenced=is_fenced,
        )

    with owners_of(new_client, clock) as new_owner:
        yield new_owner


def test_tokens_are_counted_and_the_key_has_the_owners_name(owners: NewOwner, master: Master) -> None:
    first, second = owners(), owners()
    assert do(first, "acquire") == ("ok", {"token": 1}, None)
    assert master.owner == {"locks/lock0": "3.1"}
    assert do(second, "acquire") == ("fail", None, "duplicate-lease")
    assert do(first, "guarded-write", 5) == ("ok", {"token": 1, "index": 1}, None)
    assert do(first, "release") == ("ok", None, None)
    assert do(second, "acquire") == ("ok", {"token": 2}, None)


def test_a_lock_is_refreshed_until_it_is_abandoned_and_times_out_then(
    owners: NewOwner, master: Master, clock: HandSetClock
) -> None:
    owner = owners()
    do(owner, "acquire")
    clock.now_us = TRUSTED_US - 1
    seen = master.refreshes
    # The first of three may have been sent before that, and the last may not be answered yet.
    wait_until(lambda: master.refreshes >= seen + 3)
    clock.now_us += TRUSTED_US - 1
    assert do(owner, "check") == ("ok", {"token": 1}, None)
    assert do(owner, "abandon") == ("ok", None, None)
    assert do(owner, "check") == ("fail", None, "not-held") and "locks/lock0" in master.owner


def test_a_lock_that_is_anothers_is_not_held(owners: NewOwner, master: Master) -> None:
    owner = owners()
    do(owner, "acquire")
    master.owner["locks/lock0"] = "another"
    wait_until(lambda: do(owner, "check") == ("fail", None, "not-held"))


def test_a_lock_that_is_not_refreshed_is_held_until_its_time_is_over(
    owners: NewOwner, master: Master, clock: HandSetClock
) -> None:
    owner = owners()
    do(owner, "acquire")
    master.owner["locks/lock0"] = "another"
    master.refusal = Refused("READONLY You can't write against a read only replica.")
    clock.now_us = TRUSTED_US - 1
    seen = master.refreshes
    wait_until(lambda: master.refreshes >= seen + 3)
    assert do(owner, "check") == ("ok", {"token": 1}, None)
    clock.now_us += 1
    assert do(owner, "check") == ("fail", None, "not-held")


@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_former_owners_write_goes_in_behind_the_next_ones_unless_there_is_a_fence(
    owners: NewOwner, master: Master, is_fenced: bool
) -> None:
    tell_of_a_late_write(owners, master.owner.clear, is_fenced=is_fenced)


def test_a_lock_that_too_few_replicas_have_may_be_ours_and_is_not_used(owners: NewOwner, master: Master) -> None:
    owner = owners(replicas=2)
    master.waited_for = 1
    assert do(owner, "acquire") == ("info", None, "too-few-replicas")
    assert do(owner, "check") == ("fail", None, "not-held")
    master.owner.clear()
    master.waited_for = 2
    assert do(owner, "acquire") == ("ok", {"token": 2}, None)
    master.waited_for = 1
    assert do(owner, "guarded-write", 5) == ("info", None, "too-few-replicas")
