"""Leases of etcd: one owner for a name, kept alive while it is held, and left to end when it is abandoned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scripted_etcd import HOST, Gateway, text, wait_until

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.etcd import gateway
from faultline.systems_under_test.stores.etcd.leases import LeasingClient


@pytest.fixture
def etcd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    served = Gateway()
    monkeypatch.setattr(gateway, "CLIENT_PORT", served.port)
    yield served
    served.close()


def new_client() -> LeasingClient:
    members = ("athens", "byzantium")
    return LeasingClient(lambda node: HOST, members, "athens", serializable=False, timeout_s=0.2, lease_ttl_s=1)


@pytest.fixture
def client(etcd: Gateway) -> Iterator[LeasingClient]:
    client = new_client()
    yield client
    client.close()


def do(client: LeasingClient, f: str, name: str = "printer") -> tuple[str, str | None]:
    outcome = client.invoke(Operation(0, f, name, None))
    return outcome.kind, outcome.error


def refreshes(etcd: Gateway) -> int:
    return sum(path == "/v3/lease/keepalive" for path, _ in etcd.asked)


def test_a_lease_has_one_owner_and_its_token_is_the_revision_of_its_key(client: LeasingClient, etcd: Gateway) -> None:
    assert client.invoke(Operation(0, "acquire", "printer", None)).value == {"token": 2}
    assert etcd.stored["locks/printer"]["lease"] in etcd.leases
    assert do(client, "acquire") == ("fail", "already-held")
    other = new_client()
    assert do(other, "acquire") == ("fail", "duplicate-lease")
    assert len(etcd.leases) == 1, "the lease that got no key is given back"
    other.close()


def test_a_lease_is_refreshed_until_it_is_abandoned_and_its_connection_may_break(
    client: LeasingClient, etcd: Gateway
) -> None:
    do(client, "acquire")
    wait_until(lambda: refreshes(etcd) >= 2)
    etcd.mood = "hang up"
    seen = refreshes(etcd)
    wait_until(lambda: refreshes(etcd) > seen)
    etcd.mood = ""
    seen = refreshes(etcd)
    wait_until(lambda: refreshes(etcd) > seen)
    assert client.holding.held("printer") is not None
    assert do(client, "abandon") == ("ok", None)
    assert client.holding.held("printer") is None and text(etcd.stored["locks/printer"]["key"]) == "locks/printer"


def test_a_lease_that_etcd_does_not_know_any_more_is_not_held(client: LeasingClient, etcd: Gateway) -> None:
    do(client, "acquire")
    [number] = etcd.leases
    etcd.end_lease(number)
    wait_until(lambda: client.holding.held("printer") is None)
    assert do(client, "acquire") == ("ok", None)


def test_nobody_trusts_in_a_lease_that_could_not_be_refreshed_for_its_whole_life(
    client: LeasingClient, etcd: Gateway
) -> None:
    do(client, "acquire")
    etcd.mood = "503"
    wait_until(lambda: client.holding.held("printer") is None)


@pytest.mark.parametrize("mood", ["hang up", "silence", "503", "garbage"])
def test_a_grant_that_failed_is_definite_since_a_lease_without_a_key_is_seen_by_nobody(
    client: LeasingClient, etcd: Gateway, mood: str
) -> None:
    etcd.mood = mood
    assert do(client, "acquire") == ("fail", "lease-not-granted")


def test_a_lock_key_that_was_asked_for_without_an_answer_may_be_there(client: LeasingClient, etcd: Gateway) -> None:
    answer = etcd.answer

    def grant_then_break(path: str, body: object) -> object:
        etcd.mood = "hang up"
        return answer(path, body)

    etcd.answer = grant_then_break  # type: ignore[method-assign]  # the script of this test alone
    assert do(client, "acquire") == ("info", "connection-lost")
    assert client.holding.held("printer") is None
