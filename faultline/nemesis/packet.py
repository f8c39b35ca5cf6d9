"""Bad links: `packet-loss`, `packet-delay` and `packet-duplicate`.

They act on every link between the nodes of the target and the rest, both ways; of the target `all`, on every link.
A link has one quality at a time: an injection leaves links alone that were degraded before it began, and makes healthy
again those it degraded itself. The packages never plan two packet faults at once.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort, LinkQuality
from faultline.harness.world.ports import NodeId
from faultline.nemesis.targets import fault_chance, resolve

__all__ = ["HEALTHY", "PacketDelay", "PacketDuplicate", "PacketLoss"]

HEALTHY = LinkQuality()


class _Packets:
    """What the three kinds have in common: which links, and how they are given and relieved of a quality."""

    kind: str
    needs = frozenset({"link-quality"})
    tick_us = 0

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """The quality that `argument` asks for."""
        raise NotImplementedError

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Degrade the links of the target."""
        chance = fault_chance(fault, seed)
        resolution = resolve(fault.target, nodes=port.nodes, leader=port.leader(), chance=chance)
        hit = resolution.nodes
        links = [(one, other) for one in port.nodes for other in port.nodes if one != other]
        touched = [link for link in links if link[0] in hit or link[1] in hit]
        mine = [link for link in touched if port.quality(link) == HEALTHY]
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
        for source, target in injection.state["mine"]:
            seen = port.quality((NodeId(source), NodeId(target)))
            if seen != injection.state["quality"]:
                return f"the link {source}->{target} has the quality {seen}"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A bad link stays as it is."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Make the links healthy that this injection degraded."""
        port.degrade(injection.state["mine"], HEALTHY)


class PacketLoss(_Packets):
    """The nemesis `packet-loss`. Argument: `loss`, the share of messages lost (default 0.2)."""

    kind = "packet-loss"
    summary = "loses a share of the messages between nodes"
    mark = "packets-lost"

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A link that loses messages."""
        return LinkQuality(loss=float(argument.get("loss", 0.2)))


class PacketDelay(_Packets):
    """The nemesis `packet-delay`. Arguments: `delay_us` (default 50 ms) and `jitter_us` (default 10 ms)."""

    kind = "packet-delay"
    summary = "delays the messages between nodes"
    mark = "packets-delayed"

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

    def quality(self, argument: dict[str, Any]) -> LinkQuality:
        """A link that repeats itself."""
        return LinkQuality(duplicate=float(argument.get("duplicate", 0.5)))
