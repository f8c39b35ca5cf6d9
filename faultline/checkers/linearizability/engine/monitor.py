"""The monitor of registers: near-linear where the operations themselves say which write each read saw.

Where each value is put once, the zones judge as they are (`zones`). Where values repeat, reads are mapped to writes
first (`read_mapping`), the zones judge what is sure, and the reads that are left are assigned (`assignment`).
"""

from __future__ import annotations

from faultline.checkers.linearizability.engine.assignment import assign_all
from faultline.checkers.linearizability.engine.problem import INITIAL, Problem
from faultline.checkers.linearizability.engine.read_mapping import Mapping, Naming
from faultline.checkers.linearizability.engine.zones import (
    Cluster,
    Contradiction,
    Zone,
    lined_up,
    with_failed,
    written_down,
)
from faultline.checkers.linearizability.operations import WRITE

__all__ = ["check_zones", "repeats_often"]

Lineup = tuple[dict[int, Cluster], list[Zone]]
"""The clusters by value, and the zones in an order in which they can stand."""


OFTEN = 4
"""The average number of writes of a value above which values repeat often. The kernel has the same number."""


def repeats_often(problem: Problem) -> bool:
    """Return whether values are put so often that few reads can be mapped: then a search is likelier to decide."""
    put = [value for kind, value in zip(problem.kind, problem.produce) if kind >= WRITE]
    seen = [value for kind, value in zip(problem.kind, problem.demand) if kind != WRITE]
    return len(put) > OFTEN * len({INITIAL, *put, *seen})


def check_zones(problem: Problem) -> list[int] | None:
    """Return a linearization of `problem`; None when the monitor does not apply or does not know.

    Raises Contradiction when there is none.
    """
    if problem.has_appends:
        return None
    mapping = Mapping(problem)
    lineup = _lined_up_mapped(mapping) if mapping.has_repeated else _lined_up(mapping)
    if lineup is None:
        return None
    clusters, zones = lineup
    order = [i for zone in zones for i in written_down(clusters, zone)]
    return with_failed(problem, order) if problem.has_failed else order


def _lined_up_mapped(mapping: Mapping) -> Lineup | None:
    """Return the zones of a register on which values repeat, once its reads are mapped; None if they cannot be."""
    if not mapping.map_reads():
        return None
    lineup = _lined_up(mapping)
    if not mapping.unsure:
        return lineup
    if not assign_all(mapping, *lineup):
        return None
    try:
        return _lined_up(mapping)
    except Contradiction:
        # The search for an assignment looks at less than the zones do; another assignment may do.
        return None


def _lined_up(mapping: Mapping) -> Lineup:
    try:
        return lined_up(mapping.mapped)
    except Contradiction as contradiction:
        naming = Naming(mapping)
        for i in contradiction.operations:
            naming.add_in_chain(i)
        raise Contradiction(*naming.named) from None
