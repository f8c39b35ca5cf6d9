"""The invariant of a table of key ranges, checked on the reports of its coordinator while a run goes on."""

from __future__ import annotations

from itertools import pairwise

from faultline.harness.invariant import Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import MAX_KEY, MIN_KEY
from faultline.systems_under_test.reference.ranges.messages import TableChanged

__all__ = ["RangesTile"]


class RangesTile(ReportingInvariant):
    """Every key has one partition, after every change of the table."""

    id = "KRP-I1"
    statement = "After every change of the table its ranges tile the key space: no gap, no overlap, none empty."
    events = (TableChanged,)

    def observe(self, time_us: int, node: str, event: TableChanged, report: Report) -> None:
        """Lay the ranges side by side."""
        ordered = sorted((partition.range for partition in event.partitions), key=lambda each: each.start)
        tiles = ordered[0].start == MIN_KEY and ordered[-1].end == MAX_KEY
        touching = all(one.end == other.start and one.start < other.start for one, other in pairwise(ordered))
        if not (tiles and touching):
            words = ", ".join(map(str, ordered))
            self._breach(report, time_us, node, f"Entry {event.index} of {node}'s table left the ranges {words}.")
