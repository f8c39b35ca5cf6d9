"""Cut links between nodes: the shapes of partitions.

The maths is Jepsen's (`jepsen.nemesis`, grudges) as pure functions from nodes to directed links; the shapes:

| shape | what is left |
|---|---|
| `one` | one node (by target) apart from the rest, both ways |
| `leader-alone` | the leader apart from the rest, both ways |
| `halves` | the first half of the nodes apart from the second |
| `random-halves` | the same after a shuffle |
| `majority-minority` | a drawn minority, with the targeted node in it, apart from the rest |
| `majorities-ring` | every node hears a majority, no two the same one |
| `bridge` | two halves that only one node connects |
| `one-way` | one node (by target) that hears no other, or that no other hears (`direction`: `in` or `out`) |
| `rack-alone` | the rack of one node (by target) apart from the rest, as when its switch fails |
| `between-racks` | the rack of one node (by target) apart from another one, as when a router between them fails |
| `random-links` | a drawn third of all pairs of nodes apart, and the others connected |

`majorities-ring` and `bridge` need three nodes, the shapes of racks two racks; with fewer they become `one`, which the
description says.

**Overlap.** An injection restores what it cut itself and nothing that was cut before it began. Of two partitions that
share a link the first one therefore ends the cut of both; the packages never plan two partitions at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from faultline.harness.errors import UsageError
from faultline.harness.generator.chance import below, reseeded
from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import Link, NodeId
from faultline.nemesis.targets import NO_RACKS, Racks, fault_chance, minority_size, resolve, shuffled

__all__ = [
    "SHAPES",
    "Partition",
    "between",
    "bridge",
    "halves",
    "links_of",
    "majorities_ring",
    "one_way",
    "random_links",
]

SHAPES = (
    "one",
    "leader-alone",
    "halves",
    "random-halves",
    "majority-minority",
    "majorities-ring",
    "bridge",
    "one-way",
    "rack-alone",
    "between-racks",
    "random-links",
)
"""The values of the argument `shape`."""

_OF_RACKS = ("rack-alone", "between-racks")
_ONE_LINK_IN = 3

Links = tuple[tuple[str, str], ...]


def between(some: Iterable[str], others: Iterable[str]) -> Links:
    """Return all links, both ways, between two groups of nodes."""
    pairs = [(one, other) for one in some for other in others]
    return tuple(link for one, other in pairs for link in ((one, other), (other, one)))


def halves(nodes: Sequence[str]) -> Links:
    """Return the links between the first half of `nodes` (the smaller one) and the second."""
    middle = len(nodes) // 2
    return between(nodes[:middle], nodes[middle:])


def bridge(nodes: Sequence[str]) -> Links:
    """Return the links between two halves of `nodes` but for the middle node, which stays connected to all."""
    middle = len(nodes) // 2
    return between(nodes[:middle], nodes[middle + 1 :])


def majorities_ring(nodes: Sequence[str]) -> Links:
    """Return cuts that leave each node of a ring hearing the majority around it, itself included."""
    count = len(nodes)
    majority = count // 2 + 1
    links = []
    for position, node in enumerate(nodes):
        start = position - majority // 2
        heard = {nodes[(start + step) % count] for step in range(majority)}
        links += [(source, node) for source in nodes if source not in heard]
    return tuple(links)


def one_way(victim: str, nodes: Sequence[str], direction: str) -> Links:
    """Return the links to `victim` (`in`) or from it (`out`)."""
    others = [node for node in nodes if node != victim]
    if direction == "in":
        return tuple((other, victim) for other in others)
    return tuple((victim, other) for other in others)


def random_links(nodes: Sequence[str], chance: int) -> Links:
    """Return the links, both ways, of each pair of `nodes` with a probability of a third; of one pair at least."""
    order = shuffled(nodes, chance)
    pairs = list(combinations(order, 2))
    cut = [pair for number, pair in enumerate(pairs) if not below(reseeded(chance, number + 1), _ONE_LINK_IN, 1)]
    return tuple(link for one, other in cut or pairs[:1] for link in between((one,), (other,)))


def links_of(
    shape: str, *, nodes: Sequence[str], victim: str, direction: str, chance: int, racks: Racks = NO_RACKS
) -> tuple[Links, str]:
    """Return the links to cut for `shape` around `victim`, and a sentence that says what that is."""
    order = shuffled(nodes, chance)
    others = tuple(node for node in order if node != victim)
    if shape not in SHAPES:
        raise UsageError(f"There is no partition shape {shape!r}.", f"Use one of {', '.join(SHAPES)}.")
    if shape == "halves":
        return halves(nodes), f"{_names(nodes[: len(nodes) // 2])} | {_names(nodes[len(nodes) // 2 :])}"
    if shape == "random-halves":
        return halves(order), f"{_names(order[: len(order) // 2])} | {_names(order[len(order) // 2 :])}"
    if shape == "majority-minority":
        size = minority_size(len(nodes), chance)
        minority, majority = (victim, *others[: size - 1]), others[size - 1 :]
        return between(minority, majority), f"minority {_names(minority)} | majority {_names(majority)}"
    if shape == "majorities-ring" and len(nodes) > 2:
        return majorities_ring(order), f"ring of majorities {_names(order)}"
    if shape == "bridge" and len(nodes) > 2:
        middle = len(order) // 2
        return bridge(order), f"{_names(order[:middle])} | {_names(order[middle + 1 :])}, bridged by {order[middle]}"
    if shape == "one-way":
        return one_way(victim, nodes, direction), f"{victim} {'hears no node' if direction == 'in' else 'is not heard'}"
    if shape == "random-links":
        links = random_links(nodes, chance)
        return links, ", ".join(f"{one} | {other}" for one, other in links[::2])
    if shape in _OF_RACKS and len(racks) > 1:
        return _links_of_racks(shape, nodes, victim, racks, chance)
    few = "racks" if shape in _OF_RACKS else "nodes"
    note = "" if shape in ("one", "leader-alone") else f" (too few {few} for {shape})"
    return between((victim,), others), f"{victim} alone{note}"


def _links_of_racks(shape: str, nodes: Sequence[str], victim: str, racks: Racks, chance: int) -> tuple[Links, str]:
    """Return the links between the rack of `victim` and all other nodes, or those of one drawn rack."""
    own = _rack_of(victim, racks)
    if shape == "rack-alone":
        others = [node for node in nodes if node not in racks[own]]
        return between(racks[own], others), f"{own} alone: {_names(racks[own])}"
    other = next(name for name in shuffled(tuple(racks), chance) if name != own)
    return between(racks[own], racks[other]), f"{own} | {other}: {_names(racks[own])} | {_names(racks[other])}"


def _rack_of(node: str, racks: Racks) -> str:
    return next(name for name, rack in racks.items() if node in rack)


def _names(nodes: Sequence[str]) -> str:
    return " ".join(nodes)


def _named_links(argument: dict[str, Any]) -> tuple[Links, str] | None:
    """Return the directed links that a plan names itself, each a pair of nodes."""
    links = tuple((str(source), str(target)) for source, target in argument.get("links", ()))
    return (links, ", ".join(f"{source}->{target}" for source, target in links)) if links else None


class Partition:
    """The nemesis `partition`. Arguments: `shape` (default `one`) and, for `one-way`, `direction`; or `links`."""

    kind = "partition"
    summary = "cuts links between nodes, in eleven shapes"
    mark = "links-cut"
    needs = frozenset({"cut"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Cut the links of the shape."""
        chance = fault_chance(fault, seed)
        shape = str(fault.argument.get("shape", "one"))
        target = "leader" if shape == "leader-alone" else fault.target
        resolution = resolve(target, nodes=port.nodes, leader=port.leader(), chance=chance, racks=port.racks)
        victim = resolution.nodes[0]
        direction = str(fault.argument.get("direction") or ("in", "out")[reseeded(chance, 1) & 1])
        links, description = _named_links(fault.argument) or links_of(
            shape, nodes=port.nodes, victim=victim, direction=direction, chance=chance, racks=port.racks
        )
        note = resolution.remark if victim in description else ""
        actuator = port.actuators["cut"]
        mine = [link for link, is_cut in actuator.probe([*map(_link, links)]).items() if not is_cut]
        actuator.strike(mine, True)
        hit = _hit(shape, victim, links, port)
        return Injection(nodes=hit, links=links, description=description + note, state={"mine": mine})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every link."""
        if not injection.links:
            return "there are no links to cut in a cluster of one node"
        found = port.actuators["cut"].probe([*map(_link, injection.links)])
        open_links = [f"{source}->{target}" for (source, target), is_cut in found.items() if not is_cut]
        return f"messages still pass over {', '.join(open_links)}" if open_links else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Do nothing: a partition stands still."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Restore the links this injection cut."""
        port.actuators["cut"].mend(injection.state["mine"])


def _hit(shape: str, victim: str, links: Links, port: FaultPort) -> tuple[str, ...]:
    """Return the nodes on the side that was struck, or all those that have lost a link where no side is."""
    if shape in ("one", "leader-alone", "one-way"):
        return (victim,)
    if shape == "rack-alone" and len(port.racks) > 1:
        return tuple(port.racks[_rack_of(victim, port.racks)])
    touched = {node for link in links for node in link}
    return tuple(node for node in port.nodes if node in touched)


def _link(link: tuple[str, str]) -> Link:
    return NodeId(link[0]), NodeId(link[1])
