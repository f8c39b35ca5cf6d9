"""A cluster that is cranked by hand: a test decides which message is delivered, when, and which timer rings.

    cluster = HandCrankedCluster(MyStore(), size=3)
    cluster.cut("cyrene")
    cluster.hand("client-0", "athens", Write("k", 1))
    cluster.deliver()                                         # and all messages that it causes
    assert cluster.inbox["client-0"] == [("athens", Written())]
    cluster.kill("athens")
    assert cluster.broken() == []                             # no invariant of the system was breached

Every node has a monotonic clock of its own, so that one can time out while the others see no time pass. Messages wait
in one queue until the test delivers them; fsyncs are instant, and a kill loses what was not fsynced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from faultline.harness.invariant import Breach
from faultline.harness.plan import NODE_NAMES
from faultline.harness.system import NodeSystem
from faultline.harness.world.ports import Node, NodeId
from faultline.testing.fake_ports import FakePorts

__all__ = ["ClusterPorts", "HandCrankedCluster", "Matcher", "Surroundings"]

Matcher = Callable[[str, str, Any], bool]
"""A filter: given source, target and message, return whether to select it."""

_DELIVERIES_MAX = 10_000


class Surroundings(Protocol):
    """The cluster as the ports of its nodes see it."""

    marks: list[str]

    def post(self, source: str, target: str, message: Any) -> None:
        """Take a message."""

    def observe(self, node: str, event: Any) -> None:
        """Take a traced event."""


class ClusterPorts(FakePorts):
    """The ports of a node of a cluster: its messages wait in the cluster's queue, its events are checked there."""

    def __init__(self, cluster: Surroundings, name: str) -> None:
        super().__init__(name)
        self.cluster = cluster
        self.marks = cluster.marks

    def send(self, to: NodeId, message: Any) -> None:
        """Put `message` into the queue of the cluster."""
        self.cluster.post(self.node_id, to, message)

    def send_ahead(self, to: NodeId, message: Any) -> None:
        """Do the same as `send`."""
        self.cluster.post(self.node_id, to, message)

    def emit(self, event: Any) -> None:
        """Show the event to the invariants of the system."""
        self.cluster.observe(self.node_id, event)


