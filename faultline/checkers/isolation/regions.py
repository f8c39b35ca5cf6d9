"""The parts of a saturated polygraph in which writes are still open, each to be decided by itself.

An open pair of writers may come either way, so that the two and the readers of what they wrote may lie on one cycle
together. All other arcs are known. A cycle therefore lies within one strongly connected component of the known arcs
and the groups of open writers, and a history that a store made has mostly small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from faultline.checkers.isolation.polygraph import Dependency
from faultline.checkers.isolation.saturation import Saturation, WriteOrder
from faultline.checkers.transactions.components import strongly_connected

__all__ = ["Region", "open_groups", "open_regions"]


class Region(NamedTuple):
    """Transactions and barriers, the dependencies among them, and groups of writers of a key in no certain order."""

    nodes: list[int]
    known: list[Dependency]
    groups: list[tuple[Any, list[int]]]


def open_groups(order: WriteOrder) -> Iterator[list[int]]:
    """Yield groups of writers of a key: each group comes before the next one, and has two or more writers.

    Sorted by the number of writers before them, writers are in an order that respects theirs. A group ends where all
    writers after it follow all writers so far.
    """
    places = sorted(range(1, len(order.writers)), key=lambda place: order.before[place].bit_count())
    common = [0] * len(places)
    shared = -1
    for number in range(len(places) - 1, -1, -1):
        shared &= order.before[places[number]]
        common[number] = shared
    group: list[int] = []
    so_far = 0
    for number, place in enumerate(places):
        if group and not so_far & ~common[number]:
            if len(group) > 1:
                yield group
            group = []
        group.append(order.writers[place])
        so_far |= 1 << place
    if len(group) > 1:
        yield group


def open_regions(saturation: Saturation) -> list[Region]:
    """Return the regions of a saturated polygraph, in order of their first transaction."""
    polygraph = saturation.polygraph
    dependencies = list(saturation.dependencies())
    source = [dependency.source for dependency in dependencies]
    target = [dependency.target for dependency in dependencies]
    groups = [(order.key, group) for order in saturation.orders for group in open_groups(order)]
    for key, group in groups:
        members = list(group)
        for writer in group:
            members += polygraph.readers.get((key, writer), ())
        source += members
        target += [*members[1:], members[0]]
    found = strongly_connected(polygraph.nodes, np.array(source, dtype=np.int64), np.array(target, dtype=np.int64))
    region_of = {node: number for number, nodes in enumerate(found) for node in nodes}
    regions = [Region(sorted(nodes), [], []) for nodes in found]
    for key, group in groups:
        regions[region_of[group[0]]].groups.append((key, group))
    for dependency in dependencies:
        number = region_of.get(dependency.source, -1)
        if number >= 0 and region_of.get(dependency.target) == number:
            regions[number].known.append(dependency)
    return sorted((region for region in regions if region.groups), key=lambda region: region.nodes[0])
