"""Links between hosts and how they are cut, whatever the means.

A link is directed, from one host to another. Everything on it is dropped silently, also on connections that are open,
as a router does that has lost a route: nobody gets an error to notice it by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from faultline.harness.errors import HarnessError

__all__ = ["HostLink", "LinkFaults", "NoLinkFaults"]

HostLink = tuple[str, str]
"""The names of the host that sends and the host that receives."""


class LinkFaults(Protocol):
    """The links between the hosts of one set."""

    refusal: str
    """Why links cannot be cut here; empty when they can."""

    def cut(self, links: Iterable[HostLink]) -> None:
        """Let nothing pass over `links`."""

    def restore(self, links: Iterable[HostLink]) -> None:
        """Let everything pass over `links` again."""

    def is_cut(self, link: HostLink) -> bool:
        """Probe: does nothing pass over `link`?"""

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

    def close(self) -> None:
        """There are no rules."""
