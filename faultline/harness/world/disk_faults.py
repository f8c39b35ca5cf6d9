"""Faults of disks and of the power they run on: what only worlds with disks of their own can break.

They differ from a kill in what is left. A killed process loses its memory, but what it wrote without fsync is in the
hands of the kernel, which will write it down; when power fails, that is lost too. The simulated world makes no such
difference: there, every kill is a loss of power.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NoReturn, Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.ports import NodeId

__all__ = ["DiskFaults", "DiskState", "NoDiskFaults", "NoPowerFaults"]

DiskState = Literal["well", "full", "read-only", "stalled"]
"""What becomes of somebody who writes to a disk: served, told that there is no room, told that he may not, or hung."""


class DiskFaults(Protocol):
    """The part of the fault port that acts on nodes' disks and hosts' power. Actions are idempotent."""

    def power_off(self, nodes: Iterable[NodeId]) -> None:
        """Take the power from the nodes' hosts, from all at once: their processes end and what was unsynced is lost."""

    def power_on(self, node: NodeId) -> None:
        """Give the host its power back, and start the node from what is on its disk."""

    def has_power(self, node: NodeId) -> bool:
        """Probe: does the node's host run?"""

    def strike_disk(self, node: NodeId, state: DiskState) -> None:
        """Bring the node's disk into a bad state."""

    def mend_disk(self, node: NodeId) -> None:
        """Bring the node's disk into order, and start the node when it has ended meanwhile."""

    def disk_state(self, node: NodeId) -> DiskState:
        """Probe: what becomes of somebody who writes to the node's disk?"""

    def fail_syncs(self, node: NodeId) -> None:
        """Let every fsync of the node fail from now on."""

    def allow_syncs(self, node: NodeId) -> None:
        """Let the node's fsyncs be carried out again, and start the node when it has ended meanwhile."""

    def syncs_fail(self, node: NodeId) -> bool:
        """Probe: is an fsync answered with an error?"""


class NoDiskFaults:
    """For worlds whose disks only serve: refuses by name."""

    def strike_disk(self, node: NodeId, state: DiskState) -> None:
        """Refuse."""
        _refuse("Disks cannot be struck in this world")

    def mend_disk(self, node: NodeId) -> None:
        """No disk was ever struck."""

    def disk_state(self, node: NodeId) -> DiskState:
        """Every disk serves."""
        return "well"

    def fail_syncs(self, node: NodeId) -> None:
        """Refuse."""
        _refuse("An fsync cannot be made to fail in this world")

    def allow_syncs(self, node: NodeId) -> None:
        """None ever failed."""

    def syncs_fail(self, node: NodeId) -> bool:
        """None ever fails."""
        return False


class NoPowerFaults(NoDiskFaults):
    """For worlds that cannot lose power either."""

    def power_off(self, nodes: Iterable[NodeId]) -> None:
        """Refuse."""
        _refuse("Power cannot fail in this world")

    def power_on(self, node: NodeId) -> None:
        """Power never failed."""

    def has_power(self, node: NodeId) -> bool:
        """Power never fails."""
        return True


def _refuse(what: str) -> NoReturn:
    raise HarnessError(f"{what}.", "Use --hosts namespaces:3 for faults of disks and power.")
