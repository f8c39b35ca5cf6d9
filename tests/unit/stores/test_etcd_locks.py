"""Locks of etcd: tokens are revisions, a fence compares them, and without one a former owner's write goes in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lock_stories import NewOwner, do, owners_of, tell_of_a_late_write
from patience import PATIENT_S, HandSetClock, wait_until
from scripted_etcd import HOST, Gateway

from faultline.systems_under_test.stores.etcd.locks import EtcdLocks


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


@pytest.fixture
def owners(etcd: Gateway, clock: HandSetClock) -> Iterator[NewOwner]:
    def new_client(*, is_fenced: bool = True) -> EtcdLocks:
        return EtcdLocks(
            lambda node: HOST,
            ("athens", "byzantium"),
            "athens",
            serializable=False,
            timeout_s=PATIENT_S,
            lease_ttl_s=1,
            resumes_at_now=False,
            is_fenced=is_fenced,
        )

    with owners_of(new_client, clock) as new_owner:
        yield new_owner


def end_all_leases(etcd: Gateway) -> None:
    for lease in [*etcd.leases]:
        etcd.end_lease(lease)


def test_the_token_is_the_revision_of_the_lock_and_writes_are_placed_by_theirs(owners: NewOwner) -> None:
    first, second = owners(), owners()
    assert do(first, "acquire") == ("ok", {"token": 2}, None)
    assert do(first, "check") == ("ok", {"token": 2}, None)
    assert do(first, "guarded-write", 5) == ("ok", {"token": 2, "index": 3}, None)
    assert do(second, "acquire") == ("fail", None, "duplicate-lease")
    assert do(second, "guarded-write", 6) == ("fail", None, "not-held")


def test_a_lock_that_is_given_back_is_the_next_ones_with_a_greater_token(owners: NewOwner, etcd: Gateway) -> None:
    first, second = owners(), owners()
    do(first, "acquire")
    assert do(first, "release") == ("ok", None, None)
    assert etcd.leases == set() and etcd.stored == {}
    assert do(second, "acquire") == ("ok", {"token": 4}, None)


def test_a_fenced_write_is_refused_once_the_lock_is_gone(owners: NewOwner, etcd: Gateway) -> None:
    owner = owners(meanwhile=lambda: end_all_leases(etcd))
    do(owner, "acquire")
    assert do(owner, "late-write", 5) == ("fail", None, "stale-token")
    assert etcd.stored == {}


@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_former_owners_write_goes_in_behind_the_next_ones_unless_there_is_a_fence(
    owners: NewOwner, etcd: Gateway, is_fenced: bool
) -> None:
    tell_of_a_late_write(owners, lambda: end_all_leases(etcd), is_fenced=is_fenced)


def test_an_owner_that_cannot_refresh_refuses_itself_before_etcd_would(
    owners: NewOwner, etcd: Gateway, clock: HandSetClock
) -> None:
    owner = owners()
    do(owner, "acquire")
    etcd.mood = "503"
    clock.now_us = 749_999
    seen = len(etcd.asked)
    wait_until(lambda: len(etcd.asked) >= seen + 3)
    assert do(owner, "check") == ("ok", {"token": 2}, None)
    clock.now_us += 1
    assert do(owner, "check") == ("fail", None, "not-held")
    etcd.mood = ""
    assert do(owner, "check") == ("fail", None, "not-held")
    assert "locks/lock0" in etcd.stored, "for etcd it still stands"


@pytest.mark.parametrize("f", ["guarded-write", "release"])
def test_what_was_sent_and_not_answered_is_unknown(owners: NewOwner, etcd: Gateway, f: str) -> None:
    owner = owners()
    do(owner, "acquire")
    etcd.mood = "hang up"
    assert do(owner, f, 5) == ("info", None, "connection-lost")
