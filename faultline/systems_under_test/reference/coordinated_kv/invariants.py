"""The invariants of `coordinated-kv`, checked on the reports of its data nodes while a run goes on.

The core's own invariants come with them, leases included: its servers report as they do in `consistent-core`.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    ControllerActed,
    LeadershipBegan,
    ReplicaChanged,
    ReplicaCounted,
    ReplicasRecovered,
    RequestServed,
    TableSeen,
    TableTaken,
)
from faultline.systems_under_test.reference.coordinated_kv.table import NO_NODE, ClusterTable, Entry
from faultline.systems_under_test.reference.leases_and_watches.invariants import SERVICE_INVARIANTS
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants

__all__ = [
    "AnswersAreCopied",
    "AppointedAreInSync",
    "CopiesDoNotGoBack",
    "NothingServedIsLost",
    "OneControllerPerLease",
    "OneOwnerPerGeneration",
    "PartitionsComeBack",
    "TablesSucceedEachOther",
    "coordinated_invariants",
]

_SETTLED_US = 6_000_000
"""The longest drawn lease (2.4 s), which starts anew when the core is back, and three lost requests of 1.2 s each."""

_Copy = tuple[int, int]
"""The generation of a copy, and the number of its writes."""


class OneOwnerPerGeneration(ReportingInvariant):
    """X-I1, on the nodes that serve and on the tables."""

    id = "X-I1"
    statement = "Each generation of a partition has one owner, and no node under a lease serves one after a later one."
    events = (RequestServed, TableTaken)
    needs_order = True

    def __init__(self) -> None:
        self._served: dict[int, tuple[int, str]] = {}
        self._appointed: dict[tuple[int, int], tuple[str, int]] = {}

    def observe(self, time_us: int, node: str, event: RequestServed | TableTaken, report: Report) -> None:
        """Compare with the node that served last, or with the leader of the same generation in another table."""
        if isinstance(event, RequestServed):
            self._observe_served(time_us, node, event, report)
            return
        for partition, entry in enumerate(event.table.entries):
            if entry.leader == NO_NODE:
                continue
            appointed = (entry.leader, entry.incarnation)
            before = self._appointed.setdefault((partition, entry.generation), appointed)
            if before != appointed:
                sentence = (
                    f"Generation {entry.generation} of partition {partition} belongs to {entry.leader} in one table and"
                    f" to {before[0]} in another."
                )
                self._breach(report, time_us, node, sentence)

    def _observe_served(self, time_us: int, node: str, event: RequestServed, report: Report) -> None:
        # Without a lease a former leader may answer late: all in sync had confirmed before one of them became leader.
        generation, server = self._served.get(event.partition, (0, node))
        if (event.under_lease and event.generation < generation) or (event.generation == generation and node != server):
            sentence = (
                f"{node} served partition {event.partition} in generation {event.generation} after {server} had in"
                f" {generation}."
            )
            self._breach(report, time_us, node, sentence)
        self._served[event.partition] = max((generation, server), (event.generation, node))


class OneControllerPerLease(ReportingInvariant):
    """X-I2, on the tables that controllers store."""

    id = "X-I2"
    statement = "One node alone acts under each incarnation of the controller's lease, and none after a later one did."
    events = (ControllerActed,)
    needs_order = True

    def __init__(self) -> None:
        self._controllers: dict[int, str] = {}

    def observe(self, time_us: int, node: str, event: ControllerActed, report: Report) -> None:
        """Compare with the controllers that acted before."""
        token = event.table.token
        before = self._controllers.setdefault(token, node)
        if before != node:
            self._breach(report, time_us, node, f"{node} and {before} both acted as controller {token}.")
        later = max(self._controllers)
        if later > token:
            sentence = f"{node} acted as controller {token} after {self._controllers[later]} had as {later}."
            self._breach(report, time_us, node, sentence)


class TablesSucceedEachOther(ReportingInvariant):
    """X-I3, on the tables that nodes see and take."""

    id = "X-I3"
    statement = "Versions of the table are the same wherever they are seen, and nothing in a later one goes back."
    events = (TableTaken, TableSeen, ReplicasRecovered)

    def __init__(self) -> None:
        self._tables: dict[int, ClusterTable] = {}
        self._seen: dict[str, TableSeen] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare with the last version this node saw, and with the same and the nearest versions seen elsewhere."""
        if isinstance(event, ReplicasRecovered):
            self._seen.pop(node, None)
        elif isinstance(event, TableSeen):
            self._observe_seen(time_us, node, event, report)
        else:
            self._observe_taken(time_us, node, event.table, report)

    def _observe_seen(self, time_us: int, node: str, seen: TableSeen, report: Report) -> None:
        before = self._seen.setdefault(node, seen)
        if (seen.token, seen.version) < (before.token, before.version) or seen.version < before.version:
            sentence = (
                f"{node} saw version {seen.version} of controller {seen.token} in the core, after version"
                f" {before.version} of controller {before.token}."
            )
            self._breach(report, time_us, node, sentence)
        self._seen[node] = seen

    def _observe_taken(self, time_us: int, node: str, table: ClusterTable, report: Report) -> None:
        known = self._tables.get(table.version)
        if known is not None:
            if known != table:
                self._breach(report, time_us, node, f"There are two tables of version {table.version}.")
            return
        self._tables[table.version] = table
        earlier = max((version for version in self._tables if version < table.version), default=None)
        later = min((version for version in self._tables if version > table.version), default=None)
        pairs = ((earlier, table.version), (table.version, later))
        for old, new in pairs:
            if old is not None and new is not None:
                self._compare(time_us, node, self._tables[old], self._tables[new], report)

    def _compare(self, time_us: int, node: str, old: ClusterTable, new: ClusterTable, report: Report) -> None:
        if new.token < old.token:
            sentence = f"Version {new.version} is of controller {new.token}, after one of controller {old.token}."
            self._breach(report, time_us, node, sentence)
        for partition, (before, after) in enumerate(zip(old.entries, new.entries, strict=False)):
            if (after.generation, after.revision) < (before.generation, before.revision) or (
                after != before and after.revision <= before.revision
            ):
                sentence = (
                    f"Partition {partition} goes from generation {before.generation}, revision {before.revision}, in"
                    f" version {old.version} to generation {after.generation}, revision {after.revision}, in version"
                    f" {new.version}."
                )
                self._breach(report, time_us, node, sentence)


