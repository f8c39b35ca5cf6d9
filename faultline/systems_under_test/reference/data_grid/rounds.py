"""The coordinator's rounds: it hears every member before it hands out partitions, and tells all the outcome.

    coordinator ── collect ──▶ members: take no part in earlier tables, tell the newest one and the copies
    coordinator ── publish ──▶ members: follow the table

A round begins with each new membership, and when loads have become uneven. The coordinator waits for *all* members, not
for some: only then has the membership converged, and no copy is overlooked. A member that does not answer fails, which
makes another membership and another round. With `minimum_size=majority` a group that is too small begins none. A
failure detector alone so never decides about a split: that rule does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.data_grid.messages import (
    CollectCopies,
    CopiesCollected,
    PublishTable,
    RoundRefused,
    TableMade,
)
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.table import (
    AWAY,
    NO_TABLE_YET,
    CopyReport,
    GridTable,
    Holder,
    MemberReport,
    next_table,
)

__all__ = ["Rounds"]


class Rounds:
    """The rounds of one node, while it coordinates. `cluster` has the addresses of all nodes, members or not."""

    def __init__(
        self,
        ports: Ports,
        cluster: tuple[str, ...],
        settings: GridSettings,
        send: Callable[[str, Any], None],
    ) -> None:
        self._ports = ports
        self._cluster = cluster
        self._settings = settings
        self._send = send
        self._highest = 0
        self._version = 0
        self._membership: Membership | None = None
        self._missing: dict[str, int] = {}
        self._reports: dict[str, MemberReport] = {}
        self._table = NO_TABLE_YET
        self._untold: set[str] = set()

    @property
    def is_open(self) -> bool:
        """True while members have not answered yet."""
        return bool(self._missing)

    def is_large_enough(self, membership: Membership) -> bool:
        """Return whether the group may hand out partitions."""
        return self._settings.minimum_size == "none" or len(membership.live) >= majority(len(self._cluster))

    def begin(self, membership: Membership, promised: int) -> None:
        """Ask the live members for their copies, for a table above all rounds known, `promised` the highest here."""
        self.close()
        if not self.is_large_enough(membership):
            self._ports.trace.sometimes("minimum-size-not-reached")
            return
        self._highest = max(self._highest, promised)
        # Two coordinators never use one version: each has every so-many-th number, by its place in the cluster.
        nodes = len(self._cluster)
        self._version = (self._highest // nodes + 1) * nodes + self._cluster.index(self._ports.node_id)
        self._highest = self._version
        self._membership = membership
        self._missing = {member.address: member.instance for member in membership.live}
        self._ask()

    def close(self) -> None:
        """Give the round up, and tell no outcome any more."""
        self._missing.clear()
        self._reports.clear()
        self._untold.clear()
        self._membership = None

    def _ask(self) -> None:
        membership = self._membership
        assert membership is not None
        question = CollectCopies(self._version, membership.version)
        for address in list(self._missing):
            self._send(address, question)

    def repeat(self) -> None:
        """Ask those that did not answer again, and tell those that did not hear of the table."""
        if self.is_open:
            self._ask()
        for address in sorted(self._untold):
            self._send(address, PublishTable(self._table))

    def take_report(self, message: CopiesCollected) -> None:
        """Take a member's answer; the last one makes the table."""
        holder = message.report.holder
        if message.version != self._version or self._missing.get(holder.address) != holder.instance:
            return
        del self._missing[holder.address]
        self._reports[holder.address] = message.report
        if not self._missing:
            self._finish()

    def take_refusal(self, message: RoundRefused) -> None:
        """Begin again above a later round, of a coordinator that was before this one or beside it."""
        self._highest = max(self._highest, message.promised)
        if self.is_open and message.version == self._version and self._membership is not None:
            self._ports.trace.sometimes("round-refused")
            self.begin(self._membership, message.promised)

    def take_acknowledgement(self, address: str, version: int) -> None:
        """Note that a member follows the table."""
        if version == self._table.version:
            self._untold.discard(address)

    def is_uneven(self, table: GridTable, membership: Membership) -> bool:
        """Return whether another table would spread the partitions more evenly, if all copies are as they should be."""
        if self.is_open or not self.is_large_enough(membership):
            return False
        reports = [
            MemberReport(
                Holder(member.address, member.instance),
                table,
                tuple(
                    CopyReport(partition, entry.generation, 0)
                    for partition, entry in enumerate(table.entries)
                    if Holder(member.address, member.instance) in entry.holders
                ),
            )
            for member in sorted(membership.live, key=lambda each: each.age)
        ]
        return bool(table.entries) and self._next(table, table.version + 1, reports).entries != table.entries

    def _finish(self) -> None:
        membership = self._membership
        assert membership is not None
        order = sorted(membership.live, key=lambda member: member.age)
        reports = [self._reports[member.address] for member in order]
        previous = max((report.table for report in reports), key=lambda table: table.version)
        table = self._next(previous, self._version, reports)
        self._tell_changes(previous, table)
        self._ports.trace.emit(TableMade(table))
        self._table = table
        self._untold = set(table.members)
        self._reports.clear()
        for address in table.members:
            self._send(address, PublishTable(table))

    def _next(self, previous: GridTable, version: int, reports: list[MemberReport]) -> GridTable:
        settings = self._settings
        copies = settings.backups + 1
        return next_table(previous, version, reports, settings.partitions, copies, waits=self._waits_for_copies())

    def _waits_for_copies(self) -> bool:
        """Return whether a partition stays away while its good copies may come back, instead of beginning anew."""
        return self._settings.minimum_size == "majority"

    def _tell_changes(self, before: GridTable, table: GridTable) -> None:
        """Count the marks of what the table changes."""
        trace = self._ports.trace
        trace.sometimes("table-made")
        for old, new in zip(before.entries, table.entries, strict=False):
            if new.owner == AWAY:
                trace.sometimes("partition-away")
            elif new.generation != old.generation and not new.basis and old.basis:
                trace.sometimes("partition-begun-anew")
            elif old.owner not in (new.owner, AWAY):
                trace.sometimes("partition-moved" if old.owner in table.members else "backup-promoted")
