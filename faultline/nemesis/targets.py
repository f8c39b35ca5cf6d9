"""Targets: symbolic ones become nodes at the moment of injection.

A plan says `leader`, not `athens`, because the leader of the moment is where most bugs live and because a plan that
names roles keeps its meaning when the run before the fault changes. Everything here is a pure function of the target,
the nodes, their racks, the leader of the moment and a chance. When there is no leader the fault still falls, on a drawn
node, and the description says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faultline.harness.errors import UsageError
from faultline.harness.generator.chance import below, chance_of_text, reseeded
from faultline.harness.plan import FAULT_TARGETS, RACK_TARGETS, PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import Link

__all__ = [
    "NO_RACKS",
    "Racks",
    "Resolution",
    "aimed",
    "aimed_at_nodes_up",
    "fault_chance",
    "links_around",
    "minority_size",
    "resolve",
    "shuffled",
]

_SIZE_SALT = 0xC3A5_C85C_97CB_3127

Racks = Mapping[str, Sequence[str]]
"""The nodes of each rack by its name."""

NO_RACKS: Racks = {}
"""The racks of a plan that has none."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The `nodes` a target means at present; `note` is empty, or says how the target had to be understood."""

    nodes: tuple[str, ...]
    note: str = ""

    @property
    def remark(self) -> str:
        """The note as it follows a description: in brackets, or nothing."""
        return f" ({self.note})" if self.note else ""


def fault_chance(fault: PlannedFault, seed: int) -> int:
    """Return the chance of all draws of one fault: it depends on no other fault of the plan."""
    return chance_of_text("fault", seed, fault.kind, fault.at_us)


def aimed(port: FaultPort, fault: PlannedFault, seed: int) -> Resolution:
    """Return the nodes that `fault` means now, whether they are up or down."""
    chance = fault_chance(fault, seed)
    return resolve(fault.target, nodes=port.nodes, leader=port.leader(), chance=chance, racks=port.racks)


def aimed_at_nodes_up(port: FaultPort, fault: PlannedFault, seed: int) -> Resolution:
    """Return the nodes that `fault` means now, less those that are down or paused; another when that leaves none.

    When no node is up the injection does nothing and says so; what it would have done is in force already.
    """
    up = port.nodes_up()
    if not up:
        return Resolution((), "no node was up")
    resolution = aimed(port, fault, seed)
    hit = tuple(node for node in resolution.nodes if node in up)
    # A plan that names a node means that node, and not one in its place.
    if hit or fault.target in port.nodes:
        return Resolution(hit, resolution.note or ("" if hit else f"{fault.target} was not up"))
    drawn = resolve("one", nodes=up, leader=port.leader(), chance=fault_chance(fault, seed))
    return Resolution(drawn.nodes, f"no {fault.target} was up")


def links_around(port: FaultPort, resolution: Resolution) -> list[Link]:
    """Return all links between the nodes of `resolution` and the rest, both ways; of all nodes, every link."""
    hit = resolution.nodes
    return [(one, other) for one in port.nodes for other in port.nodes if one != other and (one in hit or other in hit)]


def shuffled(nodes: Sequence[str], chance: int) -> tuple[str, ...]:
    """Return `nodes` in an order drawn from `chance` (Fisher and Yates)."""
    order = list(nodes)
    for last in range(len(order) - 1, 0, -1):
        chance = reseeded(chance, last)
        other = below(chance, last + 1, 1)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


def minority_size(count: int, chance: int) -> int:
    """Return the size of a drawn minority of `count` nodes: 1 when there are too few nodes for a proper minority."""
    return 1 + below(chance, max(1, (count - 1) // 2), _SIZE_SALT)


def resolve(
    target: str, *, nodes: Sequence[str], leader: str | None, chance: int, racks: Racks = NO_RACKS
) -> Resolution:
    """Return the nodes that `target` means now: one of `FAULT_TARGETS`, a rack, or names of nodes joined by `+`."""
    # Names come before roles: a plan that names a node or a rack means that one.
    named = tuple(target.split("+"))
    if set(named) <= set(nodes):
        return Resolution(named)
    if target in racks:
        return Resolution(tuple(racks[target]), target)
    order = shuffled(nodes, chance)
    if target == "all":
        return Resolution(tuple(nodes))
    if target == "majority":
        return Resolution(order[: len(nodes) // 2 + 1])
    if target == "minority":
        return Resolution(order[: minority_size(len(nodes), chance)])
    if target == "first":
        return Resolution((nodes[0],))
    if target == "one":
        return Resolution(order[:1])
    if target == "last-follower":
        return _last_follower(nodes, leader)
    if target in ("leader", "follower"):
        return _by_role(target, order, leader)
    if target in RACK_TARGETS:
        return _of_racks(target, racks, chance)
    raise UsageError(
        f"A fault cannot be aimed at {target!r}: the nodes are {', '.join(nodes)}.",
        f"Use one of them, or one of {', '.join(FAULT_TARGETS)}.",
    )


def _of_racks(target: str, racks: Racks, chance: int) -> Resolution:
    """Return the nodes of one drawn rack, or of half of them and the one in the middle."""
    if not racks:
        raise UsageError(f"A fault is aimed at {target!r}, but the plan has no racks.", "Plan the run with --racks 3.")
    drawn = shuffled(tuple(racks), chance)[: 1 if target == "rack" else (len(racks) + 1) // 2]
    return Resolution(tuple(node for name in drawn for node in racks[name]), " ".join(drawn))


def _by_role(target: str, order: tuple[str, ...], leader: str | None) -> Resolution:
    if leader is None or leader not in order:
        return Resolution(order[:1], f"no {target} known: a drawn node instead")
    if target == "leader":
        return Resolution((leader,))
    followers = tuple(node for node in order if node != leader)
    return Resolution(followers[:1]) if followers else Resolution(order[:1], "no follower: the only node instead")


def _last_follower(nodes: Sequence[str], leader: str | None) -> Resolution:
    if leader is None or leader not in nodes:
        return Resolution((nodes[-1],), "no leader known: the last node")
    followers = [node for node in nodes if node != leader]
    return Resolution((followers[-1],)) if followers else Resolution((leader,), "no follower: the only node instead")
