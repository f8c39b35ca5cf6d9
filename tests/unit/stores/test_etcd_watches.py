"""Watches on etcd: every change once and in order, also across streams that break, and gaps that are announced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from patience import HASTY_S, PATIENT_S, wait_until
from scripted_etcd import HOST, Gateway

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.etcd import watches
from faultline.systems_under_test.stores.etcd.gateway import packed
from faultline.systems_under_test.stores.etcd.watches import WatchingClient
from faultline.systems_under_test.stores.lock_owner import LockOwner

LAST = 1 << 30


def new_client(*, resumes_at_now: bool = False) -> WatchingClient:
    return WatchingClient(
        lambda node: HOST,
        ("athens", "byzantium"),
        "athens",
        serializable=False,
        timeout_s=PATIENT_S,
        lease_ttl_s=60,
        resumes_at_now=resumes_at_now,
    )


@pytest.fixture
def client(etcd: Gateway) -> Iterator[WatchingClient]:
    client = new_client()
    yield client
    LockOwner(client).close()


def do(client: WatchingClient, f: str, key: str, value: Any = None) -> tuple[str, Any, str | None]:
    outcome = client.invoke(Operation(0, f, key, value))
    return outcome.kind, outcome.value, outcome.error


def drained_upto(client: WatchingClient, index: int, path: str = "servers") -> list[list[Any]]:
    """Drain until everything up to `index` has come; return it without the `upto` items."""
    items: list[list[Any]] = []

    def is_told() -> bool:
        items.extend(do(client, "drain", path)[1]["items"])
        return bool(items) and items[-1][0] == "upto" and items[-1][1][0] >= index

    wait_until(is_told)
    return [item for item in items if item[0] != "upto"]


def streams(etcd: Gateway) -> list[dict[str, Any]]:
    return [body["create_request"] for path, body in etcd.asked if path == "/v3/watch"]


def test_changes_are_answered_with_their_revision_and_a_list_with_that_of_its_reading(client: WatchingClient) -> None:
    assert do(client, "put", "servers/1", 7) == ("ok", 2, None)
    assert do(client, "put", "servers2", 8) == ("ok", 3, None)
    assert do(client, "put", "servers-old", 9) == ("ok", 4, None)
    assert do(client, "list", "servers") == ("ok", {"index": 4, "values": {"servers/1": 7}}, None)
    assert do(client, "delete", "servers/1") == ("ok", 5, None)
    assert do(client, "delete", "servers/1") == ("ok", None, None)


def test_a_key_is_attached_to_a_lease_of_this_client_and_to_no_other(client: WatchingClient, etcd: Gateway) -> None:
    assert do(client, "attach", "servers/1", {"lease": "mine", "value": 1}) == ("fail", None, "not-held")
    do(client, "acquire", "mine")
    assert do(client, "attach", "servers/1", {"lease": "mine", "value": 1}) == ("ok", 3, None)
    [number] = etcd.leases
    assert etcd.stored["servers/1"]["lease"] == number
    etcd.leases.clear()
    assert do(client, "attach", "servers/2", {"lease": "mine", "value": 2}) == ("fail", None, "no-lease")


def test_a_watch_begins_with_the_content_and_goes_on_with_every_change_below_its_path(
    client: WatchingClient, etcd: Gateway
) -> None:
    do(client, "put", "servers/1", 1)
    assert do(client, "drain", "servers") == ("fail", None, "not-watching")
    assert do(client, "watch", "servers") == ("ok", {"number": 1}, None)
    assert drained_upto(client, 2) == [["state", [2, LAST], {"servers/1": 1}, None]]
    do(client, "put", "servers", 2)
    do(client, "put", "servers2", 3)
    do(client, "put", "servers-old", 4)
    do(client, "delete", "servers/1")
    assert drained_upto(client, 6) == [
        ["event", 3, 0, "servers", 2, False],
        ["event", 6, 0, "servers/1", None, True],
    ]
    assert do(client, "watch", "servers") == ("ok", {"number": 2}, None)


def test_the_keys_of_a_lease_that_ends_are_told_in_one_revision_one_by_one(
    client: WatchingClient, etcd: Gateway
) -> None:
    do(client, "acquire", "mine")
    do(client, "watch", "servers")
    drained_upto(client, 2)
    for key in ("servers/2", "servers/1", "servers2"):
        do(client, "attach", key, {"lease": "mine", "value": 1})
    [number] = etcd.leases
    etcd.end_lease(number)
    assert drained_upto(client, 6)[-2:] == [
        ["event", 6, 0, "servers/1", None, True],
        ["event", 6, 1, "servers/2", None, True],
    ]


def test_a_stream_that_breaks_is_taken_up_again_behind_the_last_revision_and_nothing_is_missed(
    client: WatchingClient, etcd: Gateway
) -> None:
    etcd.streams_end_after = 3
    do(client, "watch", "servers")
    assert [item[0] for item in drained_upto(client, 1)] == ["state"]
    for value in range(8):
        do(client, "put", "servers/1", value)
    told = drained_upto(client, 9)
    assert told == [["event", 2 + value, 0, "servers/1", value, False] for value in range(8)]
    wait_until(lambda: len(streams(etcd)) > 2)
    assert all(int(wanted["start_revision"]) >= 2 for wanted in streams(etcd))


def told_of_a_change_without_a_stream(client: WatchingClient, etcd: Gateway, compacted: int = 0) -> list[list[Any]]:
    """Return the items of a change while no stream can be opened, and of a second one after a stream was."""
    do(client, "watch", "servers")
    drained_upto(client, 1)
    etcd.moods["/v3/watch"], etcd.streams_end_after = "503", 0
    wait_until(lambda: len(streams(etcd)) > 1)
    etcd.change(("servers/1", packed(1)))
    etcd.compacted = compacted
    del etcd.moods["/v3/watch"]
    etcd.streams_end_after = None
    told = drained_upto(client, 2)
    do(client, "put", "servers/1", 2)
    return told + drained_upto(client, 3)


def test_a_change_that_happened_while_there_was_no_stream_is_told_afterwards(
    client: WatchingClient, etcd: Gateway
) -> None:
    assert told_of_a_change_without_a_stream(client, etcd) == [
        ["event", 2, 0, "servers/1", 1, False],
        ["event", 3, 0, "servers/1", 2, False],
    ]


def test_a_client_that_goes_on_at_now_misses_that_change_and_does_not_tell(etcd: Gateway) -> None:
    careless = new_client(resumes_at_now=True)
    assert told_of_a_change_without_a_stream(careless, etcd) == [["event", 3, 0, "servers/1", 2, False]]
    careless.close()


def test_changes_that_etcd_has_compacted_are_an_announced_gap(client: WatchingClient, etcd: Gateway) -> None:
    assert told_of_a_change_without_a_stream(client, etcd, compacted=2) == [
        ["state", [2, LAST], {"servers/1": 1}, "events-compacted"],
        ["event", 3, 0, "servers/1", 2, False],
    ]


def test_a_member_that_says_nothing_is_left_after_a_while(
    client: WatchingClient, etcd: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_SILENCE_S", HASTY_S)
    etcd.mood = "silence"
    do(client, "watch", "servers")
    assert do(client, "drain", "servers") == ("ok", {"number": 1, "items": []}, None)
    wait_until(lambda: [path for path, _ in etcd.asked].count("/v3/kv/range") > 1)


def test_events_of_unrequested_keys_from_etcd_are_passed_on(client: WatchingClient, etcd: Gateway) -> None:
    etcd.told = lambda wanted: iter(  # type: ignore[method-assign]  # the script of this test alone
        [{"header": {"revision": "2"}, "events": [{"kv": {"key": "dA==", "mod_revision": "2", "value": packed(1)}}]}]
    )
    do(client, "watch", "servers")
    assert drained_upto(client, 2)[-1] == ["event", 2, 0, "t", 1, False]


@pytest.mark.parametrize("f", ["put", "delete", "list"])
def test_a_change_without_an_answer_is_unknown_and_a_list_is_nothing(
    client: WatchingClient, etcd: Gateway, f: str
) -> None:
    etcd.mood = "hang up"
    assert do(client, f, "servers/1", 1) == ("fail" if f == "list" else "info", None, "connection-lost")


def test_no_thread_is_left_when_a_client_closes(client: WatchingClient) -> None:
    before = threads_that("watch-") | threads_that("lock-refresh")
    do(client, "acquire", "mine")
    do(client, "watch", "servers")
    do(client, "watch", "servers/1")
    assert len(threads_that("watch-") - before) == 2 and len(threads_that("lock-refresh") - before) == 1
    LockOwner(client).close()
    assert threads_that("watch-") <= before
    wait_until(lambda: threads_that("lock-refresh") <= before)


def threads_that(begin_with: str) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(begin_with)}
