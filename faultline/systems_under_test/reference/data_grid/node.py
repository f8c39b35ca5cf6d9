"""A node of `data-grid`: a member that holds copies of partitions, owns some of them, and may coordinate.

    client ── request ─▶ owner ── writes ─▶ backups ── stored ─▶ owner ── answer ─▶ client
    coordinator ── collect, publish ─▶ members                    (`rounds`, at each new membership)
    owner ── lease request ─▶ members ── granted ─▶ owner         (`lease`, some times in each lease)

Between its promise to a round and the table of that round a node serves nothing, stores nothing and grants no lease: it
is *frozen*. So the copies that it told the coordinator are those that the table is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.data_grid.copies import GridCopies, GridCopy
from faultline.systems_under_test.reference.data_grid.dropped import DroppedData
from faultline.systems_under_test.reference.data_grid.lease import MajorityLease
from faultline.systems_under_test.reference.data_grid.messages import (
    CollectCopies,
    CopiesCollected,
    CopyStored,
    DropCopy,
    DroppedWrites,
    DroppedWritesKnown,
    GridRefused,
    GridRequest,
    GridTableRead,
    InstallCopy,
    LeaseAcknowledged,
    LeaseGranted,
    LeaseRefused,
    LeaseRequest,
    PublishTable,
    ReadGridTable,
    ReplicateToBackup,
    RoundRefused,
    TableFollowed,
    TableTaken,
)
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.owner import PartitionOwner
from faultline.systems_under_test.reference.data_grid.rounds import Rounds
from faultline.systems_under_test.reference.data_grid.table import CopyReport, Entry, GridTable, Holder, MemberReport
from faultline.systems_under_test.reference.data_grid.table_log import TableLog
from faultline.systems_under_test.reference.membership.member import ClusterMember, MemberParts

__all__ = ["DataGridNode", "GridParts"]


@dataclass(frozen=True, slots=True)
class GridParts(MemberParts):
    """The parts that a node is built from; a planted bug changes one of them."""

    table_log: type[TableLog] = TableLog
    copies: type[GridCopies] = GridCopies
    owner: type[PartitionOwner] = PartitionOwner
    lease: type[MajorityLease] = MajorityLease
    rounds: type[Rounds] = Rounds
    dropped: type[DroppedData] = DroppedData


class DataGridNode(ClusterMember):
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: GridSettings, parts: GridParts) -> None:
        super().__init__(ports, members, settings, parts)
        self._cluster = tuple(members)
        self._grid = settings
        self._grid_parts = parts
        self._owners: dict[int, PartitionOwner] = {}
        self._handlers.update(
            {
                CollectCopies: self._handle_collect,
                CopiesCollected: lambda _, message: self._rounds.take_report(message),
                RoundRefused: lambda _, message: self._rounds.take_refusal(message),
                PublishTable: self._handle_publish,
                TableTaken: lambda source, message: self._rounds.take_acknowledgement(source, message.version),
                LeaseRequest: self._handle_lease_request,
                LeaseGranted: self._handle_grant,
                LeaseRefused: self._handle_lease_refused,
                InstallCopy: self._handle_install,
                ReplicateToBackup: self._handle_replicate,
                CopyStored: self._handle_stored,
                DropCopy: self._handle_drop,
                DroppedWrites: self._handle_dropped,
                DroppedWritesKnown: lambda _, message: self._dropped.take_acknowledgement(message.partition),
                GridRequest: self._handle_request,
                ReadGridTable: self._handle_read_table,
            }
        )

    def start(self) -> None:
        """Recover the table, and look for a cluster with an empty memory."""
        ports, settings, parts = self.ports, self._grid, self._grid_parts
        self._table_log = parts.table_log(ports)
        self._table_log.recover()
        self._copies = parts.copies(ports)
        self._lease = parts.lease(ports, self._cluster, settings, self._send)
        self._rounds = parts.rounds(ports, self._cluster, settings, self._send)
        self._dropped = parts.dropped(ports, self._send)
        super().start()
        ports.timers.every(settings.renewal_us, self._renew)
        ports.timers.every(settings.balance_interval_us, self._balance)

    @property
    def table(self) -> GridTable:
        """The table that this node follows."""
        return self._table_log.table

    def leave(self, contact: str) -> None:
        """Leave the cluster, and join the one that `contact` is in.

        A majority that goes on without this node learns its copies when it comes back, and may need them. With no
        minimum size the groups know nothing of each other's writes, so those of the one that dissolves are dropped.
        """
        self._rounds.close()
        if self._grid.minimum_size == "none":
            self._lose_the_data()
        super().leave(contact)

    def _lose_the_data(self) -> None:
        self._dropped.drop(self._owners)
        for owner in self._owners.values():
            owner.end()
        self._owners.clear()
        self._copies.clear()
        self._lease.end()
        self._table_log.forget()

    def _make(self, membership: Membership, before: Membership | None, silent: tuple[str, ...] = ()) -> None:
        super()._make(membership, before, silent)
        self._rounds.begin(membership, self._table_log.promised)

    def _install(self, membership: Membership) -> None:
        super()._install(membership)
        if not self.is_coordinator:
            self._rounds.close()

    def _tick(self) -> None:
        super()._tick()
        self._rounds.repeat()
        if not self._table_log.is_frozen:
            for owner in self._owners.values():
                owner.look_around()

    def _renew(self) -> None:
        self._lease.renew()
        self._dropped.report_to_owners(self.table)

    def _balance(self) -> None:
        membership = self.membership
        if membership is not None and self.is_coordinator and self._rounds.is_uneven(self.table, membership):
            self._rounds.begin(membership, self._table_log.promised)

    def _own_holder(self) -> Holder:
        return Holder(self.address, self.instance)

    def _handle_collect(self, source: NodeId, message: CollectCopies) -> None:
        membership = self.membership
        if membership is None or membership.coordinator.address != source or membership.version != message.membership:
            return
        if not self._table_log.promise(message.version):
            self._send(source, RoundRefused(message.version, self._table_log.promised))
            return
        # The coordinator takes this node's word that it serves no more, and lets others begin at once.
        self._lease.end()
        report = MemberReport(self._own_holder(), self.table, tuple(self._copy_reports()))
        self._send(source, CopiesCollected(message.version, report))

    def _copy_reports(self) -> list[CopyReport]:
        reports = []
        for partition, copy in self._copies:
            owner = self._owners.get(partition)
            is_waiting = owner is not None and owner.is_waiting
            reports.append(CopyReport(partition, copy.generation, copy.number, is_waiting))
        return reports

    def _handle_publish(self, source: NodeId, message: PublishTable) -> None:
        if self._table_log.follow(message.table):
            self._follow(message.table)
        if self.table.version >= message.table.version:
            self._send(source, TableTaken(message.table.version))

    def _follow(self, table: GridTable) -> None:
        """Own the partitions that `table` gives this start of the process, and go on with those that it keeps."""
        own = self._own_holder()
        is_at_risk = len(table.members) < majority(len(self._cluster))
        self.ports.trace.emit(TableFollowed(table, is_at_risk))
        self._lease.begin(table)
        for partition, entry in enumerate(table.entries):
            owner = self._owners.get(partition)
            if owner is not None and not (entry.is_owned_by(own) and entry.generation == owner.generation):
                self._owners.pop(partition).end()
            if entry.is_owned_by(own) and partition not in self._owners:
                self._owners[partition] = self._begin(partition, entry)
        for owner in self._owners.values():
            owner.follow(table, is_at_risk=is_at_risk)

    def _begin(self, partition: int, entry: Entry) -> PartitionOwner:
        make: Callable[..., PartitionOwner] = self._grid_parts.owner
        return make(self.ports, self._grid, self._copies, self._lease, self._send, partition, entry)

    def _handle_lease_request(self, source: NodeId, request: LeaseRequest) -> None:
        log = self._table_log
        if log.is_frozen or request.version != log.table.version:
            self._send(source, LeaseRefused(log.table.version, log.promised))
            return
        self.ports.trace.emit(LeaseAcknowledged(source, request.version))
        self._send(source, LeaseGranted(request.version, request.sent_us))

    def _handle_grant(self, source: NodeId, grant: LeaseGranted) -> None:
        self._lease.take_grant(source, grant)
        for owner in self._owners.values():
            owner.advance()

    def _handle_lease_refused(self, source: NodeId, refused: LeaseRefused) -> None:
        """As the coordinator, bring a node up to date that missed the table, or begin a round above what it knows."""
        membership = self.membership
        if membership is None or not self.is_coordinator or self._rounds.is_open or self._table_log.is_frozen:
            return
        if refused.promised > self.table.version:
            self._rounds.begin(membership, refused.promised)
        elif refused.version < self.table.version:
            self._send(source, PublishTable(self.table))

    def _takes_copies_of(self, partition: int, generation: int) -> bool:
        """Return whether this node backs that generation up, as far as it knows."""
        if self._table_log.is_frozen or partition >= len(self.table.entries):
            return False
        entry = self.table.entries[partition]
        return entry.generation == generation and entry.is_backed_up_by(self._own_holder())

    def _handle_install(self, source: NodeId, message: InstallCopy) -> None:
        if self._takes_copies_of(message.partition, message.generation):
            copy = GridCopy(message.generation, message.number, message.content, message.at_risk)
            self._tell_stored(source, message.partition, self._copies.install(message.partition, copy))

    def _handle_replicate(self, source: NodeId, message: ReplicateToBackup) -> None:
        written = message.written
        if self._takes_copies_of(written.partition, message.generation):
            copy = self._copies.take(message.generation, message.number, written, is_at_risk=message.is_at_risk)
            if copy is not None:
                self._tell_stored(source, written.partition, copy)

    def _tell_stored(self, owner: NodeId, partition: int, copy: GridCopy) -> None:
        self._send(owner, CopyStored(partition, copy.generation, copy.number))

    def _handle_stored(self, source: NodeId, message: CopyStored) -> None:
        owner = self._owners.get(message.partition)
        if owner is not None:
            owner.take_stored(source, message)

    def _handle_drop(self, _: NodeId, message: DropCopy) -> None:
        self._copies.drop(message.partition, message.generation)

    def _handle_dropped(self, source: NodeId, message: DroppedWrites) -> None:
        owner = self._owners.get(message.partition)
        if owner is not None and not self._table_log.is_frozen:
            self._dropped.compare(message, owner.copy.values)
            self._send(source, DroppedWritesKnown(message.partition))

    def _handle_request(self, source: NodeId, request: GridRequest) -> None:
        owner = self._owners.get(request.partition)
        if owner is None or self._table_log.is_frozen:
            self.ports.trace.sometimes("request-refused")
            self.ports.network.send(source, GridRefused(request.request_number))
        else:
            owner.serve(source, request)

    def _handle_read_table(self, source: NodeId, _: ReadGridTable) -> None:
        self.ports.network.send(source, GridTableRead(self.table))