class AppointedAreInSync(ReportingInvariant):
    """X-I4, on each appointment in a table."""

    id = "X-I4"
    statement = "An appointed leader was in sync in the version before."
    events = (TableTaken,)

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Entry, ...]] = {}

    def observe(self, time_us: int, node: str, event: TableTaken, report: Report) -> None:
        """Compare each new leader with the set in sync before; versions that no node saw are not compared."""
        table = event.table
        if table.version in self._tables:
            return
        self._tables[table.version] = table.entries
        before = self._tables.get(table.version - 1, ())
        for partition, (old, new) in enumerate(zip(before, table.entries, strict=False)):
            if new.generation > old.generation and new.leader not in (NO_NODE, *old.in_sync):
                sentence = (
                    f"{new.leader} was appointed to partition {partition} in version {table.version}; in sync were"
                    f" {', '.join(old.in_sync)}."
                )
                self._breach(report, time_us, node, sentence)


class NothingServedIsLost(ReportingInvariant):
    """X-I5, on the number of writes a leader begins with."""

    id = "X-I5"
    statement = "A leader begins with at least the writes out of which earlier leaders answered their clients."
    events = (RequestServed, LeadershipBegan)
    needs_order = True

    def __init__(self) -> None:
        self._served: dict[int, dict[int, int]] = {}

    def observe(self, time_us: int, node: str, event: RequestServed | LeadershipBegan, report: Report) -> None:
        """Compare the writes a leader begins with to those that were shown in earlier generations."""
        served = self._served.setdefault(event.partition, {})
        if isinstance(event, RequestServed):
            served[event.generation] = max(served.get(event.generation, 0), event.number)
            return
        shown = max((number for generation, number in served.items() if generation < event.generation), default=0)
        if event.number < shown:
            sentence = (
                f"{node} began generation {event.generation} of partition {event.partition} with {event.number} writes,"
                f" after clients had been answered out of {shown}."
            )
            self._breach(report, time_us, node, sentence)


