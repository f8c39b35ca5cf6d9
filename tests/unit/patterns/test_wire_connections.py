"""Connections over a network that loses, repeats and holds up messages: in order, or ended at both ends."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.node_communication.socket_channel import Wire
from faultline.systems_under_test.reference.consistent_core.wire_connections import (
    Connections,
    Dial,
    DialAccepted,
    HangUp,
    Segment,
)

NAME = "athens-byzantium-0"


class Ports:
    """The ports of one end: messages that are sent and timers that are set are kept."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.sent: list[Any] = []
        self.timers_set: list[Any] = []
        self.network = self.timers = self.random = self.trace = self

    def send(self, to: str, message: Any) -> None:
        self.sent.append(message)

    def after(self, delay_us: int, callback: Any) -> None:
        self.timers_set.append(callback)

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us

    def sometimes(self, mark: str) -> None:
        """Count no marks."""


class End:
    """The end of a channel: what it is told is kept in order."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.wires: list[Wire] = []

    def opened(self, attempt: int, wire: Wire) -> None:
        self.wires.append(wire)
        self.told.append(("opened", attempt))

    def accepted(self, wire: Wire) -> int:
        self.wires.append(wire)
        return len(self.wires)

    def data_received(self, number: int, data: bytes) -> None:
        self.told.append(data)

    def lost(self, number: int) -> None:
        self.told.append(("lost", number))


def end_of(node_id: str) -> tuple[Any, Connections, End]:
    ports: Any = Ports(node_id)
    return ports, Connections(ports), End()


def listening() -> tuple[Any, Connections, End]:
    ports, connections, end = end_of("byzantium")
    connections.listener = end
    connections.take(NodeId("athens"), Dial(NAME))
    return ports, connections, end


def take(connections: Connections, *messages: Any) -> None:
    for message in messages:
        assert connections.take(NodeId("athens"), message)


@pytest.mark.rows("SC-I1")
def test_segments_that_come_again_are_dropped() -> None:
    _, connections, end = listening()
    take(connections, Segment(NAME, 1, b"a"), Segment(NAME, 1, b"a"), Segment(NAME, 2, b"b"), Segment(NAME, 1, b"a"))
    assert end.told == [b"a", b"b"]


@pytest.mark.rows("SC-I1", "SC-R3")
def test_a_gap_ends_the_connection_at_both_ends_and_nothing_after_it_counts() -> None:
    ports, connections, end = listening()
    take(connections, Segment(NAME, 1, b"a"), Segment(NAME, 3, b"c"), Segment(NAME, 2, b"b"))
    assert end.told == [b"a", ("lost", 1)]
    assert ports.sent == [DialAccepted(NAME), HangUp(NAME), HangUp(NAME)]


def test_a_dial_is_repeated_until_it_is_answered_and_makes_one_connection() -> None:
    ports, connections, end = end_of("athens")
    connections.dial(NodeId("byzantium"), 1, end)
    ports.timers_set.pop()()
    assert ports.sent == [Dial(NAME), Dial(NAME)]
    take(connections, DialAccepted(NAME), DialAccepted(NAME))
    ports.timers_set.pop()()
    assert end.told == [("opened", 1)]
    assert ports.sent == [Dial(NAME), Dial(NAME)]


@pytest.mark.rows("SC-I2")
def test_a_repeated_dial_is_accepted_again_without_a_second_connection() -> None:
    ports, connections, end = listening()
    take(connections, Dial(NAME))
    assert len(end.wires) == 1
    assert ports.sent == [DialAccepted(NAME), DialAccepted(NAME)]


def test_bytes_of_a_connection_that_ended_are_answered_with_its_end() -> None:
    ports, connections, end = listening()
    end.wires[0].close()
    take(connections, Segment(NAME, 1, b"late"))
    assert end.told == []
    assert ports.sent == [DialAccepted(NAME), HangUp(NAME), HangUp(NAME)]


def test_a_node_that_does_not_listen_refuses() -> None:
    ports, connections, _ = end_of("byzantium")
    take(connections, Dial(NAME))
    assert ports.sent == [HangUp(NAME)]


def test_a_dialler_that_is_refused_hears_of_it() -> None:
    _, connections, end = end_of("athens")
    connections.dial(NodeId("byzantium"), 3, end)
    take(connections, HangUp(NAME))
    assert end.told == [("lost", 3)]


def test_other_messages_are_not_taken() -> None:
    _, connections, _ = end_of("athens")
    assert not connections.take(NodeId("byzantium"), object())
