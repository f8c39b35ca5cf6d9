"""Strongly connected components of the suspect regions, by Tarjan's algorithm without recursion.

A cycle lies within one component, so components are where cycles are looked for. The real-time order enters as a chain
of *return barriers*: one extra node for each completion, reached from the transaction that completed and from the
barrier before it, and leading to the transactions invoked after it and before the next completion. That is two edges
for each transaction in place of one for each ordered pair.

Why not a library: after `order.suspect_regions` a valid history leaves nothing to search, and an invalid one a few
hundred transactions, or where hundreds of anomalies are spread over it some ten thousand, which take 0.08 s. scipy's
own routine is ten times as fast, but importing scipy alone takes 0.17 s: docs/reference/performance.md has the figures.
"""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import NEVER, Integers, TransactionColumns
from faultline.checkers.transactions.edges import DependencyEdges
from faultline.checkers.transactions.order import Regions

__all__ = ["strongly_connected", "suspect_components"]


def suspect_components(
    columns: TransactionColumns, edges: DependencyEdges, regions: Regions, realtime: bool
) -> list[list[int]]:
    """Return the components with at least two transactions, each as the transactions and hubs in it, in increasing
    order."""
    nodes = np.flatnonzero(regions.of_node >= 0)
    if not len(nodes):
        return []
    local = np.full(edges.nodes, -1, dtype=np.int64)
    local[nodes] = np.arange(len(nodes))
    same = (regions.of_node[edges.source] >= 0) & (regions.of_node[edges.source] == regions.of_node[edges.target])
    source, target, count = local[edges.source[same]], local[edges.target[same]], len(nodes)
    if realtime:
        transactions = nodes[nodes < edges.transactions]
        barriers = _return_barriers(columns.invoke[transactions], columns.complete[transactions], count)
        source, target = np.concatenate((source, barriers[0])), np.concatenate((target, barriers[1]))
        count = barriers[2]
    found = strongly_connected(count, source, target)
    members = [sorted(int(nodes[node]) for node in component if node < len(nodes)) for component in found]
    return sorted(component for component in members if len(component) > 1 and component[1] < edges.transactions)


def _return_barriers(invoke: Integers, complete: Integers, first_barrier: int) -> tuple[Integers, Integers, int]:
    """Return edges by completion before invocation; transactions are numbered from 0, barriers after them."""
    completing = np.flatnonzero(complete < NEVER)
    completing = completing[np.argsort(complete[completing], kind="stable")]
    barriers = first_barrier + np.arange(len(completing))
    latest = np.searchsorted(complete[completing], invoke) - 1
    after = np.flatnonzero(latest >= 0)
    source = np.concatenate((completing, barriers[:-1], first_barrier + latest[after]))
    target = np.concatenate((barriers, barriers[1:], after))
    return source, target, first_barrier + len(completing)


def strongly_connected(count: int, source: Integers, target: Integers) -> list[list[int]]:
    """Return all components of more than one node of the graph on nodes 0 … `count` - 1."""
    order = np.argsort(source, kind="stable")
    successors = target[order].tolist()
    begin = np.searchsorted(source[order], np.arange(count + 1)).tolist()
    position, number, low = begin[:-1], [0] * count, [0] * count
    stack: list[int] = []
    waiting = bytearray(count)
    components: list[list[int]] = []
    counter = 0
    for root in range(count):
        if number[root]:
            continue
        counter += 1
        number[root] = low[root] = counter
        stack.append(root)
        waiting[root] = 1
        path = [root]
        while path:
            node = path[-1]
            place = position[node]
            if place < begin[node + 1]:
                position[node] = place + 1
                following = successors[place]
                if not number[following]:
                    counter += 1
                    number[following] = low[following] = counter
                    stack.append(following)
                    waiting[following] = 1
                    path.append(following)
                elif waiting[following] and number[following] < low[node]:
                    low[node] = number[following]
                continue
            path.pop()
            if path and low[node] < low[path[-1]]:
                low[path[-1]] = low[node]
            if low[node] == number[node]:
                component = _unwound(stack, waiting, node)
                if len(component) > 1:
                    components.append(component)
    return components


def _unwound(stack: list[int], waiting: bytearray, root: int) -> list[int]:
    component = []
    while True:
        node = stack.pop()
        waiting[node] = 0
        component.append(node)
        if node == root:
            return component
