"""Watches on a bucket of NATS: every revision once and in order, what was discarded is told, and lost messages show."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from patience import PATIENT_S, wait_until
from scripted_nats import ScriptedNats
from scripted_server import HOST

from faultline.harness.operation import Operation
from faultline.systems_under_test.stores.nats import bucket
from faultline.systems_under_test.stores.nats.bucket import Bucket
from faultline.systems_under_test.stores.nats.feed import Feed, content_of
from faultline.systems_under_test.stores.nats.watches import BucketWatch, WatchingBucketClient

LAST = 1 << 30


@dataclass
class Inbox:
    """The undelivered revisions of one consumer: those after `after`, at first only the `newest` of each key."""

    after: int
    newest: list[int] = field(default_factory=list)
    delivered: int = 0


class ScriptedBucket:
    """A bucket that keeps `history` revisions of each key and delivers them as NATS does; it can lose and break."""

    def __init__(self, history: int = 64) -> None:
        self.history = history
        self.revisions: dict[int, tuple[str, Any]] = {}
        self.last = 0
        self.loses = False
        self.is_broken = False
        self.consumers = 0
        self._changed = threading.Condition()

    def write(self, *changes: tuple[str, Any]) -> None:
        """Write these keys at once, so that nothing is delivered in between; None deletes."""
        with self._changed:
            for key, value in changes:
                self.last += 1
                self.revisions[self.last] = key, value
                kept = [number for number, (other, _) in self.revisions.items() if other == key]
                for number in kept[: -self.history]:
                    del self.revisions[number]
            self._changed.notify_all()

    def consume(self, start: int | None, *, heartbeat_s: float) -> tuple[Inbox, int]:
        self.consumers += 1
        if start is not None:
            return Inbox(start - 1), sum(number >= start for number in self.revisions)
        newest = sorted({key: number for number, (key, _) in self.revisions.items()}.values())
        return Inbox(self.last, newest), len(newest)

    def received(self, inbox: Inbox, timeout_s: float) -> Any:
        if self.is_broken:
            raise ConnectionError("broken")
        with self._changed:
            later = [number for number in sorted(self.revisions) if number > inbox.after]
            pending = [*inbox.newest, *later]
            if not pending:
                self._changed.wait(0.01)
                return SimpleNamespace(reply="", headers={"Nats-Last-Consumer": str(inbox.delivered)})
            number = pending[0]
            key, value = self.revisions[number]
        if inbox.newest:
            inbox.newest.pop(0)
        else:
            inbox.after = number
        inbox.delivered += 1
        if self.loses:
            self.loses = False
            return self.received(inbox, timeout_s)
        return SimpleNamespace(
            subject=f"$KV.faultline.{key}",
            reply=f"$JS.ACK.KV_faultline.c.1.{number}.{inbox.delivered}.99.{len(pending) - 1}",
            headers={"KV-Operation": "DEL"} if value is None else None,
            data=b"" if value is None else msgspec.json.encode(value),
        )

    def end(self, inbox: Inbox) -> None:
        """Ignore the end of the inbox."""

    def close(self) -> None:
        """There is no connection."""

    key_of = staticmethod(Bucket.key_of)

    @property
    def as_bucket(self) -> Bucket:
        return cast(Bucket, self)


Begin = Callable[..., BucketWatch]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins watches on `servers`, which end with the test."""
    watches: list[BucketWatch] = []

    def begun(scripted: ScriptedBucket, *, tells_skips: bool = True) -> BucketWatch:
        watches.append(BucketWatch("servers", lambda member: scripted.as_bucket, 0, tells_skips=tells_skips))
        return watches[-1]

    yield begun
    for watch in watches:
        watch.close()


def drained_upto(watch: BucketWatch, index: int) -> list[list[Any]]:
    items: list[list[Any]] = []

    def is_told() -> bool:
        items.extend(watch.log.drain())
        return bool(items) and items[-1][0] == "upto" and items[-1][1][0] >= index

    wait_until(is_told)
    return [item for item in items if item[0] != "upto"]


