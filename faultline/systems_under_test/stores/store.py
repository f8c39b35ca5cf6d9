"""The common part of adapters of real stores: all methods of a `HostedStore` that are the same for most of them.

An adapter gives the command line of its members, asks a member for its role, and makes clients. Files, preparation,
forming and provisioning are for stores that need them. `faultline.harness.system.HostedStore` describes the life of a
member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NoReturn

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.feature import Feature
from faultline.harness.invariant import Invariant
from faultline.harness.system import OptionDescription, PlantedBug, StoreClient, StorePlace
from faultline.harness.world.leadership import leader_of
from faultline.harness.world.ports import Node, NodeId, NodeStatus, Ports

__all__ = ["RealStore"]


class RealStore(ABC):
    """A `HostedStore` whose members all start at once, need no files and form a cluster by themselves."""

    name: ClassVar[str]
    promise: ClassVar[str]
    summary: ClassVar[str]
    functions: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, OptionDescription]]
    programs: ClassVar[Mapping[str, str]]
    up_port: ClassVar[int]
    client_port: ClassVar[int]

    patterns: ClassVar[tuple[str, ...]] = ()
    planted_bugs: ClassVar[Mapping[str, PlantedBug]] = {}
    messages: ClassVar[tuple[type[msgspec.Struct], ...]] = ()
    libraries: ClassVar[Mapping[str, str]] = {}
    features: ClassVar[tuple[Feature, ...]] = ()
    """The features of the store, each with the `log` by which it is noticed."""
    starts_in_order: ClassVar[bool] = False
    serving_timeout_s: ClassVar[float] = 20.0
    steady_s: ClassVar[float] = 0.0
    password: str = ""
    """The password of the run (`GuardedStore`); adapters of stores without passwords do not use it."""

    @abstractmethod
    def command(self, place: StorePlace) -> Sequence[str]:
        """Return the command line of the member, which stays in the foreground and logs to its standard output."""

    @abstractmethod
    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the member's own report of its status. Raises TimeoutError or OSError when it does not answer."""

    @abstractmethod
    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """Return a client that talks to `node` first."""

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return no files."""
        return {}

    def preparation(self, place: StorePlace) -> str:
        """Return no commands: the store needs no preparation."""
        return ""

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:  # noqa: B027  # few need it
        """Do nothing: the members know each other from their command lines."""

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:  # noqa: B027  # few need it
        """Do nothing: keys need no table."""

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the store serves, once a member leads the highest generation."""
        leading = leader_of(statuses)
        return f"{leading} leads" if leading else None

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """Refuse: the store is a program of its own, and not a node."""
        self._refuse()

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> NoReturn:
        """Refuse: the store's clients speak its own protocol, on hosts only."""
        self._refuse()

    def invariants(self) -> list[Invariant]:
        """Return no invariants: a store is judged by its clients alone."""
        return []

    def _refuse(self) -> NoReturn:
        raise UsageError(f"{self.name} runs on hosts only.", "Use --hosts namespaces:3.")