class CopiesDoNotGoBack(ReportingInvariant):
    """X-I6, in memory at every step, and over a restart as far as the node had told others."""

    id = "X-I6"
    statement = (
        "A node that has a copy of one generation takes nothing from leaders of lower ones, also after a restart."
    )
    events = (ReplicaChanged, LeadershipBegan, ReplicaCounted, ReplicasRecovered)
    needs_order = True

    def __init__(self) -> None:
        self._copies: dict[tuple[str, int], _Copy] = {}
        self._durable: dict[tuple[str, int], _Copy] = {}
        self._leaders: dict[tuple[int, int], str] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Compare with the node's earlier copy. A copy that it told others of was on its disk before."""
        if isinstance(event, ReplicasRecovered):
            self._observe_recovered(time_us, node, event, report)
            return
        place, copy = (node, event.partition), (event.generation, event.number)
        if isinstance(event, ReplicaCounted):
            self._note_durable((event.follower, event.partition), copy)
            return
        if isinstance(event, RequestServed):
            self._check(
                time_us, place, (event.generation, event.number), (self._copies.get(place, (0, 0))[0], 0), report
            )
            return
        if isinstance(event, LeadershipBegan):
            self._leaders[event.partition, event.generation] = node
        else:
            leader = self._leaders.get((event.partition, event.generation))
            if leader is not None and leader != node:
                self._note_durable((leader, event.partition), (event.generation, 0))
        self._check(time_us, place, copy, self._copies.get(place, (0, 0)), report)
        self._copies[place] = copy

    def _note_durable(self, place: tuple[str, int], copy: _Copy) -> None:
        self._durable[place] = max(copy, self._durable.get(place, (0, 0)))

    def _observe_recovered(self, time_us: int, node: str, event: ReplicasRecovered, report: Report) -> None:
        recovered = {(node, partition): (generation, number) for partition, generation, number in event.replicas}
        for place, before in self._durable.items():
            if place[0] == node:
                self._check(time_us, place, recovered.get(place, (0, 0)), before, report)
        self._copies = {place: copy for place, copy in self._copies.items() if place[0] != node} | recovered

    def _check(self, time_us: int, place: tuple[str, int], now: _Copy, before: _Copy, report: Report) -> None:
        if now < before:
            sentence = (
                f"{place[0]} goes by generation {now[0]} of partition {place[1]}, with {now[1]} writes, after it had"
                f" generation {before[0]} with {before[1]}."
            )
            self._breach(report, time_us, place[0], sentence)


class AnswersAreCopied(ReportingInvariant):
    """X-I7, on each answer and the copies at that moment."""

    id = "X-I7"
    statement = (
        "The writes behind an answer are on every replica that the table has in sync: each of them can be appointed."
    )
    events = (RequestServed, ControllerActed, TableTaken, ReplicaChanged, ReplicasRecovered)
    needs_order = True

    def __init__(self) -> None:
        self._table = ClusterTable()
        self._copies: dict[tuple[str, int], _Copy] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Remember the newest table and every follower's copy; compare them with each answer."""
        if isinstance(event, RequestServed):
            self._observe_served(time_us, node, event, report)
        elif isinstance(event, ReplicaChanged):
            self._copies[node, event.partition] = (event.generation, event.number)
        elif isinstance(event, ReplicasRecovered):
            self._copies = {place: copy for place, copy in self._copies.items() if place[0] != node}
            self._copies |= {
                (node, partition): (generation, number) for partition, generation, number in event.replicas
            }
        elif event.table.version > self._table.version:
            self._table = event.table

    def _observe_served(self, time_us: int, node: str, event: RequestServed, report: Report) -> None:
        entries = self._table.entries
        if event.partition >= len(entries) or entries[event.partition].generation != event.generation:
            return
        for follower in entries[event.partition].in_sync:
            generation, number = self._copies.get((follower, event.partition), (0, 0))
            if follower != node and (generation, number) < (event.generation, event.number):
                sentence = (
                    f"{node} answered out of {event.number} writes of partition {event.partition} in generation"
                    f" {event.generation}; {follower}, in sync, has {number} in generation {generation}."
                )
                self._breach(report, time_us, node, sentence)


class PartitionsComeBack(ReportingInvariant):
    """X-I8: looked at once, at the end of a run that was healed a while ago. Simulated world only."""

    id = "X-I8"
    statement = "Some time after the last fault every partition has a leader, and all its copies are in sync."
    events = (TableTaken,)

    def __init__(self) -> None:
        self._table = ClusterTable()

    def observe(self, time_us: int, node: str, event: TableTaken, report: Report) -> None:
        """Remember the newest table."""
        if event.table.version > self._table.version:
            self._table = event.table

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Examine the newest table, if there was time enough."""
        if healed_us + _SETTLED_US > end_us:
            return
        if not self._table.entries:
            self._breach(report, end_us, "", "No partition was ever given to a node.")
        for partition, entry in enumerate(self._table.entries):
            if entry.leader == NO_NODE:
                self._breach(report, end_us, "", f"Partition {partition} has no leader.")


def coordinated_invariants() -> list[Invariant]:
    """Return new instances, for one run; those of the core and its leases come with them."""
    return [
        OneOwnerPerGeneration(),
        OneControllerPerLease(),
        TablesSucceedEachOther(),
        AppointedAreInSync(),
        NothingServedIsLost(),
        AnswersAreCopied(),
        CopiesDoNotGoBack(),
        PartitionsComeBack(),
        *raft_invariants(),
        *(kind() for kind in SERVICE_INVARIANTS),
    ]
