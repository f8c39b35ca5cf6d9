"""The coordinator of `partitioned-kv`: the leader of a small core that the first nodes form among themselves.

It is an extension of a Raft server with another state machine: instead of keys, its log holds the cluster's directory.
Only the leader acts. Its tasks follow from the directory, whenever an entry is applied:

    member unheard of       ─▶ commit: it failed                   (checked at an interval, by the leader's own clock)
    enough members, no table ─▶ commit: the first assignment
    entry not online        ─▶ tell the owner to host it           (repeated until it says so; or another member, when
                               it died and the partition was never online, so that it holds no data)
    move pending            ─▶ tell the source to send it          (repeated; to give it up, when the target is dead)

so a new leader takes up all tasks by applying its first entry. It starts with a full period of grace for all members,
because it has heard of none of them yet.

*Limit.* Without a majority of the core no partition is assigned and none begins to move; clients with a table go on
working.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import (
    AssignPartitions,
    CancelMigration,
    ClusterDirectory,
    DirectoryCommand,
    MembersFailed,
    MigratePartitions,
    Migration,
    MigrationCancelled,
    MigrationCompleted,
    PartitionOnline,
    ReassignPartition,
    RegisterClusterNode,
)
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    NotEnoughClusterNodes,
    PartitionMove,
    assign_by_rendezvous,
    assign_round_robin,
    plan_rebalancing,
)
from faultline.systems_under_test.patterns.data_partitioning.retried_messages import Addressed, RetriedMessages
from faultline.systems_under_test.patterns.data_partitioning.token_ring import RingAssignment
from faultline.systems_under_test.patterns.data_replication.log_entry import DATA, LogEntry
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    CancelPartitionMigration,
    CoordinatorRedirect,
    HostPartition,
    HostPartitionAck,
    MigrationCancelledByHost,
    MigrationCompleteMessage,
    NodeHeartbeat,
    PartitionsAssigned,
    PartitionsMoving,
    RegisterClusterNodeRequest,
    RegisterClusterNodeResponse,
    RequestPartitionMigration,
    RingMoves,
    RingSettled,
    TableApplied,
    TablePublished,
)
from faultline.systems_under_test.reference.partitioned_kv.options import PartitionSettings
from faultline.systems_under_test.reference.raft.extension import ExtendedServer, ServerExtension
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["Coordinator", "CoordinatorParts"]

_ENCODER = msgspec.msgpack.Encoder()
_ASSIGNMENTS = {"round-robin": assign_round_robin, "rendezvous": assign_by_rendezvous}


@dataclass(frozen=True, slots=True)
class CoordinatorParts:
    """The parts of a coordinator; a planted bug is put in front of one of them."""

    directory: Callable[[], ClusterDirectory] = ClusterDirectory
    plan: Callable[[list[str], list[str]], list[PartitionMove]] = plan_rebalancing
    ring: type[RingAssignment] = RingAssignment


class _Registration:
    """A registration that waits until it is committed."""

    __slots__ = ("_member", "_send")

    def __init__(self, send: Callable[[str, Any], None], member: str) -> None:
        self._send = send
        self._member = member

    def on_response(self, _: object) -> None:
        """Tell the new member that it is one."""
        self._send(self._member, RegisterClusterNodeResponse())

    def on_error(self, _: Exception) -> None:
        """Do nothing: the member asks again by itself."""


class Coordinator(ServerExtension):
    """The coordinator at one server of the core, whose state machine is `directory`; it acts while the server leads."""

    def __init__(
        self,
        server: ExtendedServer,
        directory: ClusterDirectory,
        settings: PartitionSettings,
        parts: CoordinatorParts,
        send: Callable[[str, Any], None],
    ) -> None:
        self.ports = server.ports
        self.directory = directory
        self._server = server
        self._settings = settings
        self._parts = parts
        has_ring = settings.assignment == "token-ring"
        self._ring = parts.ring(settings.partitions, settings.tokens_per_node) if has_ring else None
        self._send = send
        self._heard_us: dict[str, int] = {}
        self._asked_us: dict[str, int] = {}
        self._led_since_us = 0
        self._reassigned_us = 0
        self._published = 0
        self.retried = RetriedMessages(server.ports, send)

    def handlers(self) -> Handlers:
        """Return the handlers of what members tell the coordinator."""
        return {
            RegisterClusterNodeRequest: self._handle_register,
            NodeHeartbeat: self._handle_heartbeat,
            HostPartitionAck: self._handle_hosted,
            MigrationCompleteMessage: self._handle_complete,
            MigrationCancelledByHost: self._handle_cancelled,
        }

    def start(self) -> None:
        """Look after the members at intervals."""
        self.ports.timers.every(self._settings.node_heartbeat_us, lambda: self._server.enter(self._look_around))

    def _handle_register(self, source: NodeId, _: RegisterClusterNodeRequest) -> None:
        if not self._server.leads:
            self._send(source, CoordinatorRedirect(self._server.leader_id))
            return
        self._heard_us[source] = self.ports.clock.monotonic_us()
        if self.directory.is_live(source):
            self._send(source, RegisterClusterNodeResponse())
        else:
            self._server.propose(_Registration(self._send, source), _ENCODER.encode(RegisterClusterNode(source)))

    def _handle_heartbeat(self, source: NodeId, heartbeat: NodeHeartbeat) -> None:
        if not self._server.leads:
            self._send(source, CoordinatorRedirect(self._server.leader_id))
            return
        self._heard_us[source] = self.ports.clock.monotonic_us()
        if not self.directory.is_live(source):
            self.ports.trace.sometimes("failed-member-is-back")
            self._commit(RegisterClusterNode(source))
        newer = self.directory.version > heartbeat.table_version
        self._send(source, TablePublished(self.directory.table() if newer else None))

    def _find_failed(self, now_us: int) -> tuple[str, ...]:
        # Silence before this leader began does not count: members spoke to the leader before it.
        limit_us = self._settings.membership_check_us
        since_us = self._led_since_us
        return tuple(
            member
            for member in self.directory.live()
            if now_us - max(since_us, self._heard_us.get(member, 0)) > limit_us
        )

    def _look_around(self) -> None:
        if not self._server.leads:
            return
        now_us = self.ports.clock.monotonic_us()
        failed = self._find_failed(now_us)
        if failed:
            self.ports.trace.sometimes("member-failed")
            self._commit(MembersFailed(failed))
        every_us = self._settings.reassign_every_us
        if every_us and now_us - self._reassigned_us >= every_us:
            self._reassigned_us = now_us
            self.reassign_partitions()
        self._act()

    def assign_partitions(self) -> None:
        """Propose the first assignment. Raises `NotEnoughClusterNodes`."""
        settings, live = self._settings, self.directory.live()
        if self._ring is not None:
            owners = self._ring.assign(live, settings.minimum_cluster_size)
        else:
            assign = _ASSIGNMENTS[settings.assignment]
            owners = assign(settings.partitions, live, settings.minimum_cluster_size)
        if settings.assignment == "round-robin":
            self.ports.trace.emit(PartitionsAssigned(tuple(owners.count(member) for member in sorted(set(owners)))))
        self._commit(AssignPartitions(tuple(owners)))

    def reassign_partitions(self) -> bool:
        """Propose to even the loads out, or with a ring to let the next member join it.

        Return False while partitions are being assigned or moved, while no member is live, or if no move is needed.
        """
        directory = self.directory
        if not directory.entries or directory.pending or not all(entry.online for entry in directory.entries):
            return False
        owners, live = directory.table().owners(), directory.live()
        if not live:
            return False
        moves = self._plan(owners, live)
        migrations = [self._migration(move) for move in moves or self._handed_on(owners, live)]
        if migrations:
            self._commit(MigratePartitions(tuple(migrations)))
        return bool(migrations)

    def _migration(self, move: PartitionMove) -> Migration:
        generation = self.directory.entries[move.partition].generation + 1
        return Migration(move.partition, move.source, move.target, generation)

    def _plan(self, owners: list[str], live: list[str]) -> list[PartitionMove]:
        if self._ring is not None:
            moves = self._ring.plan(owners, live)
            if not moves and set(owners) <= set(live):
                self.ports.trace.emit(RingSettled(tuple(owners), self._settings.tokens_per_node))
            return moves
        moves = self._parts.plan(owners, live)
        self._report_loads(owners, live, moves)
        return moves

    def _report_loads(self, owners: list[str], live: list[str], moves: list[PartitionMove]) -> None:
        after = list(owners)
        for move in moves:
            after[move.partition] = move.target
        self.ports.trace.emit(PartitionsAssigned(tuple(after.count(member) for member in live)))

    def _handed_on(self, owners: list[str], live: list[str]) -> list[PartitionMove]:
        """Return moves of partitions chosen by chance, each to the member after its owner."""
        moves = {}
        for number in range(self._settings.hand_on if len(live) > 1 else 0):
            partition = self.ports.random.uniform_us(f"hand-on-{number}", 0, len(owners))
            if owners[partition] in live:
                target = live[(live.index(owners[partition]) + 1) % len(live)]
                moves[partition] = PartitionMove(partition, owners[partition], target)
        return list(moves.values())

    def start_leading(self, no_op_index: int) -> None:
        """Begin to lead, with a full period of grace for each member."""
        self._led_since_us = self.ports.clock.monotonic_us()
        self._asked_us.clear()

    def stop_leading(self) -> None:
        """Stop all repeated messages."""
        self.retried.keep({})

    def applied(self, entry: LogEntry) -> None:
        """Act on the tasks that follow from the directory as it is now."""
        self.ports.trace.emit(TableApplied(self.directory.table(), self._settings.partitions))
        self.ports.trace.emit(PartitionsMoving(len(self.directory.pending)))
        if self._ring is not None:
            self._report_ring_moves()
        if self._server.leads:
            self._server.enter(self._act)

    def _report_ring_moves(self) -> None:
        moves = tuple((number, pending.migration.target) for number, pending in self.directory.pending.items())
        owners = tuple(self.directory.table().owners())
        self.ports.trace.emit(RingMoves(owners, moves, self._settings.tokens_per_node))

    def _act(self) -> None:
        # Before everything committed is applied, the directory is that of the past.
        if not self._server.leads or self._server.log.last_applied < self._server.wal.last_index:
            return
        self._publish()
        if not self.directory.entries:
            try:
                self.assign_partitions()
            except NotEnoughClusterNodes:
                self.ports.trace.sometimes("too-few-members-to-assign")
            return
        self._reassign_what_never_began()
        self._give_up_moves_to_the_dead()
        self.retried.keep(self._wanted())

    def _publish(self) -> None:
        if self._published != self.directory.version:
            self._published = self.directory.version
            table = self.directory.table()
            for member in self.directory.live():
                self._send(member, TablePublished(table))

    def _reassign_what_never_began(self) -> None:
        live = self.directory.live()
        for partition, entry in enumerate(self.directory.entries):
            if entry.fresh and live and not self.directory.is_live(entry.owner):
                # Another member may begin it empty, because a fresh entry was never served: it holds no write.
                self.ports.trace.sometimes("partition-reassigned")
                command = ReassignPartition(partition, entry.generation, live[partition % len(live)])
                self._commit_once(f"reassign-{partition}-{entry.generation}", command)

    def _give_up_moves_to_the_dead(self) -> None:
        for pending in self.directory.pending.values():
            # The cancelling is committed first, and then the source is asked to keep the partition; it may have left.
            if not pending.cancelled and not self.directory.is_live(pending.migration.target):
                self.ports.trace.sometimes("migration-cancelled")
                self._commit(CancelMigration(pending.migration))

    def _wanted(self) -> dict[str, Addressed]:
        """Return the messages to repeat, by the name of their task; none to members that are taken for dead."""
        wanted: dict[str, Addressed] = {}
        for partition, entry in enumerate(self.directory.entries):
            if not entry.online and self.directory.is_live(entry.owner):
                wanted[f"host-{partition}-{entry.generation}"] = (
                    entry.owner,
                    HostPartition(partition, entry.generation, entry.fresh),
                )
        for partition, pending in self._moves_to_drive().items():
            migration, cancelled = pending.migration, pending.cancelled
            if self.directory.is_live(migration.source):
                kind = CancelPartitionMigration if cancelled else RequestPartitionMigration
                name = f"{'cancel' if cancelled else 'move'}-{partition}-{migration.generation}"
                wanted[name] = (migration.source, kind(migration))
        return wanted

    def _moves_to_drive(self) -> Any:
        return self.directory.pending

    def _handle_hosted(self, _: NodeId, ack: HostPartitionAck) -> None:
        if self._server.leads and self._expects_host(ack):
            self._commit_once(
                f"online-{ack.partition}-{ack.generation}", PartitionOnline(ack.partition, ack.generation)
            )

    def _expects_host(self, ack: HostPartitionAck) -> bool:
        if ack.partition >= len(self.directory.entries):
            return False
        entry = self.directory.entries[ack.partition]
        return entry.generation == ack.generation and not entry.online

    def _handle_complete(self, _: NodeId, message: MigrationCompleteMessage) -> None:
        if self._server.leads and self._expects(message.migration):
            self._commit_once(_name("complete", message.migration), MigrationCompleted(message.migration))

    def _handle_cancelled(self, _: NodeId, message: MigrationCancelledByHost) -> None:
        if self._server.leads and self._expects(message.migration):
            self._commit_once(_name("cancelled", message.migration), MigrationCancelled(message.migration))

    def _expects(self, migration: Migration) -> bool:
        pending = self.directory.pending.get(migration.partition)
        return pending is not None and pending.migration == migration

    def _commit_once(self, name: str, command: DirectoryCommand) -> None:
        """Propose `command`, unless this leader did just now: answers come as often as questions."""
        now_us, pause_us = self.ports.clock.monotonic_us(), self._server.settings.client_timeout_us
        if now_us - self._asked_us.get(name, -pause_us) >= pause_us:
            self._asked_us[name] = now_us
            self._commit(command)

    def _commit(self, command: DirectoryCommand) -> None:
        self._server.log.append_and_replicate(DATA, _ENCODER.encode(command))


def _name(what: str, migration: Migration) -> str:
    return f"{what}-{migration.partition}-{migration.generation}"
