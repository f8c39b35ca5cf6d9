"""The atlas: a minority of the nodes of a run may have damaged disks, and it is the same over the run."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.plan import NODE_NAMES, PlannedFault
from faultline.nemesis import NEMESES
from faultline.nemesis.atlas import damageable

KINDS = ("disk-corrupt", "disk-lost-write", "disk-misdirect", "disk-lying-fsync")
SEEDS = range(60)


def struck(port: Any, kind: str, target: str, seed: int, at_us: int = 0) -> Any:
    return NEMESES[kind].start(port, PlannedFault(kind, at_us, 1, target, {}), seed)


@pytest.mark.parametrize(("nodes", "most"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
def test_a_majority_of_the_nodes_keeps_whole_disks_and_every_node_may_be_among_the_others(
    nodes: int, most: int
) -> None:
    drawn = [damageable(NODE_NAMES[:nodes], seed) for seed in SEEDS]
    assert {len(each) for each in drawn} == {most}
    assert {node for each in drawn for node in each} == (set(NODE_NAMES[:nodes]) if most else set())


@pytest.mark.parametrize("kind", KINDS)
def test_all_damage_of_a_run_falls_on_the_nodes_of_its_atlas(port: Any, kind: str) -> None:
    remarks = 0
    for seed in SEEDS:
        for at_us, target in enumerate(("one", "leader", "minority", "majority", "all")):
            injection = struck(port, kind, target, seed, at_us)
            assert injection.nodes and set(injection.nodes) <= set(damageable(port.nodes, seed))
            remarks += "the atlas of this run spares" in injection.description
    assert remarks


def test_data_are_damaged_on_nodes_that_are_down_too(port: Any) -> None:
    port.dead = set(port.nodes)
    injection = struck(port, "disk-corrupt", "all", 3)
    assert injection.nodes and port.damaged == set(injection.nodes)


def test_a_node_that_a_plan_names_is_damaged_whatever_the_atlas_says(port: Any) -> None:
    spared = next(node for node in port.nodes if node not in damageable(port.nodes, 3))
    assert struck(port, "disk-corrupt", spared, 3).nodes == (spared,)


def test_a_cluster_that_has_no_minority_is_spared_and_told_so(port: Any) -> None:
    port.nodes = port.nodes[:2]
    injection = struck(port, "disk-corrupt", "one", 3)
    assert (injection.nodes, port.damaged) == ((), set())
    assert "no copy to spare" in injection.description
    assert NEMESES["disk-corrupt"].verify(port, injection) is None
