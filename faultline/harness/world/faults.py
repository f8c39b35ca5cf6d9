"""The fault port: how a nemesis acts on a world, whether simulated or real.

Every action has a probe beside it, so that a nemesis can prove that its fault took effect; a fault that did not bite
makes the run a harness error, not a pass. `capabilities` names what this world can do, and a fault that needs more is
refused by name before the run starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from faultline.harness.world.connection_faults import ConnectionFaults
from faultline.harness.world.disk_faults import DiskFaults
from faultline.harness.world.ports import Link, NodeId
from faultline.harness.world.process_limits import ProcessLimits

__all__ = [
    "ALL_CAPABILITIES",
    "CAPABILITIES",
    "HOST_CAPABILITIES",
    "LOCAL_CAPABILITIES",
    "SIMULATED_CAPABILITIES",
    "FaultPort",
    "LinkQuality",
]

CAPABILITIES = ("cut", "loss", "delay", "duplicate", "kill", "pause", "clock-step", "clock-drift")
"""What the simulated and the local world offer."""

SIMULATED_CAPABILITIES = (*CAPABILITIES, "power-off")
"""What the simulated world offers: its disks forget what was not synced, and do so at every kill."""

LOCAL_CAPABILITIES = (*CAPABILITIES, "rate", "connection-kill", "connection-reset")
"""What the local world offers, since it has bytes and connections."""

HOST_CAPABILITIES = (
    "reorder",
    "corrupt",
    "link-down",
    "freeze",
    "cpu-squeeze",
    "memory-squeeze",
    "power-off",
    "disk-full",
    "disk-read-only",
    "disk-stall",
    "fsync-fail",
)
"""What only hosts offer, and each host only as far as it can."""

ALL_CAPABILITIES = (*LOCAL_CAPABILITIES, *HOST_CAPABILITIES)
"""Everything that any world offers."""


class LinkQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How a degraded link behaves, on top of the weather.

    `delay_us` and `jitter_us` are added, `loss` and `duplicate` are shares of the messages. The rest needs packets or
    bytes: `reorder` is the share of packets that skip the delay and so overtake others, `corrupt` the share that arrive
    with a flipped bit (which the receiver's kernel finds by the checksum, and drops), `rate_kbit_per_s` what the link
    carries at most, 0 without a limit. A world gives what the capabilities of these names say.
    """

    delay_us: int = 0
    jitter_us: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    rate_kbit_per_s: int = 0


class FaultPort(ConnectionFaults, DiskFaults, ProcessLimits, Protocol):
    """Actions and probes on one running cluster. Actions are idempotent and take effect before they return."""

    nodes: tuple[NodeId, ...]
    capabilities: frozenset[str]

    def leader(self) -> NodeId | None:
        """The live node that believes it leads in the highest generation, if any."""

    def roles(self) -> dict[NodeId, str]:
        """The role that each node itself believes in (`leader`, `follower` …), or `dead`, or `unknown`."""

    def cut(self, links: Iterable[Link]) -> None:
        """Let nothing pass over the directed `links` any more."""

    def restore(self, links: Iterable[Link]) -> None:
        """Let messages pass over the directed `links` again."""

    def is_cut(self, link: Link) -> bool:
        """Probe: does nothing pass over `link`?"""

    def are_cut(self, links: Iterable[Link]) -> frozenset[Link]:
        """Probe: those of `links` over which nothing passes, all looked at side by side."""

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        """Give `links` the `quality`, all at once; `LinkQuality()` is a healthy link."""

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        """Probe: the quality in force on each of `links`, all looked at side by side."""

    def kill(self, node: NodeId) -> None:
        """End the node at once: it loses its memory and whatever it had not fsynced."""

    def restart(self, node: NodeId) -> None:
        """Start a dead node anew from its storage."""

    def is_alive(self, node: NodeId) -> bool:
        """Probe: does the node's process exist?"""

    def pause(self, node: NodeId) -> None:
        """Stop the node where it stands; it keeps its memory, its messages and timers wait."""

    def resume(self, node: NodeId) -> None:
        """Let a paused node go on."""

    def is_paused(self, node: NodeId) -> bool:
        """Probe: is the node stopped?"""

    def step_clock(self, node: NodeId, delta_us: int) -> None:
        """Move the node's wall clock by `delta_us`, back when negative."""

    def drift_clock(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks of the node run fast by `rate_ppm` parts per million, slow when negative; 0 ends it."""

    def reset_clock(self, node: NodeId) -> None:
        """Put the node's wall clock right again and end its drift."""

    def clock_offset_us(self, node: NodeId) -> int:
        """Probe: the node's wall clock minus true time."""

    def clock_rate_ppm(self, node: NodeId) -> int:
        """Probe: the drift in force."""
