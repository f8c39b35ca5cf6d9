"""Bad links: `packet-loss`, `packet-delay`, `packet-duplicate`, `packet-reorder`, `packet-corrupt` and `packet-rate`.

The first three strike messages where there are only messages (in the simulated and the local world), and packets on
hosts, where the kernel's TCP makes up for what was lost, repeated or out of order, at the price of time. Reordering and
corruption exist only there.

They act on every link between the nodes of the target and the rest, both ways; of the target `all`, on every link.
A link has one quality at a time: an injection leaves links alone that were degraded before it began, and makes healthy
again those it degraded itself. The packages never plan two packet faults at once.

The arguments of each are fields of `LinkQuality`, where it is said what they mean; what a plan leaves out has the
default that stands in `PACKET_FAULTS`.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort, LinkQuality
from faultline.nemesis.targets import aimed, links_around

__all__ = ["HEALTHY", "PACKET_FAULTS", "PacketFault"]

HEALTHY = LinkQuality()


class PacketFault:
    """A nemesis that gives links a quality: that of the plan's arguments, with `defaults` where it has none."""

    tick_us = 0

    def __init__(self, kind: str, capability: str, mark: str, summary: str, **defaults: float) -> None:
        self.kind = kind
        self.summary = summary
        self.mark = mark
        self.needs = frozenset({capability})
        self._defaults = defaults

    def _quality(self, argument: dict[str, Any]) -> LinkQuality:
        values: dict[str, Any] = {
            name: type(default)(argument.get(name, default)) for name, default in self._defaults.items()
        }
        return LinkQuality(**values)

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Degrade the links of the target."""
        resolution = aimed(port, fault, seed)
        touched = links_around(port, resolution)
        mine = [link for link, quality in port.qualities(touched).items() if quality == HEALTHY]
        quality = self._quality(fault.argument)
        port.degrade(mine, quality)
        return Injection(
            nodes=resolution.nodes,
            links=tuple(touched),
            description=f"{self.kind} on the links of {' '.join(resolution.nodes)}{resolution.remark}",
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

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A bad link stays as it is."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Make the links healthy that this injection degraded."""
        port.degrade(injection.state["mine"], HEALTHY)


PACKET_FAULTS = (
    PacketFault("packet-loss", "loss", "packets-lost", "loses a share of the messages between nodes", loss=0.2),
    PacketFault(
        "packet-delay",
        "delay",
        "packets-delayed",
        "delays the messages between nodes",
        delay_us=50_000,
        jitter_us=10_000,
    ),
    PacketFault(
        "packet-duplicate",
        "duplicate",
        "packets-duplicated",
        "delivers a share of the messages between nodes twice",
        duplicate=0.5,
    ),
    PacketFault(
        "packet-reorder",
        "reorder",
        "packets-reordered",
        "delays packets between hosts, and lets a share of them overtake the others",
        delay_us=20_000,
        reorder=0.3,
    ),
    PacketFault(
        "packet-corrupt",
        "corrupt",
        "packets-corrupted",
        "flips a bit in a share of the packets between hosts",
        corrupt=0.1,
    ),
    PacketFault(
        "packet-rate",
        "rate",
        "links-narrowed",
        "limits how much a link between nodes carries",
        rate_kbit_per_s=1_000,
    ),
)
"""Every kind of bad link, with the quality it gives unless a plan says otherwise."""
