"""Bad links: `packet-loss`, `packet-delay`, `packet-duplicate`, `packet-reorder`, `packet-corrupt` and `packet-rate`.

The first three strike messages where there are only messages (in the simulated and the local world), and packets on
hosts, where the kernel's TCP makes up for what was lost, repeated or out of order, at the price of time. Reordering and
corruption exist only there.

They act on every link between the nodes of the target and the rest, both ways; of the target `all`, on every link.
A link has one quality at a time: an injection leaves links alone that were degraded before it began, and makes healthy
again those it degraded itself. The packages never plan two packet faults at once.

The arguments of each are fields of `LinkQuality`, which says what they mean; an argument that a plan leaves out has the
default that stands in `PACKET_FAULTS`.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import LinkQuality
from faultline.nemesis.standard import StandardNemesis

__all__ = ["PACKET_FAULTS"]


def _packet_fault(
    kind: str, capability: str, mark: str, summary: str, **defaults: float
) -> StandardNemesis[LinkQuality]:
    """Return a nemesis that gives links the quality of the plan's arguments, with `defaults` where it has none."""

    def quality(fault: PlannedFault) -> LinkQuality:
        # A plan from a file may say 1 where a share is meant: each value gets the type of its default.
        values: dict[str, Any] = {
            name: type(default)(fault.argument.get(name, default)) for name, default in defaults.items()
        }
        return LinkQuality(**values)

    return StandardNemesis(
        kind=kind,
        capability=capability,
        summary=summary,
        mark=mark,
        acts_on="links",
        aims_at_nodes_up=False,
        healthy=LinkQuality(),
        setting=quality,
        description=f"{kind} on the links of {{nodes}}{{remark}}",
        complaint="the link {target} has the quality {seen}",
    )


PACKET_FAULTS = (
    _packet_fault("packet-loss", "loss", "packets-lost", "loses a share of the messages between nodes", loss=0.2),
    _packet_fault(
        "packet-delay",
        "delay",
        "packets-delayed",
        "delays the messages between nodes",
        delay_us=50_000,
        jitter_us=10_000,
    ),
    _packet_fault(
        "packet-duplicate",
        "duplicate",
        "packets-duplicated",
        "delivers a share of the messages between nodes twice",
        duplicate=0.5,
    ),
    _packet_fault(
        "packet-reorder",
        "reorder",
        "packets-reordered",
        "delays packets between hosts, and lets a share of them overtake the others",
        delay_us=20_000,
        reorder=0.3,
    ),
    _packet_fault(
        "packet-corrupt",
        "corrupt",
        "packets-corrupted",
        "flips a bit in a share of the packets between hosts",
        corrupt=0.1,
    ),
    _packet_fault(
        "packet-rate",
        "rate",
        "links-narrowed",
        "limits how much a link between nodes carries",
        rate_kbit_per_s=1_000,
    ),
)
"""Every kind of bad link, with the quality it gives unless a plan says otherwise."""
