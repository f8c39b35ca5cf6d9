"""Locks of etcd: tokens are revisions, a fence compares them, and without one a former owner's write goes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripted_etcd import HOST, Gateway, wait_until

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.etcd import gateway
from faultline.systems_under_test.stores.etcd.locks import EtcdLocks
from faultline.systems_under_test.stores.lock_owner import LockOwner


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    served = Gateway()
    monkeypatch.setattr(gateway, "CLIENT_PORT", served.port)
    yield served
    served.close()


@pytest.fixture
def owners(etcd: Gateway) -> Iterator[Any]:
    """Makes owners; what happens while one is asleep `meanwhile` says."""
    made: list[LockOwner] = []

    def make(*, is_fenced: bool = True, meanwhile: Callable[[], object] = lambda: None) -> LockOwner:
        client = EtcdLocks(
            lambda node: HOST,
            ("athens", "byzantium"),
            "athens",
            serializable=False,
            timeout_s=0.2,
            lease_ttl_s=1,
            resumes_at_now=False,
            is_fenced=is_fenced,
        )
        made.append(LockOwner(client, sleep=lambda _: meanwhile()))
        return made[-1]

    yield make
    for owner in made:
        owner.close()


def end_all_leases(etcd: Gateway) -> None:
    for lease in [*etcd.leases]:
        etcd.end_lease(lease)


def do(owner: LockOwner, f: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = owner.invoke(Operation(0, f, "lock0", value))
    return outcome.kind, outcome.value, outcome.error


def test_the_token_is_the_revision_of_the_lock_and_writes_are_placed_by_theirs(owners: Any) -> None:
    first, second = owners(), owners()
    assert do(first, "acquire") == ("ok", {"token": 2}, None)
    assert do(first, "check") == ("ok", {"token": 2}, None)
    assert do(first, "guarded-write", 5) == ("ok", {"token": 2, "index": 3}, None)
    assert do(second, "acquire") == ("fail", None, "duplicate-lease")
    assert do(second, "guarded-write", 6) == ("fail", None, "not-held")


def test_a_lock_that_is_given_back_is_the_next_ones_with_a_greater_token(owners: Any, etcd: Gateway) -> None:
    first, second = owners(), owners()
    do(first, "acquire")
    assert do(first, "release") == ("ok", None, None)
    assert etcd.leases == set() and etcd.stored == {}
    assert do(second, "acquire") == ("ok", {"token": 4}, None)


def test_a_fenced_write_is_refused_once_the_lock_is_gone(owners: Any, etcd: Gateway) -> None:
    owner = owners(meanwhile=lambda: end_all_leases(etcd))
    do(owner, "acquire")
    assert do(owner, "late-write", 5) == ("fail", None, "stale-token")
    assert etcd.stored == {}


@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_former_owners_write_goes_in_behind_the_next_ones_unless_there_is_a_fence(
    owners: Any, etcd: Gateway, is_fenced: bool
) -> None:
    def change_owner() -> None:
        end_all_leases(etcd)
        do(second, "acquire")
        written.append(do(second, "guarded-write", 6)[1])

    written: list[Any] = []
    first, second = owners(is_fenced=is_fenced, meanwhile=change_owner), owners(is_fenced=is_fenced)
    old = do(first, "acquire")[1]["token"]
    kind, late, error = do(first, "late-write", 7)
    if is_fenced:
        assert (kind, error) == ("fail", "stale-token")
    else:
        assert late["token"] == old < written[0]["token"] and late["index"] > written[0]["index"]


def test_an_owner_that_cannot_refresh_refuses_itself_before_etcd_would(owners: Any, etcd: Gateway) -> None:
    owner = owners()
    do(owner, "acquire")
    etcd.mood = "503"
    wait_until(lambda: do(owner, "check") == ("fail", None, "not-held"))
    etcd.mood = ""
    assert do(owner, "check") == ("fail", None, "not-held")
    assert "locks/lock0" in etcd.stored, "for etcd it still stands"


@pytest.mark.parametrize("f", ["guarded-write", "release"])
def test_what_was_sent_and_not_answered_is_unknown(owners: Any, etcd: Gateway, f: str) -> None:
    owner = owners()
    do(owner, "acquire")
    etcd.mood = "hang up"
    assert do(owner, f, 5) == ("info", None, "connection-lost")
