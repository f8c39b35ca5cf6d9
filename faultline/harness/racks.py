"""Racks: groups of nodes that fail together, as machines behind one switch or one power distribution unit do.

A plan has the nodes of each rack by its name. They are given as a number of racks, to which the nodes are dealt in
turn, so that neighbours in the list of nodes share no rack; or as the rack of each node, as host files have it. Racks
that are not given are made up where a fault strikes racks: three of them, as stores usually spread their replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from faultline.harness.errors import UsageError
from faultline.harness.plan import RACK_TARGETS, Plan

__all__ = ["RACKS_USUAL", "racks_of", "refuse_targets_without_racks", "without_other_nodes"]

RACKS_USUAL = 3
"""The number of racks where a fault strikes racks and the user gives none."""

Racks = dict[str, tuple[str, ...]]


def racks_of(nodes: Sequence[str], given: int | Sequence[str]) -> Racks:
    """Return the nodes of each rack, of as many racks as `given`, or of racks whose names are given for each node.

    Raise `UsageError` where a rack would have no node, or a node no rack.
    """
    names = _dealt(len(nodes), given) if isinstance(given, int) else given
    if len(names) < len(nodes):
        raise UsageError(
            f"{len(nodes)} nodes need a rack each, but only {len(names)} racks of nodes are given.",
            "Give `racks` as a number, or a name for each node.",
        )
    racks: dict[str, tuple[str, ...]] = {}
    for node, name in zip(nodes, names, strict=False):
        racks[name] = (*racks.get(name, ()), node)
    return racks


def without_other_nodes(racks: Mapping[str, Sequence[str]], nodes: Collection[str]) -> Racks:
    """Return `racks` without nodes that are not among `nodes`, and without racks that are empty then."""
    left = {name: tuple(node for node in rack if node in nodes) for name, rack in racks.items()}
    return {name: rack for name, rack in left.items() if rack}


def refuse_targets_without_racks(plan: Plan) -> None:
    """Raise `UsageError` for a fault that is aimed at a rack where `plan` has none."""
    for fault in plan.faults:
        if fault.target in RACK_TARGETS and not plan.racks:
            raise UsageError(
                f"The plan aims {fault.kind} at {fault.target}, but it has no racks.",
                f"Plan the run with --racks {min(RACKS_USUAL, len(plan.nodes))}.",
            )


def _dealt(nodes: int, racks: int) -> list[str]:
    """Return the name of each node's rack."""
    if not 1 <= racks <= nodes:
        raise UsageError(
            f"{nodes} nodes stand in 1 to {nodes} racks, not in {racks}.", f"Use --racks {min(RACKS_USUAL, nodes)}."
        )
    return [f"rack-{number % racks + 1}" for number in range(nodes)]
