"""How a system plugs in.

A `NodeSystem` is written against the ports (`faultline.harness.world.ports`) and so runs in both worlds: it builds
nodes and clients from ports. It says what it promises, which options it has, and which planted bugs it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from faultline.harness.invariant import Invariant
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Node, NodeId, NodeStatus, Ports

__all__ = ["HostedStore", "Mutant", "NodeSystem", "OptionDescription", "PortClient", "StoreClient"]


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


class StoreClient(Protocol):
    """A client of a real store: one logical client, one operation at a time, in whatever thread it is called from."""

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and wait for its outcome, no longer than the client's own timeout."""

    def close(self) -> None:
        """Hang up."""


@runtime_checkable
class HostedStore(NodeSystem, Protocol):
    """A store that is a program of its own: it runs on hosts only, and nothing in it knows of ports.

    `program` is what a host must have and `package` what brings it there; the store takes connections on `up_port`
    once it runs, and serves clients on `client_port`.
    """

    program: str
    package: str
    up_port: int
    client_port: int

    def command(
        self, node: str, addresses: Mapping[str, str], data_folder: str, options: Mapping[str, str]
    ) -> list[str]:
        """The command line of the process called `node`, for its first start and each later one."""

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """What the process at `address` says of itself. Raises TimeoutError or OSError when it does not answer."""

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """A client that talks to `node` first."""
