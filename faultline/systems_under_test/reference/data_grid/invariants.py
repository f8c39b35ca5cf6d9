"""The invariants of `data-grid`, checked on what its nodes report while a run goes on."""

from __future__ import annotations

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.data_grid.messages import (
    CopiesDropped,
    CopyReached,
    LeaseAcknowledged,
    RequestServed,
    TableFollowed,
    TableMade,
    WriteAccepted,
)
from faultline.systems_under_test.reference.data_grid.table import GridTable
from faultline.systems_under_test.reference.membership.invariants import member_invariants
from faultline.systems_under_test.reference.membership.messages import NodeStarted

__all__ = [
    "AnswersAreOnAllBackups",
    "DroppedWritesAreReported",
    "OneOwnerServes",
    "OwnersHoldLeases",
    "TablesAscend",
    "grid_invariants",
]

_CLOCK_PERCENT = 120
"""The time that a lease may last while its owner's clock, which may run slow, measures 100 of it."""


class OneOwnerServes(ReportingInvariant):
    """Ownership passes from generation to generation, and no owner comes back. Not where both halves may serve."""

    id = "EL-I9"
    statement = "A generation of a partition is served by one node, and none is served after a later one."
    events = (RequestServed,)
    needs_order = True

    def __init__(self) -> None:
        self._served: dict[int, tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: RequestServed, report: Report) -> None:
        """Compare with the latest generation that was served."""
        if not event.is_promised:
            return
        generation, owner = self._served.get(event.partition, (0, node))
        if event.generation < generation or (event.generation == generation and node != owner):
            sentence = (
                f"{node} served partition {event.partition} in generation {event.generation}, after {owner} had in"
                f" generation {generation}."
            )
            self._breach(report, time_us, node, sentence)
        else:
            self._served[event.partition] = (event.generation, node)


class AnswersAreOnAllBackups(ReportingInvariant):
    """An answer shows only writes that no failure of the owner can take back."""

    id = "EL-I10"
    statement = "Every backup of a partition has the writes out of which its owner answers."
    events = (CopyReached, RequestServed)
    needs_order = True

    def __init__(self) -> None:
        self._reached: dict[tuple[str, int], tuple[int, int]] = {}

    def observe(self, time_us: int, node: str, event: CopyReached | RequestServed, report: Report) -> None:
        """Compare each answer with the farthest that every backup has come, in this life or an earlier one."""
        copy = (event.generation, event.number)
        if isinstance(event, CopyReached):
            place = (node, event.partition)
            self._reached[place] = max(copy, self._reached.get(place, copy))
            return
        for backup in event.backups:
            reached = self._reached.get((backup, event.partition), (0, 0))
            if reached < copy:
                sentence = (
                    f"{node} answered out of {event.number} writes of partition {event.partition} in generation"
                    f" {event.generation}; its backup {backup} had {reached[1]} in generation {reached[0]}."
                )
                self._breach(report, time_us, node, sentence)


class TablesAscend(ReportingInvariant):
    """A node goes by ever later tables, over its restarts too, and a version is one table for all."""

    id = "EL-I11"
    statement = "The versions of the tables that a node follows ascend, and a version is one table."
    events = (TableMade, TableFollowed)

    def __init__(self) -> None:
        self._tables: dict[int, GridTable] = {}
        self._followed: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: TableMade | TableFollowed, report: Report) -> None:
        """Compare with the first table of that version, and with the version that the node followed before."""
        version = event.table.version
        if self._tables.setdefault(version, event.table) != event.table:
            self._breach(report, time_us, node, f"There are two tables of version {version}.")
        if isinstance(event, TableFollowed):
            before = self._followed.get(node, 0)
            self._followed[node] = version
            if version <= before:
                sentence = f"{node} followed the table of version {version} after that of version {before}."
                self._breach(report, time_us, node, sentence)


class OwnersHoldLeases(ReportingInvariant):
    """Enough nodes have lately told an owner that they follow its table."""

    id = "EL-I12"
    statement = "An owner answers only while as many nodes as it needs have acknowledged its table within a lease."
    events = (LeaseAcknowledged, RequestServed)
    needs_order = True

    def __init__(self) -> None:
        self._granted_us: dict[tuple[str, int], dict[str, int]] = {}

    def observe(self, time_us: int, node: str, event: LeaseAcknowledged | RequestServed, report: Report) -> None:
        """Count the grants of the owner's table that are no older than a lease."""
        if isinstance(event, LeaseAcknowledged):
            self._granted_us.setdefault((event.owner, event.version), {})[node] = time_us
            return
        since_us = time_us - event.lease_us * _CLOCK_PERCENT // 100
        granted_us = self._granted_us.get((node, event.version), {}).values()
        count = sum(at_us >= since_us for at_us in granted_us)
        if count < event.needed:
            sentence = (
                f"{node} served partition {event.partition} under version {event.version}, which {count} nodes had"
                f" lately acknowledged; it needs {event.needed}."
            )
            self._breach(report, time_us, node, sentence)


class DroppedWritesAreReported(ReportingInvariant):
    """A group that dissolves names what it had acknowledged on its own."""

    id = "EL-I13"
    statement = "An owner that drops its data at a merge reports each write that its group acknowledged on its own."
    events = (WriteAccepted, CopiesDropped, TableFollowed, NodeStarted)

    def __init__(self) -> None:
        self._accepted: dict[str, dict[int, set[str]]] = {}

    def observe(
        self,
        time_us: int,
        node: str,
        event: WriteAccepted | CopiesDropped | TableFollowed | NodeStarted,
        report: Report,
    ) -> None:
        """Compare the keys that are reported with those of acknowledged writes."""
        if isinstance(event, WriteAccepted):
            self._accepted.setdefault(node, {}).setdefault(event.partition, set()).add(event.key)
        elif isinstance(event, CopiesDropped):
            missing = self._accepted.get(node, {}).pop(event.partition, set()) - set(event.keys)
            if missing:
                sentence = (
                    f"{node} dropped partition {event.partition} and did not report {', '.join(sorted(missing))}."
                )
                self._breach(report, time_us, node, sentence)
        elif isinstance(event, NodeStarted) or not event.is_at_risk:
            # An empty memory has no writes, and writes that a majority keeps are no group's own.
            self._accepted.pop(node, None)


def grid_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run; those of memberships come with them."""
    return [
        OneOwnerServes(),
        AnswersAreOnAllBackups(),
        TablesAscend(),
        OwnersHoldLeases(),
        DroppedWritesAreReported(),
        *member_invariants(),
    ]
