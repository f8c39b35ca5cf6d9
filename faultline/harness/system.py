"""How a system plugs in.

A `NodeSystem` is written against the ports (`faultline.harness.world.ports`) and so runs in both worlds: it builds
nodes and clients from ports. It says what it promises, which options it has, and which planted bugs it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from faultline.harness.invariant import Invariant
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Node, NodeId, Ports

__all__ = ["Mutant", "NodeSystem", "OptionDescription", "PortClient"]


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug: its name, the pattern it breaks, its requirement id, what it does, how it shows, and where.

    `options` are forced on when the bug is (a wall-clock lease needs lease reads); `campaign` names the campaign that
    catches it; `caught_by` the checkers or invariants that may; `worlds` where it can show, `why_not` for the rest.
    """

    name: str
    pattern: str
    id: str
    summary: str
    shows_as: str
    campaign: str
    caught_by: tuple[str, ...]
    options: dict[str, str] = {}
    worlds: tuple[str, ...] = ("simulated", "local")
    why_not: str = ""


class OptionDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a system: its default, what it does, and the values it takes.

    Those are the `choices`; without any they are whole numbers, or any text if `is_text`.
    """

    default: str
    choices: tuple[str, ...] = ()
    summary: str = ""
    is_text: bool = False


class PortClient(Protocol):
    """An event-driven client of a NodeSystem: one logical client, one operation at a time."""

    def start(self) -> None:
        """Called once, when the client's ports work."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`; call `done` exactly once, at the latest after the client's own timeout."""

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from a node."""


class NodeSystem(Protocol):
    """A system of nodes and clients written against the ports."""

    name: str
    promise: str
    summary: str
    patterns: tuple[str, ...]
    functions: tuple[str, ...]
    """What its clients can be asked to do: `read`, `write`, `cas`, ..."""
    options: Mapping[str, OptionDescription]
    mutants: Mapping[str, Mutant]
    messages: tuple[type[msgspec.Struct], ...]
    """Every message type that crosses the network, tagged: what the real transport encodes and decodes."""

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], mutants: frozenset[str]
    ) -> Node:
        """A node with empty memory over `ports`; `members` are all nodes of the cluster, itself included."""

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        mutants: frozenset[str],
    ) -> PortClient:
        """A client that talks to `node` first."""

    def invariants(self) -> list[Invariant]:
        """Fresh instances of the system's invariants, for one run."""
