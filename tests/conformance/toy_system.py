"""A small system that exercises each port on request, for the contract that both worlds must keep.

The first member leads and does all the work; the others answer it. Every operation goes to the leader:

- `append` / `append-unsafe`: add a number to the log, with or without fsync, then answer;
- `log`: the numbers in the log, as this process sees them;
- `burst`: send so many numbered messages to the named follower, which answers with the order it saw;
- `timers`: set timers, cancel some, answer with those that fired;
- `ask`: ask the named follower for a sign of life, give up after a while;
- `crash`: append, fsync, answer – and raise before the handler ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from faultline.harness.invariant import Breach, Invariant, Report
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info, ok
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.world.ports import NodeId, NodeStatus, Ports

TIMEOUT_US = 3_000_000


class Request(msgspec.Struct, frozen=True, tag=True):
    number: int
    f: str
    value: Any = None


class Response(msgspec.Struct, frozen=True, tag=True):
    number: int
    value: Any = None


class Numbered(msgspec.Struct, frozen=True, tag=True):
    number: int
    of: int


class Seen(msgspec.Struct, frozen=True, tag=True):
    numbers: list[int]


class Appended(msgspec.Struct, frozen=True, tag=True):
    """Traced when the leader has a number in its log."""

    number: int


class NumbersGrow:
    """Breaks as soon as the same or a smaller number is appended in one life of the run."""

    id = "TOY-I1"
    statement = "Appended numbers grow."
    events = (Appended,)

    def __init__(self) -> None:
        self.newest = -1

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        if event.number <= self.newest:
            sentence = f"{event.number} was appended after {self.newest}."
            report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
        self.newest = max(self.newest, event.number)


GREETING = Numbered(-1, of=0)


class ToyNode:
    def __init__(self, ports: Ports, members: tuple[NodeId, ...]) -> None:
        self.ports = ports
        self.members = members
        self.seen: list[int] = []
        self.waiting: dict[NodeId, tuple[NodeId, int]] = {}
        self.unheard = set(members[1:]) if ports.node_id == members[0] else set()

    def start(self) -> None:
        self.ports.trace.sometimes("started")
        self.greet()

    def greet(self) -> None:
        """Greet every follower until it has answered, as a message to a node that is not up yet is lost."""
        if self.unheard:
            for node in sorted(self.unheard):
                self.ports.network.send(node, GREETING)
            self.ports.timers.after(20_000, self.greet)

    def status(self) -> NodeStatus:
        leads = self.ports.node_id == self.members[0] and not self.unheard
        return NodeStatus(role="leader" if leads else "follower", generation=1, leader=self.members[0])

    def receive(self, source: NodeId, message: Any) -> None:
        match message:
            case Request():
                getattr(self, "on_" + message.f.replace("-", "_"))(source, message)
            case Numbered(number, of):
                self.seen.append(number)
                if number == of - 1:
                    self.ports.network.send(source, Seen(self.seen))
                    self.seen = []
            case Seen([GREETING.number]):
                self.unheard.discard(source)
            case Seen(numbers):
                if source in self.waiting:
                    client, request = self.waiting.pop(source)
                    self.ports.network.send(client, Response(request, numbers))

    def on_append(self, client: NodeId, request: Request) -> None:
        self.ports.storage.append("log", b"%d\n" % request.value)
        self.ports.storage.fsync("log")
        self.ports.trace.emit(Appended(request.value))
        self.ports.network.send(client, Response(request.number))

    def on_append_unsafe(self, client: NodeId, request: Request) -> None:
        self.ports.storage.append("log", b"%d\n" % request.value)
        self.ports.network.send(client, Response(request.number))

    def on_crash(self, client: NodeId, request: Request) -> None:
        self.on_append(client, request)
        raise RuntimeError("asked to crash")

    def on_log(self, client: NodeId, request: Request) -> None:
        whole = self.ports.storage.read("log").decode().splitlines(keepends=True)
        numbers = [int(line) for line in whole if line.endswith("\n")]
        self.ports.network.send(client, Response(request.number, numbers))

    def on_burst(self, client: NodeId, request: Request) -> None:
        follower, count = NodeId(request.value[0]), request.value[1]
        self.waiting[follower] = (client, request.number)
        for number in range(count):
            self.ports.network.send(follower, Numbered(number, count))

    def on_ask(self, client: NodeId, request: Request) -> None:
        self.on_burst(client, Request(request.number, "burst", [request.value, 1]))

    def on_timers(self, client: NodeId, request: Request) -> None:
        fired: list[str] = []
        timers = self.ports.timers
        timers.after(30_000, lambda: fired.append("late"))
        timers.after(10_000, lambda: fired.append("early"))
        timers.after(20_000, lambda: fired.append("cancelled")).cancel()
        every = timers.every(8_000, lambda: fired.append("again"))
        timers.after(20_500, every.cancel)
        timers.after(60_000, lambda: self.ports.network.send(client, Response(request.number, fired)))


class ToyClient:
    def __init__(self, ports: Ports, members: tuple[NodeId, ...]) -> None:
        self.ports = ports
        self.leader = members[0]
        self.number = 0
        self.done: Callable[[Outcome], None] | None = None

    def start(self) -> None:
        """Nothing to prepare."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        self.number += 1
        number, self.done = self.number, done
        self.ports.network.send(self.leader, Request(number, operation.f, operation.value))
        self.ports.timers.after(TIMEOUT_US, lambda: self.finish(number, info("timeout")))

    def receive(self, source: NodeId, message: Any) -> None:
        self.finish(message.number, ok(message.value))

    def finish(self, number: int, outcome: Outcome) -> None:
        if number == self.number and self.done is not None:
            done, self.done = self.done, None
            done(outcome)


class ToySystem:
    name = "toy"
    promise = "none"
    summary = "exercises the ports"
    patterns: tuple[str, ...] = ()
    functions = ("append", "append-unsafe", "log", "burst", "timers", "ask", "crash")
    options: Mapping[str, OptionDescription] = {}
    planted_bugs: Mapping[str, PlantedBug] = {}
    messages: tuple[type[msgspec.Struct], ...] = (Request, Response, Numbered, Seen)

    def node(self, ports: Ports, members: tuple[NodeId, ...], options: object, planted_bugs: object) -> ToyNode:
        return ToyNode(ports, members)

    def client(
        self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, options: object, planted_bugs: object
    ) -> ToyClient:
        return ToyClient(ports, members)

    def invariants(self) -> list[Invariant]:
        return [NumbersGrow()]


class BrokenSystem(ToySystem):
    """A system whose nodes cannot be built."""

    name = "broken"

    def node(self, ports: Ports, members: tuple[NodeId, ...], options: object, planted_bugs: object) -> ToyNode:
        raise ValueError("the data folder is from another planet")


class LeaderlessSystem(ToySystem):
    """A system whose nodes come up but never agree on a leader."""

    name = "leaderless"

    def node(self, ports: Ports, members: tuple[NodeId, ...], options: object, planted_bugs: object) -> ToyNode:
        node = ToyNode(ports, members)
        node.status = lambda: NodeStatus(role="follower")
        return node
