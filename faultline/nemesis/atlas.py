"""The fault atlas: the nodes of a run whose disks may lose or change data, so that enough healthy copies are left.

A fault that destroys a copy is survivable only while other copies are whole. So each run has a set of nodes, drawn from
its seed, whose disks may be damaged; all others keep theirs. The set is a minority, f of 2f+1 nodes, and the same over
the whole run: a node that was damaged once is in doubt until the end, though its disk was mended. A cluster of one or
two nodes has no minority, and its disks stay whole. A plan that names a node means that node, whatever the atlas says.

The copies of the reference systems are whole nodes, and so is the grain of the atlas. TigerBeetle's has the single
block of a single replica as its grain, and damages more of them in a run (`src/testing/storage.zig`,
ClusterFaultAtlas); Alagappan et al., "Protocol-Aware Recovery for Consensus-Based Storage" (FAST 2018), say what a
store can and cannot survive.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.harness.generator.chance import chance_of_text
from faultline.harness.plan import PlannedFault
from faultline.nemesis.targets import Resolution, shuffled

__all__ = ["damageable", "within_atlas"]


def damageable(nodes: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return the nodes whose disks may be damaged in the run of `seed`: the largest minority, in a drawn order."""
    return shuffled(nodes, chance_of_text("atlas", seed))[: max(0, (len(nodes) - 1) // 2)]


def within_atlas(resolution: Resolution, nodes: Sequence[str], fault: PlannedFault, seed: int) -> Resolution:
    """Return the nodes of `resolution` whose disks may be damaged; one in their place when there is none among them."""
    if set(fault.target.split("+")) <= set(nodes):
        return resolution
    allowed = damageable(nodes, seed)
    hit = tuple(node for node in resolution.nodes if node in allowed)
    if hit:
        return Resolution(hit, resolution.note)
    if not allowed:
        return Resolution((), "a cluster this small has no copy to spare")
    return Resolution(allowed[:1], f"the atlas of this run spares {fault.target}")
