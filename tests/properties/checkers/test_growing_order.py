"""The dynamic topological order, compared with a walk through the whole graph after each step."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from faultline.checkers.incremental.order import GrowingOrder


def reaches(edges, start, goal):
    waiting, found = [start], {start}
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        following = [after for before, after in edges if before == node and after not in found]
        found.update(following)
        waiting += following
    return False


@pytest.mark.parametrize("seed", range(30))
def test_an_edge_closes_a_cycle_exactly_when_a_path_leads_back(seed):
    rng, order, edges = random.Random(seed), GrowingOrder(), set()
    for node in range(12):
        order.add(node)
    nodes, refused = list(range(12)), 0
    for _ in range(90):
        draw = rng.random()
        if draw < 0.03 and len(nodes) > 4:
            gone = nodes.pop(rng.randrange(len(nodes)))
            order.pass_over(gone)
            before, after = ([a for a, b in edges if b == gone], [b for a, b in edges if a == gone])
            edges = {edge for edge in edges if gone not in edge} | {(a, b) for a in before for b in after}
            continue
        one, other = rng.sample(nodes, 2)
        cycle = order.join(one, other)
        assert bool(cycle) is reaches(edges, other, one)
        if not cycle:
            edges.add((one, other))
            continue
        refused += 1
        assert (cycle[0], cycle[-1]) == (other, one)
        assert all(step in edges for step in pairwise(cycle))
    assert refused
    assert len(order) == len(nodes)


def test_a_node_on_itself_is_a_cycle_and_a_removed_one_takes_its_paths_along():
    order = GrowingOrder()
    for node in (1, 2, 3):
        order.add(node)
    assert order.join(1, 1) == (1,)
    assert not order.join(1, 2)
    assert not order.join(2, 3)
    order.remove(2)
    assert 2 not in order
    assert not order.join(3, 1)
