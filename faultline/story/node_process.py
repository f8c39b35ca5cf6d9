"""The process of one node of the story: the node over real files, which does what the story tells it, over TCP.

The story decides when a message arrives, when a timer rings and what the clock shows, as on a cluster in one process.
The node answers with what it sent, reported and set: it has no other link to the world. When the connection ends, for
whatever reason, the process ends.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any, NamedTuple, cast

from faultline.harness.system import NodeSystem
from faultline.harness.world.framing import LENGTH_BYTES
from faultline.harness.world.local.storage import BufferedStorage, Disk
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import NodeId
from faultline.testing.fake_ports import FakeTimer
from faultline.testing.hand_cranked import ClusterPorts
from faultline.testing.memory_storage import MemoryStorage

__all__ = ["Answer", "Asked", "Order", "TimerSet", "coded", "look", "receive", "ring", "serve", "start"]


class Order(NamedTuple):
    """All that a process needs to host its node: the address of the story, the system, and the folder of its files."""

    address: tuple[str, int]
    key: bytes
    system: NodeSystem
    name: str
    members: tuple[NodeId, ...]
    options: Mapping[str, str]
    planted_bugs: frozenset[str]
    ports_type: type[ClusterPorts]
    timeout_offset_us: int
    folder: Path


class Asked(NamedTuple):
    """One step of the node: call `act` with the node and `arguments`, at these times of its clocks."""

    act: Callable[..., Any]
    arguments: tuple[Any, ...]
    now_us: int
    wall_offset_us: int


class TimerSet(NamedTuple):
    """A timer that waits in the process, under its number there."""

    number: int
    due_us: int
    interval_us: int


class Answer(NamedTuple):
    """The outcome of one step: effects in their order, the timers that wait now, and its result or its error."""

    effects: list[tuple[str, Any]]
    timers: list[TimerSet]
    result: Any
    error: Exception | None


class _Outlet:
    """The cluster as the ports in the process see it: it keeps for the answer what the node does."""

    def __init__(self, codec: MessageCodec, timeout_offset_us: dict[str, int]) -> None:
        self.effects: list[tuple[str, Any]] = []
        self.marks: list[str] = []
        self.timeout_offset_us = timeout_offset_us
        self._codec = codec

    def post(self, source: str, target: str, message: Any) -> None:
        """Keep a message, as it crosses the wire."""
        self.effects.append(("post", (target, coded(self._codec, message))))

    def observe(self, node: str, event: Any) -> None:
        """Keep an event."""
        self.effects.append(("observe", event))


class _Hosted:
    """The node, its ports, and its timers by number."""

    def __init__(self, order: Order) -> None:
        self.codec = MessageCodec(order.system.messages)
        self._outlet = _Outlet(self.codec, {order.name: order.timeout_offset_us})
        self.ports = order.ports_type(self._outlet, order.name)
        disk = Disk(order.folder)
        storage = BufferedStorage(lambda commit: disk.carry_out([commit]), disk.content())
        # Ports of a story keep their files in memory; a process has those of the local world in their place.
        self.ports.storage = cast("MemoryStorage", storage)
        self.node = order.system.node(self.ports, order.members, order.options, order.planted_bugs)
        self._timers: dict[int, FakeTimer] = {}

    def carry_out(self, asked: Asked) -> Answer:
        """Take one step."""
        self._outlet.effects = []
        self._outlet.marks.clear()
        self.ports.now_us, self.ports.wall_offset_us = asked.now_us, asked.wall_offset_us
        result, error = None, None
        try:
            result = asked.act(self, *asked.arguments)
        except Exception as failed:
            error = failed
        known = {timer: number for number, timer in self._timers.items()}
        first = max(self._timers, default=0) + 1
        self._timers = {known.get(timer, first + at): timer for at, timer in enumerate(self.ports.waiting)}
        timers = [TimerSet(number, timer.due_us, timer.interval_us) for number, timer in self._timers.items()]
        effects = [*self._outlet.effects, *(("mark", mark) for mark in self._outlet.marks)]
        return Answer(effects, timers, result, error)

    def ring(self, number: int) -> None:
        """Let the timer of this number ring."""
        self.ports.ring(self._timers[number])


def start(hosted: _Hosted) -> None:
    """Start the node over the files of its folder."""
    hosted.node.start()


def receive(hosted: _Hosted, source: NodeId, message: bytes) -> None:
    """Deliver a message."""
    hosted.node.receive(source, hosted.codec.decode(message))


def ring(hosted: _Hosted, number: int) -> None:
    """Let a timer ring."""
    hosted.ring(number)


def look(hosted: _Hosted, view: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `view` sees of the node, or does with it."""
    return view(hosted.node, *arguments)


def coded(codec: MessageCodec, message: Any) -> bytes:
    """Return the message in the form in which nodes of the local world send it."""
    return codec.encode_frame(message)[LENGTH_BYTES:]


def serve(order: Order) -> None:
    """Host the node until the story closes the connection."""
    # An interrupt is for the story, which then ends its nodes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Client(order.address, authkey=order.key) as line:
        hosted = _Hosted(order)
        while True:
            try:
                asked = line.recv()
            except EOFError:
                return
            line.send(hosted.carry_out(asked))
