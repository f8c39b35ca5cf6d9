"""What adapters of real stores have in common: everything of a `HostedStore` that has an answer for most of them.

An adapter says what its members' command line is, how one of them is asked for its role, and how a client speaks to
it; files, preparation, forming and provisioning are there for stores that need them. The life of a member is told at
`faultline.harness.system.HostedStore`.
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
    """What may happen in it, each with the `log` by which it is told."""
    starts_in_order: ClassVar[bool] = False
    serving_timeout_s: ClassVar[float] = 20.0
    steady_s: ClassVar[float] = 0.0
    password: str = ""
    """The password of the run, see `GuardedStore`; adapters of stores that ask for none leave it alone."""

    @abstractmethod
    def command(self, place: StorePlace) -> Sequence[str]:
        """The command line of the member, which stays in the foreground and logs to its standard output."""

    @abstractmethod
    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """What the member at `address` says of itself. Raises TimeoutError or OSError when it does not answer."""

    @abstractmethod
    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """A client that talks to `node` first."""

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """None."""
        return {}

    def preparation(self, place: StorePlace) -> str:
        """Nothing."""
        return ""

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:  # noqa: B027  # few need it
        """The members know each other from their command lines."""

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:  # noqa: B027  # few need it
        """Keys need no table."""

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """The leader of the highest generation serves."""
        leading = leader_of(statuses)
        return f"{leading} leads" if leading else None

    def node(
        self, ports: Ports, members: tuple[NodeId, ...], options: Mapping[str, str], planted_bugs: frozenset[str]
    ) -> Node:
        """There is none: the store is a program of its own."""
        self._refuse()

    def client(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        node: NodeId,
        options: Mapping[str, str],
        planted_bugs: frozenset[str],
    ) -> NoReturn:
        """There is none: the store's clients speak its own protocol."""
        self._refuse()

    def invariants(self) -> list[Invariant]:
        """None: nobody looks into the store, its clients are enough."""
        return []

    def _refuse(self) -> NoReturn:
        raise UsageError(f"{self.name} runs on hosts only.", "Use --hosts namespaces:3.")
