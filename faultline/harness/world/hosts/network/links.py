"""Links between hosts and how they are cut and degraded, whatever the means.

A link is directed, from one host to another. Everything on it is dropped silently, also on connections that are open,
as a router does that has lost a route: no sender gets an error to notice it by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality

__all__ = ["QUALITIES", "HostLink", "LinkFaults", "LinkQualities", "NoLinkFaults", "NoLinkQualities"]

QUALITIES = ("loss", "delay", "duplicate", "reorder", "corrupt", "rate")
"""The capabilities that are about the quality of links."""

HostLink = tuple[str, str]
"""The names of the host that sends and the host that receives."""


class LinkFaults(Protocol):
    """The links between the hosts of one set."""

    refusal: str
    """The reason why links cannot be cut here; empty when they can."""

    def cut(self, links: Iterable[HostLink]) -> None:
        """Let nothing pass over `links`."""

    def restore(self, links: Iterable[HostLink]) -> None:
        """Let everything pass over `links` again."""

    def is_cut(self, link: HostLink) -> bool:
        """Probe: return whether nothing passes over `link`."""

    def are_cut(self, links: Iterable[HostLink]) -> frozenset[HostLink]:
        """Probe: return those of `links` over which nothing passes, all looked at side by side."""

    def close(self) -> None:
        """Take every rule away."""


class NoLinkFaults:
    """Links that nothing can be done to, because of `refusal`."""

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal

    def cut(self, links: Iterable[HostLink]) -> None:
        """Refuse by name."""
        raise HarnessError(f"Links cannot be cut: {self.refusal}.", "Leave partitions out.")

    def restore(self, links: Iterable[HostLink]) -> None:
        """Nothing was ever cut."""

    def is_cut(self, link: HostLink) -> bool:
        """Nothing is ever cut."""
        return False

    def are_cut(self, links: Iterable[HostLink]) -> frozenset[HostLink]:
        """Nothing is ever cut."""
        return frozenset()

    def close(self) -> None:
        """There are no rules."""


class LinkQualities(Protocol):
    """The means by which links between the hosts of one set are degraded."""

    @property
    def refusals(self) -> Mapping[str, str]:
        """Those of `QUALITIES` that cannot be had here, each with the reason."""

    @property
    def means(self) -> str:
        """The means by which links are degraded, in a few words; empty when they cannot be."""

    def prepare(self) -> None:
        """Have everything ready before the first fault."""

    def degrade(self, links: Iterable[HostLink], quality: LinkQuality) -> None:
        """Give all `links` the `quality`; a healthy one ends it."""

    def qualities(self, links: Iterable[HostLink]) -> dict[HostLink, LinkQuality]:
        """Probe: return the quality of each link."""

    def statistics(self) -> dict[str, int]:
        """Return the fate of packets on bad links since the set came up, as far as it is counted."""

    def close(self) -> None:
        """Make all links healthy; they can be degraded again afterwards."""


class NoLinkQualities:
    """Links that cannot be degraded, because of `refusal`."""

    means = ""

    def __init__(self, refusal: str) -> None:
        self.refusals: Mapping[str, str] = dict.fromkeys(QUALITIES, refusal)

    def prepare(self) -> None:
        """There is nothing to make ready."""

    def degrade(self, links: Iterable[HostLink], quality: LinkQuality) -> None:
        """Refuse by name, unless the links are to be as they are."""
        if quality != LinkQuality():
            raise HarnessError(
                f"Links cannot be degraded: {next(iter(self.refusals.values()))}.", "Leave packet faults out."
            )

    def qualities(self, links: Iterable[HostLink]) -> dict[HostLink, LinkQuality]:
        """Return healthy qualities: the links are as they are."""
        return dict.fromkeys(links, LinkQuality())

    def statistics(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def close(self) -> None:
        """There is nothing to end."""
