"""The planted bugs of `data-grid`: each a class that changes one of the `GridParts`, or the node.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from faultline.systems_under_test.reference.data_grid.node import GridParts
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("data-grid", GridParts, pattern="emergent-leader", campaign="data-grid")
