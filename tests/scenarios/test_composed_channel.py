"""The composed scenario X-S5: heartbeats, events of watches and large batches share one channel.

A channel to the leader of the core carries a client's batches, its confirmations, and in the other direction answers
and events. Batches are served slowly, one after the other; events are told when they are applied, out of turn.
"""

from __future__ import annotations

import msgspec
import pytest
from communication_driver import ChannelStory

from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    Watch,
    WatchEvent,
    WatchRegistry,
    end_of,
)
from faultline.systems_under_test.patterns.node_communication.single_socket_channel import READ_TIMEOUT_HEARTBEATS
from faultline.systems_under_test.patterns.node_communication.socket_channel import HEARTBEAT_INTERVAL_US

READ_TIMEOUT_US = READ_TIMEOUT_HEARTBEATS * HEARTBEAT_INTERVAL_US
SERVICE_US = READ_TIMEOUT_US // 2
"""The time that the server works on one batch: a few of them take longer than any silence that is borne."""

EVENT_EVERY_US = 10_000
BATCH = b"no answer" + b"x" * 20_000
CONFIRMATION = b"no answer: confirmed"
UNCONFIRMED_MAX = 100
WATCH = Watch("athens", "servers", 1)

_EVENTS = msgspec.msgpack.Decoder(WatchEvent)


class SharedChannel:
    """A client with a watch, and a server on which something happens all the time."""

    def __init__(self, *, confirms: bool) -> None:
        self.story = ChannelStory(service_us=SERVICE_US).connect()
        self.story.network.piece_us = 20
        self.story.time.pass_time(HEARTBEAT_INTERVAL_US)
        self.confirms = confirms
        self.registry = WatchRegistry(UNCONFIRMED_MAX)
        self.registry.add(WATCH, end_of(0), ())
        self.told: dict[int, int] = {}
        self.delays_us: list[int] = []
        self.received: list[int] = []
        self.cancelled_at = 0
        self.story.channel._on_message = self._received
        self.story.listener._handle_request = self._handled
        self.story.time.after(EVENT_EVERY_US, lambda: self._happens(1))

    def _happens(self, index: int) -> None:
        """The entry at `index` is applied: each watcher is told at once, over the existing connection."""
        self.story.time.after(EVENT_EVERY_US, lambda: self._happens(index + 1))
        if self.cancelled_at:
            return
        event = WatchEvent(index, 0, f"servers/{index}", "up")
        if self.registry.send(WATCH, [event]) is None:
            self.cancelled_at = index
            return
        self.told[index] = self.story.time.now_us
        for connection, _ in self.story.listener.open_connections:
            self.story.listener._answer(connection, msgspec.msgpack.encode(event))

    def _received(self, payload: bytes) -> None:
        event = _EVENTS.decode(payload)
        self.received.append(event.index)
        self.delays_us.append(self.story.time.now_us - self.told[event.index])

    def _handled(self, peer: str, request: bytes) -> bytes | None:
        if request == CONFIRMATION and not self.cancelled_at:
            self.registry.remove(WATCH)
            self.registry.add(WATCH, end_of(self.received[-1]), ())
        return self.story.handle(peer, request)

    def confirm_every(self, interval_us: int) -> None:
        if self.confirms:
            self.story.channel.send_one_way(CONFIRMATION)
        self.story.time.after(interval_us, lambda: self.confirm_every(interval_us))


@pytest.mark.rows("X-S5")
def test_large_batches_delay_neither_heartbeats_nor_events_and_no_peer_looks_dead() -> None:
    shared = SharedChannel(confirms=True)
    shared.story.time.pass_time(50_000)
    for _ in range(4):
        shared.story.channel.send_one_way(BATCH)
    # Two whole read timeouts, in which the server has nothing but batches to serve.
    shared.story.time.pass_time(4 * SERVICE_US - EVENT_EVERY_US)
    assert shared.story.handled.count(BATCH) >= 1
    assert shared.story.channel.is_open and shared.story.listener.accepted_total == 1
    assert shared.story.errors == shared.story.channel_errors == []
    assert shared.received == list(range(1, len(shared.received) + 1)) and len(shared.received) > 50
    assert max(shared.delays_us) <= 2_000


@pytest.mark.rows("X-S5")
def test_a_consumer_that_does_not_confirm_loses_its_watch_and_keeps_its_channel() -> None:
    shared = SharedChannel(confirms=False)
    shared.confirm_every(200_000)
    shared.story.time.pass_time((UNCONFIRMED_MAX + 20) * EVENT_EVERY_US)
    assert shared.cancelled_at == UNCONFIRMED_MAX + 1
    assert len(shared.registry) == 0
    shared.story.channel.send_one_way(BATCH)
    shared.story.time.pass_time(3 * SERVICE_US)
    assert BATCH in shared.story.handled
    assert shared.story.channel.is_open and shared.story.channel_errors == []


@pytest.mark.rows("X-S5")
def test_a_consumer_whose_confirmations_wait_behind_one_batch_keeps_its_watch() -> None:
    shared = SharedChannel(confirms=True)
    shared.story.time.pass_time(50_000)
    shared.story.channel.send_one_way(BATCH)
    shared.confirm_every(SERVICE_US * 2)
    shared.story.time.pass_time(8 * SERVICE_US)
    assert shared.cancelled_at == 0 and CONFIRMATION in shared.story.handled
    assert shared.received == list(range(1, len(shared.received) + 1))
