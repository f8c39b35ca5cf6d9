"""The growth of gossip with the cluster: rounds until all nodes agree, messages and bytes per node and round, also when
calm.

    python benchmarks/gossip.py                               clusters of 8, 30, 100, 300 and 1,000 simulated nodes
    python benchmarks/gossip.py --nodes 8,100 --option fanout=1 --option exchange=digest

Complete nodes of the system `gossip` in the simulated world, without faults and detectors; at the start each knows the
seed and itself. A round is a gossip interval. Bytes are those of the encoded messages between nodes, both directions.
"""

from __future__ import annotations

import argparse
import math
import sys
from time import process_time
from typing import Any, NamedTuple, cast

import msgspec

from faultline.harness.plan import Plan, node_names
from faultline.harness.system import NodeSystem
from faultline.harness.world.ports import NodeId, Ports
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.systems_under_test.reference.gossip.node import GossipNode, Parts
from faultline.systems_under_test.reference.gossip.options import GossipSettings
from faultline.systems_under_test.reference.gossip.system import Gossip

__all__ = ["main"]

_ROUNDS_MAX = 200
_CALM_ROUNDS = 5


class _Traffic:
    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0


class _CountingNode(GossipNode):
    traffic: _Traffic

    def receive(self, source: NodeId, message: Any) -> None:
        self.traffic.messages += 1
        self.traffic.bytes += len(msgspec.msgpack.encode(message))
        super().receive(source, message)


class _CountingGossip(Gossip):
    def __init__(self) -> None:
        self.traffic = _Traffic()

    def node(self, ports: Ports, members: tuple[NodeId, ...], options: Any, planted_bugs: frozenset[str]) -> GossipNode:
        node = _CountingNode(ports, members, GossipSettings.read(options), Parts())
        node.traffic = self.traffic
        return node


class Measured(NamedTuple):
    """One cluster: rounds until all agreed, messages and bytes per node and round until then and after, and seconds."""

    nodes: int
    rounds: int
    messages: float
    bytes: float
    calm_bytes: float
    seconds: float


def measured(nodes: int, options: dict[str, str], seed: int) -> Measured:
    """Start a cluster, count the rounds until all nodes know each other, then measure it when calm."""
    start = process_time()
    system = _CountingGossip()
    interval_us = GossipSettings.read(options).gossip_interval_us
    plan = Plan(
        system="gossip",
        workload="metadata",
        seed=seed,
        nodes=node_names(nodes),
        workers=1,
        operations=(),
        options=options,
        heal_us=0,
        end_us=_ROUNDS_MAX * interval_us,
    )
    world = SimulatedWorld(plan, cast("NodeSystem", system), [])
    world.boot()
    rounds = next(number for number in range(1, _ROUNDS_MAX) if _agree_after(world, number * interval_us, nodes))
    messages, sent = system.traffic.messages, system.traffic.bytes
    world.scheduler.run((rounds + _CALM_ROUNDS) * interval_us)
    calm = system.traffic.bytes - sent
    each = nodes * rounds
    return Measured(nodes, rounds, messages / each, sent / each, calm / nodes / _CALM_ROUNDS, process_time() - start)


def _agree_after(world: SimulatedWorld, until_us: int, nodes: int) -> bool:
    world.scheduler.run(until_us)
    hosts = [host.node for host in world.hosts.values()]
    return all(isinstance(node, GossipNode) and len(node.metadata.states) == nodes for node in hosts)


def main(arguments: list[str] | None = None) -> int:
    """Print one line per cluster."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="8,30,100,300,1000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args(arguments)
    options = {"detector": "none", **dict(pair.split("=", 1) for pair in asked.option)}
    print("nodes  rounds  log2  messages/node/round  bytes/node/round  the same when calm  CPU seconds")
    for nodes in map(int, asked.nodes.split(",")):
        found = measured(nodes, options, asked.seed)
        print(
            f"{found.nodes:>5}  {found.rounds:>6}  {math.log2(nodes):>4.1f}  {found.messages:>19.1f}"
            f"  {found.bytes:>16,.0f}  {found.calm_bytes:>18,.0f}  {found.seconds:>11.1f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
