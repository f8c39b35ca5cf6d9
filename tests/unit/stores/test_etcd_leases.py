"""Leases of etcd: one owner for a name, kept alive while it is held, and left to end when it is abandoned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from patience import HASTY_S, PATIENT_S, HandSetClock, wait_until
from scripted_etcd import HOST, Gateway, text

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.etcd.leases import LeasingClient
from faultline.systems_under_test.stores.lock_owner import LockOwner

MS = 1_000
TRUSTED_US = 750 * MS
"""Three quarters of the second for which a lease is asked."""


def new_client(clock: HandSetClock, timeout_s: float = PATIENT_S) -> LeasingClient:
    members = ("athens", "byzantium")
    client = LeasingClient(lambda node: HOST, members, "athens", serializable=False, timeout_s=timeout_s, lease_ttl_s=1)
    client.keeping.clock = clock
    return client


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


@pytest.fixture
def owner(etcd: Gateway, clock: HandSetClock) -> Iterator[LockOwner]:
    owner = LockOwner(new_client(clock))
    yield owner
    owner.close()


def do(owner: LockOwner, f: str, name: str = "printer") -> tuple[str, str | None]:
    outcome = owner.invoke(Operation(0, f, name, None))
    return outcome.kind, outcome.error


def is_held(owner: LockOwner) -> bool:
    return do(owner, "check") == ("ok", None)


def refreshes(etcd: Gateway) -> int:
    return sum(path == "/v3/lease/keepalive" for path, _ in etcd.asked)


def test_a_lease_has_one_owner_and_its_token_is_the_revision_of_its_key(
    owner: LockOwner, etcd: Gateway, clock: HandSetClock
) -> None:
    assert owner.invoke(Operation(0, "acquire", "printer", None)).value == {"token": 2}
    assert etcd.stored["locks/printer"]["lease"] in etcd.leases
    assert do(owner, "acquire") == ("fail", "already-held")
    other = LockOwner(new_client(clock))
    assert do(other, "acquire") == ("fail", "duplicate-lease")
    assert len(etcd.leases) == 1, "the lease that got no key is given back"
    other.close()


def test_a_lease_is_refreshed_until_it_is_abandoned_and_its_connection_may_break(
    owner: LockOwner, etcd: Gateway, clock: HandSetClock
) -> None:
    do(owner, "acquire")
    wait_until(lambda: refreshes(etcd) >= 2)
    etcd.mood = "hang up"
    seen = refreshes(etcd)
    wait_until(lambda: refreshes(etcd) > seen)
    etcd.mood = ""
    clock.now_us = TRUSTED_US - 1
    seen = refreshes(etcd)
    # The first of three may have been sent before that, and the last may not be answered yet.
    wait_until(lambda: refreshes(etcd) >= seen + 3)
    clock.now_us += TRUSTED_US - 1
    assert is_held(owner)
    assert do(owner, "abandon") == ("ok", None)
    assert not is_held(owner) and text(etcd.stored["locks/printer"]["key"]) == "locks/printer"


def test_a_lease_that_etcd_does_not_know_any_more_is_not_held(owner: LockOwner, etcd: Gateway) -> None:
    do(owner, "acquire")
    [number] = etcd.leases
    etcd.end_lease(number)
    wait_until(lambda: not is_held(owner))
    assert do(owner, "acquire") == ("ok", None)


def test_a_lease_that_was_granted_for_longer_than_was_asked_for_is_believed_in_for_longer(
    etcd: Gateway, clock: HandSetClock
) -> None:
    etcd.least_ttl_s = 9
    client = new_client(clock)
    assert client.invoke(Operation(0, "acquire", "printer", None)).kind == "ok"
    clock.now_us = 9 * TRUSTED_US - 1
    lock = client.keeping.held("printer")
    assert lock is not None and lock.ttl_s == 9
    clock.now_us += 1
    assert client.keeping.held("printer") is None
    client.keeping.close()
    client.close()


def test_an_owner_does_not_trust_a_lease_that_could_not_be_refreshed_for_its_whole_life(
    owner: LockOwner, etcd: Gateway, clock: HandSetClock
) -> None:
    do(owner, "acquire")
    etcd.mood = "503"
    clock.now_us = TRUSTED_US - 1
    seen = refreshes(etcd)
    wait_until(lambda: refreshes(etcd) >= seen + 3)
    assert is_held(owner)
    clock.now_us = TRUSTED_US
    assert not is_held(owner)


@pytest.mark.parametrize("mood", ["hang up", "silence", "503", "garbage"])
def test_a_grant_that_failed_is_definite_since_no_client_sees_a_lease_without_a_key(
    etcd: Gateway, clock: HandSetClock, mood: str
) -> None:
    etcd.mood = mood
    owner = LockOwner(new_client(clock, HASTY_S if mood == "silence" else PATIENT_S))
    assert do(owner, "acquire") == ("fail", "lease-not-granted")
    owner.close()


def test_a_lock_key_that_was_asked_for_without_an_answer_may_be_there(owner: LockOwner, etcd: Gateway) -> None:
    answer = etcd.answer

    def grant_then_break(path: str, body: object) -> object:
        etcd.mood = "hang up"
        return answer(path, body)

    etcd.answer = grant_then_break  # type: ignore[method-assign]  # the script of this test alone
    assert do(owner, "acquire") == ("info", "connection-lost")
    assert not is_held(owner)