def test_a_watch_begins_with_what_is_there_and_is_told_of_every_change_below_its_path(begin: Begin) -> None:
    scripted = ScriptedBucket()
    scripted.write(("servers/1", 1), ("servers/1", 2), ("servers/2", 3), ("servers/2", None), ("servers2", 4))
    watch = begin(scripted)
    assert drained_upto(watch, 5) == [["state", [5, LAST], {"servers/1": 2}, None]]
    scripted.write(("servers", 5), ("servers2", 6), ("servers/1", None))
    assert drained_upto(watch, 8) == [["event", 6, 0, "servers", 5, False], ["event", 8, 0, "servers/1", None, True]]


def test_a_watch_on_an_empty_bucket_begins_with_nothing(begin: Begin) -> None:
    scripted = ScriptedBucket()
    watch = begin(scripted)
    assert drained_upto(watch, 0) == [["state", [0, LAST], {}, None]]
    scripted.write(("servers", 1))
    assert drained_upto(watch, 1) == [["event", 1, 0, "servers", 1, False]]


@pytest.mark.parametrize("trouble", ["loses", "is_broken"])
def test_a_feed_that_lost_a_message_or_broke_is_taken_up_behind_its_last_revision(begin: Begin, trouble: str) -> None:
    scripted = ScriptedBucket()
    watch = begin(scripted)
    drained_upto(watch, 0)
    consumers = scripted.consumers
    setattr(scripted, trouble, True)
    scripted.write(("servers/1", 1), ("servers/1", 2))
    wait_until(lambda: scripted.consumers > consumers)
    setattr(scripted, trouble, False)
    assert drained_upto(watch, 2) == [["event", number, 0, "servers/1", number, False] for number in (1, 2)]


def test_the_loss_of_the_last_message_shows_at_the_next_heartbeat() -> None:
    scripted = ScriptedBucket()
    feed = Feed(scripted.as_bucket, None)
    scripted.loses = True
    scripted.write(("servers/1", 1))
    with pytest.raises(ConnectionError, match="message 0 of the feed is missing: heard of 1"):
        feed.next()


@pytest.mark.parametrize("tells_skips", [True, False])
def test_a_revision_that_was_discarded_before_it_came_is_a_gap_or_is_hidden(begin: Begin, tells_skips: bool) -> None:
    scripted = ScriptedBucket(history=1)
    watch = begin(scripted, tells_skips=tells_skips)
    drained_upto(watch, 0)
    scripted.write(("servers/1", 1), ("servers/1", 2))
    told = ["state", [2, LAST], {"servers/1": 2}, "revisions-discarded"]
    assert drained_upto(watch, 2) == [told if tells_skips else ["event", 2, 0, "servers/1", 2, False]]


def test_a_list_ends_although_what_was_counted_has_been_discarded_meanwhile() -> None:
    scripted = ScriptedBucket()
    scripted.write(("servers/1", 1), ("servers/2", 2))
    consume = scripted.consume
    scripted.consume = (  # type: ignore[method-assign]  # the script of this test alone
        lambda start, *, heartbeat_s: (consume(start, heartbeat_s=heartbeat_s)[0], 9)
    )
    scripted.write(("servers/2", None))
    assert content_of(scripted.as_bucket) == (3, {"servers/1": 1})


def test_changes_are_answered_with_their_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedNats(lambda subject, headers, payload: {"stream": "KV_faultline", "seq": 6})
    monkeypatch.setattr(bucket, "CLIENT_PORT", server.port)
    client = WatchingBucketClient(
        lambda node: HOST, ("athens",), "athens", direct=False, timeout_s=PATIENT_S, tells_skips=True
    )
    assert client.invoke(Operation(0, "put", "servers/1", 7)).value == 6
    assert client.invoke(Operation(0, "delete", "servers/1", None)).value == 6
    assert client.invoke(Operation(0, "drain", "servers", None)).error == "not-watching"
    client.close()
    server.close()
    (put, _, seven), (delete, headers, nothing) = server.asked
    assert (put, seven, nothing) == ("$KV.faultline.servers/1", "7", "") and delete == put
    assert "KV-Operation: DEL" in headers
