"""Systems that wrap another one and observe it without its knowledge.

`Counted` counts the completions of each operation and forwards only the first, so that a run goes on after a mistake;
`HalfDeaf` lets half of the clients send and not receive; `Overheard` keeps one message of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.system import NodeSystem, PortClient
from faultline.harness.world.ports import Node, NodeId, Ports

__all__ = ["Counted", "HalfDeaf", "Overheard", "Wrapped"]


class Wrapped:
    """A system that forwards everything to another one; probes override `node` or `client`."""

    def __init__(self, inner: NodeSystem) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """Return the node of the system inside."""
        return self.inner.node(ports, members, options, planted_bugs)

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PortClient:
        """Return the client of the system inside."""
        return self.inner.client(ports, members, node, options, planted_bugs)


class Counted(Wrapped):
    """A system with `completions`: for every operation invoked, the number of calls of its `done`."""

    def __init__(self, inner: NodeSystem) -> None:
        super().__init__(inner)
        self.completions: list[tuple[Operation, list[Outcome]]] = []

    def client(self, *arguments: Any) -> PortClient:
        """Return a client whose completions are counted."""
        return _CountedClient(super().client(*arguments), self.completions)


class _CountedClient:
    def __init__(self, inner: PortClient, completions: list[tuple[Operation, list[Outcome]]]) -> None:
        self.start = inner.start
        self.receive = inner.receive
        self._inner = inner
        self._completions = completions

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        outcomes: list[Outcome] = []
        self._completions.append((operation, outcomes))

        def count(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == 1:
                done(outcome)

        self._inner.invoke(operation, count)


class HalfDeaf(Wrapped):
    """A system in which every other client goes deaf after its first success: it sends, and never receives again.

    Nodes carry out the requests of deaf clients, whose answers are lost; other clients can read the effects. `unheard`
    are the operations that a deaf client ended, with their outcomes.
    """

    def __init__(self, inner: NodeSystem) -> None:
        super().__init__(inner)
        self.unheard: list[tuple[Operation, Outcome]] = []
        self._opened = 0

    def client(self, *arguments: Any) -> PortClient:
        """Return a client that hears, or one that will go deaf."""
        self._opened += 1
        client = super().client(*arguments)
        return _DeafClient(client, self.unheard) if self._opened % 2 else client


class _DeafClient:
    def __init__(self, inner: PortClient, unheard: list[tuple[Operation, Outcome]]) -> None:
        self.start = inner.start
        self._inner = inner
        self._unheard = unheard
        self._is_deaf = False

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        was_deaf = self._is_deaf

        def note(outcome: Outcome) -> None:
            if was_deaf:
                self._unheard.append((operation, outcome))
            self._is_deaf = self._is_deaf or outcome.kind == "ok"
            done(outcome)

        self._inner.invoke(operation, note)

    def receive(self, source: NodeId, message: Any) -> None:
        if not self._is_deaf:
            self._inner.receive(source, message)


class Overheard(Wrapped):
    """A system that keeps in `heard` the first message of each type, as nodes and clients receive them."""

    def __init__(self, inner: NodeSystem) -> None:
        super().__init__(inner)
        self.heard: dict[type, Any] = {}

    def node(self, *arguments: Any) -> Node:
        """Return a node whose messages are overheard."""
        return _OverheardNode(super().node(*arguments), self.heard)

    def client(self, *arguments: Any) -> PortClient:
        """Return a client whose messages are overheard."""
        return _OverheardClient(super().client(*arguments), self.heard)


class _OverheardNode:
    def __init__(self, inner: Node, heard: dict[type, Any]) -> None:
        self.start = inner.start
        self.status = inner.status
        self._inner = inner
        self._heard = heard

    def receive(self, source: NodeId, message: Any) -> None:
        self._heard.setdefault(type(message), message)
        self._inner.receive(source, message)


class _OverheardClient:
    def __init__(self, inner: PortClient, heard: dict[type, Any]) -> None:
        self.start = inner.start
        self.invoke = inner.invoke
        self._inner = inner
        self._heard = heard

    def receive(self, source: NodeId, message: Any) -> None:
        self._heard.setdefault(type(message), message)
        self._inner.receive(source, message)
