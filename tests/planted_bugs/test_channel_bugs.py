"""Bugs of single socket channels, each a subclass or a setting that breaks a claim its correct twin keeps.

A client that takes late answers (SC-M4) is planted in consistent-core, too. No campaign shows the others: connections
belong to the transport, which no system replaces, and consistent-core's log refuses what does not follow, whatever a
channel does to its messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from communication_driver import ByteWire, ChannelStory, outcome

from faultline.harness.world.framing import FrameDecoder, encode_frame
from faultline.systems_under_test.patterns.node_communication.socket_channel import (
    HEARTBEAT_INTERVAL_US,
    SingleSocketChannel,
)
from faultline.systems_under_test.patterns.node_communication.socket_listener import SocketListener

Bug = dict[str, Any]
Claim = Callable[..., None]
NUMBERS = [b"%d" % number for number in range(1, 9)]
READ_TIMEOUT_US = 10 * HEARTBEAT_INTERVAL_US


# -- the claims -------------------------------------------------------------------------------------------------------


def messages_arrive_in_order_over_one_connection(connections: int = 1) -> None:
    story = ChannelStory().connect()
    wires = [story.network.connections[0][1]]
    for extra in range(1, connections):
        number = story.listener.accepted(wires[0])
        wire = ByteWire(story.network, lambda data, number=number: story.listener.data_received(number, data), int)
        wire._arrives_us = 4_000 * extra
        wire.write(encode_frame(b"athens-%d" % extra))
        wires.append(wire)
    for position, request in enumerate(NUMBERS):
        wires[position % connections].write(encode_frame(b"no answer " + request))
        story.time.pass_time(300)
    story.time.pass_time(50_000)
    assert story.handled == [b"no answer " + request for request in NUMBERS]
    assert story.listener.accepted_total == 1


def a_silent_death_is_noticed_within_the_read_timeout(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    story.network.is_mute = True
    call = story.channel.blocking_send(b"one")
    story.time.pass_time(READ_TIMEOUT_US + 2 * HEARTBEAT_INTERVAL_US)
    assert call.done
    assert not story.channel.is_open


def an_idle_link_keeps_its_connection(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    story.time.pass_time(5 * READ_TIMEOUT_US)
    assert story.listener.accepted_total == 1
    assert story.channel_errors == []


def a_late_answer_reaches_no_other_request(**bug: Any) -> None:
    story = ChannelStory(service_us=READ_TIMEOUT_US + 200_000, **bug).connect()
    story.channel.blocking_send(b"one")
    story.time.pass_time(READ_TIMEOUT_US + 50_000)
    second = story.channel.blocking_send(b"two")
    story.time.pass_time(2 * READ_TIMEOUT_US)
    assert outcome(second) in (b"did two", "ReadTimeout")


def each_caller_gets_its_own_answer(**bug: Any) -> None:
    story = ChannelStory(service_us=1_000, **bug).connect()
    calls = [story.channel.blocking_send(request) for request in NUMBERS]
    story.time.pass_time(READ_TIMEOUT_US // 2)
    assert [outcome(call) for call in calls] == [b"did " + request for request in NUMBERS]


def requests_of_an_old_connection_are_not_handled_after_those_of_a_new_one(**bug: Any) -> None:
    story = ChannelStory(piece_bytes=4, **bug).connect()
    story.time.pass_time(5_000)
    story.network.piece_us = 20_000
    for request in (b"3", b"4"):
        story.channel.send_one_way(request)
    story.network.piece_us = 0
    story.network.reset(leaves_old_bytes=True)
    story.time.pass_time(15_000)
    story.channel.send_one_way(b"5")
    story.time.pass_time(200_000)
    assert story.handled == sorted(story.handled)
    assert story.handled[-1] == b"5"


def requests_are_handled_in_the_order_they_were_received(**bug: Any) -> None:
    story = ChannelStory(**bug).connect()
    for request in (b"long " * 50, b"short"):
        story.channel.send_one_way(request)
    story.time.pass_time(50_000)
    assert story.handled == [b"long " * 50, b"short"]


def requests_that_come_in_pieces_are_handled_whole(**bug: Any) -> None:
    story = ChannelStory(piece_bytes=5, **bug).connect()
    story.channel.send_one_way(b"a request of more than five bytes")
    story.time.pass_time(50_000)
    assert story.handled == [b"a request of more than five bytes"]


# -- the bugs ---------------------------------------------------------------------------------------------------------


class NoReadTimeout(SingleSocketChannel):
    def _has_timed_out(self, now_us: int) -> bool:
        return False

    def _call_is_over(self, call: Any) -> None:
        pass


class ReuseAfterTimeout(SingleSocketChannel):
    def _after_unanswered_call(self) -> None:
        self._next_call()


class NotExclusive(SingleSocketChannel):
    def _is_busy(self) -> bool:
        return False


class OldAndNewTogether(SocketListener):
    def _end_older(self, connection: int, peer: str) -> None:
        pass


class WorkerPool(SocketListener):
    def _submit(self, connection: int, peer: str, payload: bytes) -> None:
        self._timers.after(10 * len(payload), lambda: self._handle((connection, peer, payload)))


class EveryReadIsAMessage(FrameDecoder):
    def feed(self, data: bytes) -> list[bytes]:
        return [data]


class ShortReads(SocketListener):
    def _new_decoder(self) -> FrameDecoder:
        return EveryReadIsAMessage()


@pytest.mark.parametrize(
    ("claim", "bug"),
    [
        pytest.param(
            messages_arrive_in_order_over_one_connection, {"connections": 3}, marks=pytest.mark.rows("SC-M1", "SC-I1")
        ),
        pytest.param(
            a_silent_death_is_noticed_within_the_read_timeout,
            {"channel_type": NoReadTimeout},
            marks=pytest.mark.rows("SC-M2"),
        ),
        pytest.param(
            an_idle_link_keeps_its_connection, {"read_timeout_heartbeats": 1}, marks=pytest.mark.rows("SC-M3")
        ),
        pytest.param(
            a_late_answer_reaches_no_other_request, {"channel_type": ReuseAfterTimeout}, marks=pytest.mark.rows("SC-M4")
        ),
        pytest.param(each_caller_gets_its_own_answer, {"channel_type": NotExclusive}, marks=pytest.mark.rows("SC-M5")),
        pytest.param(
            requests_of_an_old_connection_are_not_handled_after_those_of_a_new_one,
            {"listener_type": OldAndNewTogether},
            marks=pytest.mark.rows("SC-M6"),
        ),
        pytest.param(
            requests_are_handled_in_the_order_they_were_received,
            {"listener_type": WorkerPool},
            marks=pytest.mark.rows("SC-M7"),
        ),
        pytest.param(
            requests_that_come_in_pieces_are_handled_whole,
            {"listener_type": ShortReads},
            marks=pytest.mark.rows("SC-M8"),
        ),
    ],
)
def test_a_channel_bug_breaks_the_claim_that_the_correct_channel_keeps(claim: Claim, bug: Bug) -> None:
    claim()
    with pytest.raises(AssertionError):
        claim(**bug)
