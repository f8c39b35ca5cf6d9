"""The protocols by which a system plugs in.

A `NodeSystem` is written against the ports (`faultline.harness.world.ports`) and so runs in every world: it builds
nodes and clients from ports. It declares its promise, its options, and its planted bugs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from faultline.harness.invariant import Invariant
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Node, NodeId, NodeStatus, Ports

__all__ = [
    "ConnectingClient",
    "GuardedStore",
    "HasUsualTest",
    "HostedStore",
    "NodeSystem",
    "OptionDescription",
    "PlantedBug",
    "PortClient",
    "ServesByOption",
    "StoreClient",
    "StorePlace",
    "functions_options",
    "options_changed",
    "options_missing",
    "planted_options",
]


class PlantedBug(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug: its name, the pattern it breaks, its requirement id, its effect, its symptoms, and where they
    show.

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
    """One option of a system: its default, its effect, and the values it takes.

    The values are the `choices`; without any they are whole numbers, or any text if `is_text`.
    """

    default: str
    choices: tuple[str, ...] = ()
    summary: str = ""
    is_text: bool = False


class PortClient(Protocol):
    """An event-driven client of a NodeSystem: one logical client, one operation at a time."""

    def start(self) -> None:
        """Start the client; the world calls this once, when the client's ports work."""

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
    """The functions that its clients serve: `read`, `write`, `cas`, ... (see `ServesByOption` for conditions)."""
    options: Mapping[str, OptionDescription]
    planted_bugs: Mapping[str, PlantedBug]
    messages: tuple[type[msgspec.Struct], ...]
    """Every message type that crosses the network, tagged: the real transport encodes and decodes them."""

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """Return a node with empty memory over `ports`; `members` are all nodes of the cluster, itself included."""

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> PortClient:
        """Return a client that talks to `node` first."""

    def invariants(self) -> list[Invariant]:
        """Return fresh instances of the system's invariants, for one run."""


@runtime_checkable
class ServesByOption(Protocol):
    """A system that serves some of its functions only under certain options."""

    function_options: Mapping[str, Mapping[str, str]]
    """The options that a function needs, `{"acquire": {"leases": "on"}}`; other functions are always served."""


@runtime_checkable
class HasUsualTest(Protocol):
    """A system with a workload and a number of nodes of its own, for users who name neither."""

    usual_workload: str
    usual_nodes: int


def options_changed(system: NodeSystem, options: Mapping[str, str]) -> dict[str, str]:
    """Return those of `options` that `system` has otherwise by default."""
    described = system.options
    return {name: value for name, value in options.items() if name in described and described[name].default != value}


def options_missing(system: NodeSystem, function: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that `function` of `system` needs and `options` does not give; empty when it is served."""
    needed = system.function_options.get(function, {}) if isinstance(system, ServesByOption) else {}
    return {name: value for name, value in needed.items() if options.get(name) != value}


def functions_options(system: NodeSystem, functions: Iterable[str]) -> dict[str, str]:
    """Return the options with which `system` serves all these functions."""
    return {name: value for f in functions for name, value in options_missing(system, f, {}).items()}


def planted_options(system: NodeSystem, planted_bugs: Iterable[str]) -> dict[str, str]:
    """Return the options that those of `planted_bugs` which `system` has force on."""
    known = [system.planted_bugs[name] for name in planted_bugs if name in system.planted_bugs]
    return {name: value for planted_bug in known for name, value in planted_bug.options.items()}


class StoreClient(Protocol):
    """A client of a real store: one logical client, one operation at a time, in whatever thread it is called from."""

    def invoke(self, operation: Operation) -> Outcome:
        """Perform `operation` and wait for its outcome, no longer than the client's own timeout."""

    def close(self) -> None:
        """Close the connection, if there is one."""


@runtime_checkable
class ConnectingClient(StoreClient, Protocol):
    """A client that knows whether it has a connection, and can be told to connect before it gets an operation.

    After an operation that failed the harness lets such a client connect first, and backs off between attempts. With
    other clients it only learns from `NOT_CONNECTED` that there was no connection.
    """

    @property
    def is_connected(self) -> bool:
        """True when the next operation would find a connection."""

    def connects(self) -> bool:
        """Try to connect once, without sending an operation; return whether there is a connection now."""


class StorePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of one process of a store: its name, all members' addresses by name, its folder on its host.

    `folder` is the node's own and is emptied before a run; `data_folder` in it is the disk that faults strike.
    """

    node: str
    addresses: dict[str, str]
    folder: str
    options: dict[str, str]

    @property
    def address(self) -> str:
        """The address of this member."""
        return self.addresses[self.node]

    @property
    def members(self) -> tuple[str, ...]:
        """The names of all members, in order."""
        return tuple(self.addresses)

    @property
    def data_folder(self) -> str:
        """The folder in which the member keeps the data that must survive a crash."""
        return f"{self.folder}/data"


@runtime_checkable
class GuardedStore(Protocol):
    """A hosted store that admits only clients with the password of the run: it gets the password before any other call.

    It writes the password only to files that other users cannot read, and never to a command line.
    """

    password: str


@runtime_checkable
class HostedStore(NodeSystem, Protocol):
    """A store that is a program of its own: it runs on hosts only, and uses no ports.

    The life of a member: its `files` are written and its `preparation` is run once, in its folder, before its first
    start; then `command` is started, now and after every kill. All its descendant processes belong to the member: they
    are killed and stopped together. Once every member takes connections on its `up_port`, `form` makes them a cluster;
    once the cluster serves, `provision` creates the objects of the workloads (a table, a bucket). Clients follow.
    """

    programs: Mapping[str, str]
    """The programs that a host must have, each as a command with the Debian package that brings it."""
    libraries: Mapping[str, str]
    """The Python modules that its clients import late, and the optional extra of Faultline that brings each."""
    up_port: int
    client_port: int
    starts_in_order: bool
    """True when each member is prepared and started only after the one before it is up."""
    serving_timeout_s: float
    """The time that the cluster may take to serve, at first and after the heal."""
    steady_s: float
    """The time that it must serve without a break after the heal, before the run goes on."""

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the configuration: the contents of files by their names in the member's folder."""

    def preparation(self, place: StorePlace) -> str:
        """Return a shell script for the member's folder (as `mkdir` and `initdb`); empty when there is nothing to
        do."""

    def command(self, place: StorePlace) -> Sequence[str]:
        """Return the command line of the member, which stays in the foreground and logs to its standard output."""

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Join the members, all of which are up, to a cluster. Raise OSError or HarnessError."""

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Create the objects that the workloads need, through the cluster, which serves. Raise OSError or
        HarnessError."""

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the status that the member at `address` reports. Raise TimeoutError or OSError when it does not
        answer."""

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Return the serving members, in words, from the members' reports (None: no answer); None while no member
        serves.

        A run begins, and goes on after the heal, once this is not None; so not before the cluster is whole again.
        """

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """Return a client that talks to `node` first."""
