"""The duration of a split brain: until each side of a cut has one coordinator, and until both are one cluster again.

    python benchmarks/split_brain.py                      clusters of 4, 8, 16 and 32 simulated nodes, 20 seeds each
    python benchmarks/split_brain.py --nodes 8 --option heartbeats=ring --option merge_interval_ms=1000

Complete nodes of the system `emergent-leader`. When all are one cluster, it is cut into two halves, at a moment that
the seed draws; each half has a seed node. *Parted* is the time from the cut until within each half all nodes follow one
coordinator of that half and count exactly its nodes as members; *healed* the time from the end of the cut until all
follow one coordinator and count all nodes. Simulated milliseconds, sampled every 10.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple, cast

from faultline.harness.options import effective_options
from faultline.harness.plan import Plan, node_names
from faultline.harness.system import NodeSystem
from faultline.harness.world.ports import NodeId
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.systems_under_test.reference.emergent.node import EmergentNode
from faultline.systems_under_test.reference.emergent.system import EmergentLeader

__all__ = ["Healing", "main", "measured"]

_STEP_US = 10_000
_FORMED_WITHIN_US = 20_000_000
_MOST_US = 10_000_000


class Healing(NamedTuple):
    """One run: milliseconds until each half had its coordinator, and until the whole had one again."""

    parted_ms: float
    healed_ms: float


def measured(nodes: int, seed: int, options: dict[str, str], bugs: tuple[str, ...] = ()) -> Healing:
    """Form a cluster, cut it into halves, and heal it. Raise TimeoutError when it takes more than ten seconds."""
    world = SimulatedWorld(_plan(nodes, seed, options, bugs), cast("NodeSystem", EmergentLeader()), [])
    world.boot()
    names = list(world.hosts)
    _until(world, [names], _FORMED_WITHIN_US)
    world.scheduler.run(world.scheduler.now_us + 10_000 + 7_001 * seed % 200_000)
    # The first two nodes are the seeds: one for each half.
    halves = [names[::2], names[1::2]]
    links = [(one, other) for half in halves for one in half for other in names if other not in half]
    world.fault_port.actuators["cut"].strike(links, True)
    parted_us = _until(world, halves, _MOST_US)
    world.fault_port.actuators["cut"].mend(links)
    healed_us = _until(world, [names], _MOST_US)
    return Healing(parted_us / 1_000, healed_us / 1_000)


def _plan(nodes: int, seed: int, options: dict[str, str], bugs: tuple[str, ...]) -> Plan:
    return Plan(
        system="emergent-leader",
        workload="membership",
        seed=seed,
        nodes=node_names(nodes),
        workers=1,
        operations=(),
        options=effective_options(cast("NodeSystem", EmergentLeader()), options, bugs),
        planted_bugs=bugs,
        heal_us=0,
        end_us=1,
    )


def _until(world: SimulatedWorld, groups: list[list[NodeId]], most_us: int) -> int:
    """Run until in each of `groups` all agree on it; return the time that took."""
    start_us = until_us = world.scheduler.now_us
    while not all(_agrees(world, group) for group in groups):
        until_us += _STEP_US
        if until_us - start_us > most_us:
            raise TimeoutError(f"no agreement within {most_us // 1_000_000} simulated seconds")
        world.scheduler.run(until_us)
    return until_us - start_us


def _agrees(world: SimulatedWorld, group: Iterable[NodeId]) -> bool:
    """Return whether all of `group` follow one membership, whose members they are, under one of them."""
    names: set[str] = set(group)
    nodes = [host.node for name, host in world.hosts.items() if name in names]
    found = [node.membership if isinstance(node, EmergentNode) else None for node in nodes]
    first = found[0]
    if first is None or any(each is None or each.version != first.version for each in found):
        return False
    return all(
        each is not None
        and each.coordinator.address == first.coordinator.address
        and {member.address for member in each.live} == names
        for each in found
    )


def main(arguments: list[str] | None = None) -> int:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="4,8,16,32")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args(arguments)
    options = dict(pair.split("=", 1) for pair in asked.option)
    print("nodes  parted ms: median  most  healed ms: median  most")
    for nodes in map(int, asked.nodes.split(",")):
        found = [measured(nodes, seed, options) for seed in range(asked.seeds)]
        parted, healed = zip(*found, strict=True)
        print(f"{nodes:>5}  {median(parted):>17.0f}  {max(parted):>4.0f}  {median(healed):>17.0f}  {max(healed):>4.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
