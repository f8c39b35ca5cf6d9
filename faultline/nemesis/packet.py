"""Bad links: `packet-loss`, `packet-delay`, `packet-duplicate`, `packet-reorder`, `packet-corrupt` and `packet-rate`.

The first three strike messages where there are only messages (in the simulated and the local world), and packets on
hosts, where the kernel's TCP makes up for what was lost, repeated or out of order, at the price of time. Reordering and
corruption exist only there.

They act on every link between the nodes of the target and the rest, both ways; of the target `all`, on every link.
A link has one quality at a time: an injection leaves links alone that were degraded before it began, and makes healthy
again those it degraded itself. The packages never plan two packet faults at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort, LinkQuality
from faultline.nemesis.targets import fault_chance, resolve

__all__ = [
    "HEALTHY",
    "PacketCorrupt",
    "PacketDelay",
    "PacketDuplicate",
    "PacketLoss",
    "PacketRate",
    "PacketReorder",
]

HEALTHY = LinkQuality()


class _Packets(ABC):
    """What these kinds have in common: which links, and how they are given and relieved of a quality."""

    kind: str
    tick_us = 0

    @abstractmethod
    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """The quality that `argument` asks for."""

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Degrade the links of the target."""
        chance = fault_chance(fault, seed)
        resolution = resolve(fault.target, nodes=port.nodes, leader=port.leader(), chance=chance)
        hit = resolution.nodes
        links = [(one, other) for one in port.nodes for other in port.nodes if one != other]
        touched = [link for link in links if link[0] in hit or link[1] in hit]
        mine = [link for link, quality in port.qualities(touched).items() if quality == HEALTHY]
        quality = self.quality(fault.argument)
        port.degrade(mine, quality)
        note = f" ({resolution.note})" if resolution.note else ""
        return Injection(
            nodes=hit,
            links=tuple(touched),
            description=f"{self.kind} on the links of {' '.join(hit)}{note}",
            state={"mine": mine, "quality": quality},
        )

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe the quality of every link that was healthy before."""
        if not injection.links:
            return "there are no links to degrade in a cluster of one node"
        for (source, target), seen in port.qualities(injection.state["mine"]).items():
            if seen != injection.state["quality"]:
                return f"the link {source}->{target} has the quality {seen}"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:  # noqa: B027  # nothing to do is right
        """A bad link stays as it is."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Make the links healthy that this injection degraded."""
        port.degrade(injection.state["mine"], HEALTHY)


class PacketLoss(_Packets):
    """The nemesis `packet-loss`. Argument: `loss`, the share of messages lost (default 0.2)."""

    kind = "packet-loss"
    summary = "loses a share of the messages between nodes"
    mark = "packets-lost"
    needs = frozenset({"loss"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A link that loses messages."""
        return LinkQuality(loss=float(argument.get("loss", 0.2)))


class PacketDelay(_Packets):
    """The nemesis `packet-delay`. Arguments: `delay_us` (default 50 ms) and `jitter_us` (default 10 ms)."""

    kind = "packet-delay"
    summary = "delays the messages between nodes"
    mark = "packets-delayed"
    needs = frozenset({"delay"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A slow link."""
        return LinkQuality(
            delay_us=int(argument.get("delay_us", 50_000)), jitter_us=int(argument.get("jitter_us", 10_000))
        )


class PacketDuplicate(_Packets):
    """The nemesis `packet-duplicate`. Argument: `duplicate`, the share of messages sent twice (default 0.5)."""

    kind = "packet-duplicate"
    summary = "delivers a share of the messages between nodes twice"
    mark = "packets-duplicated"
    needs = frozenset({"duplicate"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A link that repeats itself."""
        return LinkQuality(duplicate=float(argument.get("duplicate", 0.5)))


class PacketReorder(_Packets):
    """The nemesis `packet-reorder`. Arguments: `reorder`, the share that skips the delay (0.3), `delay_us` (20 ms)."""

    kind = "packet-reorder"
    summary = "delays packets between hosts, and lets a share of them overtake the others"
    mark = "packets-reordered"
    needs = frozenset({"reorder"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A slow link with a fast lane."""
        return LinkQuality(delay_us=int(argument.get("delay_us", 20_000)), reorder=float(argument.get("reorder", 0.3)))


class PacketCorrupt(_Packets):
    """The nemesis `packet-corrupt`. Argument: `corrupt`, the share of packets with a flipped bit (default 0.1)."""

    kind = "packet-corrupt"
    summary = "flips a bit in a share of the packets between hosts"
    mark = "packets-corrupted"
    needs = frozenset({"corrupt"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A noisy link."""
        return LinkQuality(corrupt=float(argument.get("corrupt", 0.1)))


class PacketRate(_Packets):
    """The nemesis `packet-rate`. Argument: `rate_kbit_per_s`, what each link carries at most (default 1000)."""

    kind = "packet-rate"
    summary = "limits how much a link between nodes carries"
    mark = "links-narrowed"
    needs = frozenset({"rate"})

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A narrow link."""
        return LinkQuality(rate_kbit_per_s=int(argument.get("rate_kbit_per_s", 1_000)))
