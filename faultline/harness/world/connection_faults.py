"""Faults of connections and of whole network links: what only worlds with real connections can break.

They differ from a cut in what the nodes notice. A cut is silence; a killed connection is an error at once, after which
a new one may be opened; a reset goes on refusing while it lasts, as a firewall does that rejects instead of dropping;
and a link that is down cuts its node off from everybody, clients included, as a pulled cable does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.ports import Link, NodeId

__all__ = ["ConnectionFaults", "NoConnectionFaults", "NoLinkDown"]


class ConnectionFaults(Protocol):
    """The part of the fault port that acts on connections and network links. Actions are idempotent."""

    def connections(self, link: Link) -> frozenset[str]:
        """Probe: the connections that are open over `link`, by names that no later connection bears."""

    def kill_connections(self, links: Iterable[Link]) -> None:
        """End all connections that are open over `links`; nothing keeps new ones from being opened."""

    def reset_connections(self, links: Iterable[Link]) -> None:
        """From now on answer everything that is sent by connection over `links` with a reset, also attempts to open."""

    def admit_connections(self, links: Iterable[Link]) -> None:
        """Let connections be over `links` again."""

    def resets_connections(self, links: Iterable[Link]) -> frozenset[Link]:
        """Probe: those of `links` on which an attempt to open a connection is answered with a reset."""

    def take_link_down(self, node: NodeId) -> None:
        """Let the node's network link be down: it hears nobody and nobody hears it."""

    def bring_link_up(self, node: NodeId) -> None:
        """Let the node's network link be up again."""

    def is_link_down(self, node: NodeId) -> bool:
        """Probe: is the node's network link down?"""


class NoLinkDown:
    """For worlds whose nodes have no network link of their own: refuses by name."""

    def take_link_down(self, node: NodeId) -> None:
        """Refuse."""
        _refuse("Links cannot be taken down in this world")

    def bring_link_up(self, node: NodeId) -> None:
        """No link is ever down."""

    def is_link_down(self, node: NodeId) -> bool:
        """No link is ever down."""
        return False


class NoConnectionFaults(NoLinkDown):
    """For worlds whose messages travel without connections: refuses by name."""

    def connections(self, link: Link) -> frozenset[str]:
        """There are none."""
        return frozenset()

    def kill_connections(self, links: Iterable[Link]) -> None:
        """Refuse."""
        _refuse("There are no connections to kill in this world")

    def reset_connections(self, links: Iterable[Link]) -> None:
        """Refuse."""
        _refuse("There are no connections to reset in this world")

    def admit_connections(self, links: Iterable[Link]) -> None:
        """None was ever refused."""

    def resets_connections(self, links: Iterable[Link]) -> frozenset[Link]:
        """None was ever refused."""
        return frozenset()


def _refuse(what: str) -> NoReturn:
    raise HarnessError(f"{what}.", "Use --world local or --hosts for faults of connections.")