class HandCrankedCluster:
    """Nodes of `system`, the `queue` of messages between them, and their traces.

    `size` is the number of nodes, which are then called athens, byzantium, cyrene, …, or their names.
    `options` are the system's, the rest have their defaults; `planted_bugs` are planted bugs, whose options come first.
    Messages to names that are no members, such as clients, arrive in `inbox`. `nodes` holds the nodes that live.
    """

    ports_type: type[ClusterPorts] = ClusterPorts

    def __init__(
        self, system: NodeSystem, size: int | Sequence[str] = 3, planted_bugs: Iterable[str] = (), **options: str
    ) -> None:
        self.system = system
        self.planted_bugs = frozenset(planted_bugs)
        self.options = {
            name: value for bug in planted_bugs for name, value in system.planted_bugs[bug].options.items()
        } | options
        self.members = tuple(map(NodeId, NODE_NAMES[:size] if isinstance(size, int) else size))
        self.queue: list[tuple[str, str, Any]] = []
        self.cuts: set[tuple[str, str]] = set()
        self.events: list[tuple[str, Any]] = []
        self.marks: list[str] = []
        self.breaches: list[Breach] = []
        self.inbox: dict[str, list[tuple[str, Any]]] = {}
        self.invariants = system.invariants()
        self.ports: dict[str, ClusterPorts] = {name: self.ports_type(self, name) for name in self.members}
        self.nodes: dict[str, Any] = {}
        for name in self.members:
            self.start(name)

    def start(self, name: str) -> None:
        """Start the node `name` over its storage."""
        node: Node = self.system.node(self.ports[NodeId(name)], self.members, self.options, self.planted_bugs)
        self.nodes[name] = node
        node.start()

    def kill(self, name: str) -> None:
        """Lose the node's memory, its timers, its unsynced bytes, and the messages on their way to it."""
        del self.nodes[name]
        self.ports[NodeId(name)].storage.crash()
        self.ports[NodeId(name)].forget_timers()
        self.drop(lambda _, target, __: target == name)

    def restart(self, name: str) -> None:
        """Start the node `name` again, after a kill if it lives."""
        if name in self.nodes:
            self.kill(name)
        self.start(name)

    def look(self, name: str, view: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `view` sees of the node `name`: a function of a module, called with the node."""
        return view(self.nodes[name], *arguments)

    def close(self) -> None:
        """End what the nodes need outside of this process: nothing, as they live in it."""

    def post(self, source: str, target: str, message: Any) -> None:
        """Put a message into the queue, unless its link is cut."""
        if (source, target) not in self.cuts:
            self.queue.append((source, target, message))

    def cut(self, one: str, *others: str) -> None:
        """Cut `one` off from `others` (from all members by default), both ways, and lose messages on the way."""
        for other in others or self.members:
            self.cuts |= {(one, other), (other, one)}
        self.drop(lambda source, target, _: (source, target) in self.cuts)

    def split(self, *group: str) -> None:
        """Cut `group` off from the rest."""
        rest = [name for name in self.members if name not in group]
        for one in group:
            self.cut(one, *rest)

    def heal(self) -> None:
        """Restore all links."""
        self.cuts.clear()

    def drop(self, match: Matcher) -> None:
        """Lose the matching messages of the queue."""
        self.queue = [item for item in self.queue if not match(*item)]

    def take(self, match: Matcher) -> list[tuple[str, str, Any]]:
        """Remove the matching messages from the queue and return them, to be delivered later by `hand`."""
        taken = [item for item in self.queue if match(*item)]
        self.drop(match)
        return taken

    def hand(self, source: str, target: str, message: Any) -> None:
        """Deliver this message now, to a node that lives or to the inbox of a client."""
        if target in self.nodes:
            self.nodes[target].receive(NodeId(source), message)
        elif target not in self.members:
            self.inbox.setdefault(target, []).append((source, message))

    def step(self, match: Matcher) -> None:
        """Deliver the first matching message, and nothing else. Raise StopIteration when none matches."""
        item = next(item for item in self.queue if match(*item))
        self.queue.remove(item)
        self.hand(*item)

    def deliver(self, match: Matcher = lambda *_: True) -> None:
        """Deliver the matching messages, and those they cause, until none is left; AssertionError if they never end."""
        for _ in range(_DELIVERIES_MAX):
            item = next((item for item in self.queue if match(*item)), None)
            if item is None:
                return
            self.queue.remove(item)
            self.hand(*item)
        raise AssertionError(f"after {_DELIVERIES_MAX} deliveries messages still cause messages")

    def pass_time(self, duration_us: int) -> None:
        """Let time pass for all nodes alike, with timers, and messages delivered at once."""
        ends = {name: ports.now_us + duration_us for name, ports in self.ports.items()}
        while due := self._due(ends):
            left_us, name, timer = min(due, key=lambda each: each[:2])
            for other, ports in self.ports.items():
                ports.now_us = max(ports.now_us, ends[other] + left_us)
            self.ports[name].ring(timer)
            self.deliver()
        for name, ports in self.ports.items():
            ports.now_us = ends[name]

    def _due(self, ends: dict[str, int]) -> list[tuple[int, str, Any]]:
        """Return the next timer of each living node that rings before its end, with the time left then, as ≤ 0."""
        return [
            (timer.due_us - ends[name], name, timer)
            for name, ports in self.ports.items()
            if name in self.nodes and (timer := ports.next_timer()) is not None and timer.due_us <= ends[name]
        ]

    def observe(self, node: str, event: Any) -> None:
        """Note a traced event and check the invariants of the system on it."""
        self.events.append((node, event))
        for invariant in self.invariants:
            if isinstance(event, invariant.events):
                invariant.observe(self.ports[NodeId(node)].now_us, node, event, self.breaches.append)

    def events_of(self, kind: type) -> list[tuple[str, Any]]:
        """Return the traced events of this type with their nodes."""
        return [(node, event) for node, event in self.events if isinstance(event, kind)]

    def broken(self) -> list[str]:
        """Return the invariants that were breached, by name."""
        return sorted({breach.invariant for breach in self.breaches})
