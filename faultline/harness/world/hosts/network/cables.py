"""The cables of hosts: a host's link to the network of nodes and clients, as a whole.

Pulling it parts the host from peers and clients at once, and its kernel notices: the link has no carrier. SSH must come
another way, or the harness would be cut off too.
"""

from __future__ import annotations

from typing import Protocol

from faultline.harness.errors import HarnessError

__all__ = ["Cables", "NoCables"]


class Cables(Protocol):
    """The links of the hosts of one set to their network."""

    refusal: str
    """The reason why they cannot be taken down; empty when they can."""

    def take_down(self, host: str) -> None:
        """Let the host's link be down."""

    def bring_up(self, host: str) -> None:
        """Let the host's link be up again."""

    def is_down(self, host: str) -> bool:
        """Probe: return whether the host's kernel says that its link has no carrier."""


class NoCables:
    """Links that must not be taken down, because of `refusal`."""

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal

    def take_down(self, host: str) -> None:
        """Refuse by name."""
        raise HarnessError(f"The link of {host} cannot be taken down: {self.refusal}.", "Use a partition instead.")

    def bring_up(self, host: str) -> None:
        """It was never down."""

    def is_down(self, host: str) -> bool:
        """It never is."""
        return False
