"""Fault sets of a data centre: racks that fail as one, and the first year of a cluster at its own rates.

The figures are Jeff Dean's, as chapter 1 of the book quotes them ("Designs, Lessons and Advice from Building Large
Distributed Systems", LADIS 2009): so many events of each kind in the first year of a cluster. He gave the size of the
cluster elsewhere (Google I/O 2008): 1,800 servers, 40 to a rack. An event that strikes one machine therefore happens to
each node 1/1,800 times as often, one that strikes a rack 1/45 times as often to each rack, and one that strikes a large
part of the cluster as often as it says. A run is not a year: `Package` spaces its faults as those of all sets, and the
rates decide which of them it is. Outages of an hour or more become faults that outlast an election, those of minutes
shorter ones.
"""

from __future__ import annotations

from dataclasses import replace

from faultline.nemesis.packages import Package, Recipe

__all__ = ["DATA_CENTRE", "RACKS"]

_MACHINES = 1_800
_RACKS = 45
_LONG, _SHORT = 1.0, 0.0
"""Shares of faults that outlast an election."""
_HALF_LOST = (("loss", (0.5,)),)


def _shape(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (("shape", (name,)),)


RACKS = Package(
    "racks",
    "kills racks, cuts them off and lets them lose half of their packets, and restarts nodes in turn",
    (
        Recipe("kill", ("rack",), racks_min=1),
        Recipe("partition", ("one", "leader"), _shape("rack-alone"), nodes_min=2, racks_min=2),
        Recipe("partition", ("one", "leader"), _shape("between-racks"), nodes_min=2, racks_min=2),
        Recipe("packet-loss", ("rack",), _HALF_LOST, nodes_min=2, racks_min=1),
        Recipe("rolling-restart", ("all", "rack"), long_share=0.8, racks_min=1),
    ),
)
"""The faults of racks that all worlds can inject, none of them more likely than the others."""

# The rows of Dean's list in its order. Its moments without DNS have no counterpart here: nodes know each other's
# addresses. A router that reloads takes a rack's way to another one; of eight maintenances four are felt.
_OF_THE_CLUSTER = (
    Recipe("power-off", ("majority",), long_share=_LONG, per_year=0.5),  # overheating
    Recipe("power-off", ("half-the-racks",), long_share=_LONG, racks_min=1, per_year=1),  # a power distribution unit
    Recipe("kill", ("half-the-racks",), long_share=_LONG, racks_min=1, per_year=1),  # a move of racks, with warning
    Recipe("rolling-restart", ("all",), long_share=_LONG, per_year=1),  # a rewiring of the network
    Recipe("partition", ("one",), _shape("random-links"), _SHORT, nodes_min=2, per_year=4),  # maintenance
)
_OF_RACKS = tuple(
    replace(recipe, racks_min=max(1, recipe.racks_min), per_year=recipe.per_year / _RACKS, rate_of="rack")
    for recipe in (
        Recipe("power-off", ("rack",), long_share=_LONG, per_year=20),
        Recipe("packet-loss", ("rack",), _HALF_LOST, _LONG, nodes_min=2, per_year=5),
        Recipe("partition", ("one",), _shape("between-racks"), _SHORT, nodes_min=2, racks_min=2, per_year=12),
        Recipe("partition", ("one",), _shape("between-racks"), _LONG, nodes_min=2, racks_min=2, per_year=3),
    )
)
# "Thousands" of drives fail: two thousand, half of which refuse writes and half of which fail to sync. The list ends
# with slow disks and flaky machines and gives no number: each is taken to come as often as a machine fails.
_OF_NODES = tuple(
    replace(recipe, per_year=recipe.per_year / _MACHINES, rate_of="node")
    for recipe in (
        Recipe("power-off", ("one",), per_year=1_000),
        Recipe("disk-read-only", ("one",), per_year=1_000),
        Recipe("fsync-fail", ("one",), per_year=1_000),
        Recipe("disk-stall", ("one",), per_year=1_000),
        Recipe("pause", ("one",), per_year=1_000),
    )
)

DATA_CENTRE = Package(
    "data-centre",
    "strikes nodes, disks, racks and links as often as the first year of a data centre does",
    (*_OF_THE_CLUSTER, *_OF_RACKS, *_OF_NODES),
)
"""The faults of one year of a cluster, each as likely as it is frequent."""
