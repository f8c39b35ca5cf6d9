"""The cost of one more node: keys that move, against the least number that must, for each way of spreading keys.

    python benchmarks/partitions.py                       3 to 4, 10 to 11 and 100 to 101 nodes
    python benchmarks/partitions.py --nodes 5 --keys 20000
    python benchmarks/partitions.py --moves 50            how long a move takes, in 50 simulated runs

With n nodes and one more, 1/(n+1) of the keys must move if loads are to be even again: that is 100 %. Reported are the
keys that moved in percent of it, and the load of the fullest node in percent of the average, before and after. Keys
alone are counted, nothing is sent.

The moves are those of the system `partitioned-kv`: 30 partitions, a fourth node joins, an administrator asks. Times are
those of the simulated world: from the moment at which the source takes no more writes until the target takes them, and
from the first such moment until the last.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import msgspec

from faultline.harness.invariant import Invariant, Report
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import NodeSystem
from faultline.registry import resolve
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    assign_by_rendezvous,
    assign_round_robin,
    partition_hash,
    plan_rebalancing,
)
from faultline.systems_under_test.patterns.data_partitioning.partition_host import MIGRATING, SERVING
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TokenRing, tokens_of
from faultline.systems_under_test.reference.partitioned_kv.messages import PartitionsHosted
from faultline.systems_under_test.reference.partitioned_kv.system import PartitionedKv

__all__ = ["main"]

Placement = Callable[[int], str]
"""A map from a hashed key to its node."""


class Cost(NamedTuple):
    """One way of spreading, at one size: the keys that moved, and the load of the fullest node, all in percent."""

    moved: float
    fullest_before: float
    fullest_after: float


def by_hash_of_nodes(nodes: Sequence[str]) -> tuple[Placement, Placement]:
    """Return hash modulo nodes, without partitions."""
    before = list(nodes[:-1])
    return lambda hashed: before[hashed % len(before)], lambda hashed: nodes[hashed % len(nodes)]


def by_partitions(partitions: int) -> Callable[[Sequence[str]], tuple[Placement, Placement]]:
    """Return fixed partitions, round robin at first and then evened out."""

    def placements(nodes: Sequence[str]) -> tuple[Placement, Placement]:
        before = assign_round_robin(partitions, nodes[:-1], 1)
        after = list(before)
        for move in plan_rebalancing(before, nodes):
            after[move.partition] = move.target
        return lambda hashed: before[hashed % partitions], lambda hashed: after[hashed % partitions]

    return placements


def by_rendezvous(nodes: Sequence[str]) -> tuple[Placement, Placement]:
    """Return fixed partitions, each at the node that rendezvous hashing gives, before and after."""
    before, after = assign_by_rendezvous(1024, nodes[:-1], 1), assign_by_rendezvous(1024, nodes, 1)
    return lambda hashed: before[hashed % 1024], lambda hashed: after[hashed % 1024]


def by_ring(tokens: int) -> Callable[[Sequence[str]], tuple[Placement, Placement]]:
    """Return a ring with that many tokens per node."""

    def placements(nodes: Sequence[str]) -> tuple[Placement, Placement]:
        before, after = TokenRing(), TokenRing()
        for node in nodes:
            after.add(node, tokens_of(node, 1, tokens))
            if node != nodes[-1]:
                before.add(node, tokens_of(node, 1, tokens))
        return before.owner_of, after.owner_of

    return placements


WAYS: dict[str, Callable[[Sequence[str]], tuple[Placement, Placement]]] = {
    "hash modulo nodes": by_hash_of_nodes,
    "271 partitions": by_partitions(271),
    "1,024 partitions": by_partitions(1024),
    "1,024 partitions, rendezvous": by_rendezvous,
    "ring, 1 token per node": by_ring(1),
    "ring, 256 tokens per node": by_ring(256),
}


def measured(way: Callable[[Sequence[str]], tuple[Placement, Placement]], nodes: int, keys: Sequence[int]) -> Cost:
    """Return the cost of one node more than `nodes`."""
    before, after = way([f"node-{number}" for number in range(nodes + 1)])
    places = [(before(key), after(key)) for key in keys]
    moved = sum(old != new for old, new in places)
    return Cost(
        100 * moved * (nodes + 1) / len(keys),
        100 * _fullest(old for old, _ in places) * nodes / len(keys),
        100 * _fullest(new for _, new in places) * (nodes + 1) / len(keys),
    )


def _fullest(owners: Iterable[str]) -> int:
    return max(Counter(owners).values())


class MoveTimes:
    """An invariant that never breaks: it notes when partitions stop taking writes, and when they take them again."""

    id = "move-times"
    statement = "moves take time"
    events: tuple[type[msgspec.Struct], ...] = (PartitionsHosted,)

    def __init__(self) -> None:
        self.first_us: int | None = None
        self.last_us = 0
        self.moves_us: list[int] = []
        self._stopped_us: dict[int, int] = {}

    def observe(self, time_us: int, _: str, event: PartitionsHosted, __: Report) -> None:
        """Note the time of the event."""
        if event.state == MIGRATING:
            self.first_us = time_us if self.first_us is None else self.first_us
            self._stopped_us.setdefault(event.partition, time_us)
        elif event.state == SERVING and event.partition in self._stopped_us:
            self.moves_us.append(time_us - self._stopped_us.pop(event.partition))
            self.last_us = time_us


class _Timed(PartitionedKv):
    def __init__(self) -> None:
        self.times = MoveTimes()

    def invariants(self) -> list[Invariant]:
        return [self.times]


def timed_moves(runs: int) -> tuple[list[int], list[int]]:
    """Return the times of each move, and of each whole rebalancing, in simulated microseconds."""
    moves_us: list[int] = []
    whole_us: list[int] = []
    options = {"late_nodes": "1", "join_after_ms": "500", "reassign_every_ms": "200"}
    for seed in range(runs):
        system = _Timed()
        request = RunRequest(system="partitioned-kv", faults=(), seed=seed, nodes=4, options=options)
        parts = replace(resolve(request), system=cast(NodeSystem, system))
        run_simulated(make_plan(request, parts), parts)
        times = system.times
        moves_us += times.moves_us
        if times.first_us is not None:
            whole_us.append(times.last_us - times.first_us)
    return sorted(moves_us), sorted(whole_us)


def _print_moves(runs: int) -> None:
    for name, times_us in zip(("one move", "all moves of a join"), timed_moves(runs), strict=True):
        middle, most = times_us[len(times_us) // 2], times_us[-1]
        print(f"{name}: {len(times_us)}, median {middle / 1_000:.1f} ms, longest {most / 1_000:.1f} ms")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="3,10,100", help="how many there are before one joins, separated by commas")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--moves", type=int, default=0, metavar="RUNS", help="time the moves of so many simulated runs")
    options = parser.parse_args(arguments)
    if options.moves:
        _print_moves(options.moves)
        return 0
    keys = [partition_hash(f"key-{number}") for number in range(options.keys)]
    print(f"{'':30} {'nodes':>9} {'moved':>8} {'fullest before':>15} {'after':>7}")
    for name, way in WAYS.items():
        for nodes in map(int, options.nodes.split(",")):
            cost = measured(way, nodes, keys)
            print(
                f"{name:30} {nodes:>4} + 1 {cost.moved:>6.0f} % {cost.fullest_before:>13.0f} %"
                f" {cost.fullest_after:>5.0f} %"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
