"""The state of the coordinator: the members, the owner of each partition, and the partitions that are moving.

It is the state machine behind a replicated log. Only committed commands change it, so each replica holds the same
directory, and the next leader goes on where the last leader stopped. Every command is compared with the state when it
is *applied*: a command that was proposed twice, or whose reason has changed meanwhile, has no effect.

A move whose target died is given up, and is first marked as cancelled. Then the source says whether the move was
completed or cancelled, because the source alone knows whether the data has left.

Sources: Patterns of Distributed Systems ch. 19, "Tracking cluster membership" and "Moving partitions".
"""

from __future__ import annotations

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import FIRST_GENERATION

__all__ = [
    "AssignPartitions",
    "CancelMigration",
    "ClusterDirectory",
    "DirectoryCommand",
    "MembersFailed",
    "MigratePartitions",
    "Migration",
    "MigrationCancelled",
    "MigrationCompleted",
    "PartitionEntry",
    "PartitionOnline",
    "PartitionTable",
    "PendingMigration",
    "ReassignPartition",
    "RegisterClusterNode",
]


class PartitionEntry(msgspec.Struct, frozen=True, array_like=True):
    """A row of the table: the owner of the partition, its generation, and whether the owner has confirmed that it
    serves.

    A `fresh` partition has never been online: no client was ever sent to it, so it is certainly empty.
    """

    owner: str
    generation: int
    online: bool = False
    fresh: bool = False


class PartitionTable(msgspec.Struct, frozen=True, array_like=True):
    """All partitions by number, and the live members; `version` is the log entry that last changed any of it."""

    version: int = 0
    entries: tuple[PartitionEntry, ...] = ()
    live: tuple[str, ...] = ()

    def owners(self) -> list[str]:
        """Return the owner of each partition."""
        return [entry.owner for entry in self.entries]


class Migration(msgspec.Struct, frozen=True, array_like=True):
    """A partition goes from `source` to `target`, which will serve it under `generation`: the move's fencing token."""

    partition: int
    source: str
    target: str
    generation: int


class PendingMigration(msgspec.Struct, frozen=True, array_like=True):
    """A migration that is under way, or one that the source is asked to give up."""

    migration: Migration
    cancelled: bool = False


class RegisterClusterNode(msgspec.Struct, frozen=True, tag="register-cluster-node"):
    """`member` joins, or is back."""

    member: str


class MembersFailed(msgspec.Struct, frozen=True, tag="members-failed"):
    """The leader has not heard `members` for too long."""

    members: tuple[str, ...]


class AssignPartitions(msgspec.Struct, frozen=True, tag="assign-partitions"):
    """The first assignment: an owner for each partition."""

    owners: tuple[str, ...]


class ReassignPartition(msgspec.Struct, frozen=True, tag="reassign-partition"):
    """The owner died before it served the fresh partition of this generation: `owner` is to begin it instead."""

    partition: int
    generation: int
    owner: str


class PartitionOnline(msgspec.Struct, frozen=True, tag="partition-online"):
    """The owner serves the partition under this generation."""

    partition: int
    generation: int


class MigratePartitions(msgspec.Struct, frozen=True, tag="migrate-partitions"):
    """These partitions are to move."""

    migrations: tuple[Migration, ...]


class MigrationCompleted(msgspec.Struct, frozen=True, tag="migration-completed"):
    """The target has the data, and the source has dropped it."""

    migration: Migration


class CancelMigration(msgspec.Struct, frozen=True, tag="cancel-migration"):
    """The source is to keep the partition, if it still has it."""

    migration: Migration


class MigrationCancelled(msgspec.Struct, frozen=True, tag="migration-cancelled"):
    """The source has kept the partition, and serves it under the generation after the move's."""

    migration: Migration


DirectoryCommand = (
    RegisterClusterNode
    | MembersFailed
    | AssignPartitions
    | ReassignPartition
    | PartitionOnline
    | MigratePartitions
    | MigrationCompleted
    | CancelMigration
    | MigrationCancelled
)


class _DirectoryState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a snapshot."""

    version: int
    members: dict[str, bool]
    entries: list[PartitionEntry]
    pending: dict[int, PendingMigration]


_ENCODER = msgspec.msgpack.Encoder()
_COMMANDS: msgspec.msgpack.Decoder[DirectoryCommand] = msgspec.msgpack.Decoder(DirectoryCommand)
_STATES = msgspec.msgpack.Decoder(_DirectoryState)


class ClusterDirectory:
    """Members, table and moves, as of the last command applied."""

    def __init__(self) -> None:
        self.version = 0
        self.members: dict[str, bool] = {}
        self.entries: list[PartitionEntry] = []
        self.pending: dict[int, PendingMigration] = {}

    def live(self) -> list[str]:
        """Return the members that are not taken for failed, in the order of their names."""
        return sorted(member for member, lives in self.members.items() if lives)

    def is_live(self, member: str) -> bool:
        """Return whether it is a member that is not taken for failed."""
        return self.members.get(member, False)

    def table(self) -> PartitionTable:
        """Return the table as it is handed to nodes and clients."""
        return PartitionTable(self.version, tuple(self.entries), tuple(self.live()))

    def apply(self, index: int, data: bytes) -> bool:
        """Apply the command in the log entry at `index`; return False when it had no effect."""
        if not self._take(_COMMANDS.decode(data)):
            return False
        self.version = index
        return True

    def _take(self, command: DirectoryCommand) -> bool:
        match command:
            case RegisterClusterNode(member):
                return self._set_life((member,), lives=True)
            case MembersFailed(members):
                return self._set_life(tuple(member for member in members if member in self.members), lives=False)
            case AssignPartitions(owners):
                return self._assign(owners)
            case ReassignPartition(partition, generation, owner):
                return self._reassign(partition, generation, owner)
            case PartitionOnline(partition, generation):
                return self._set_online(partition, generation)
            case MigratePartitions(migrations):
                begun = [self._begin(migration) for migration in migrations]
                return any(begun)
            case MigrationCompleted(migration):
                return self._complete(migration)
            case CancelMigration(migration):
                return self._cancel(migration)
            case MigrationCancelled(migration):
                return self._keep_at_source(migration)

    def _set_life(self, members: tuple[str, ...], *, lives: bool) -> bool:
        before = dict(self.members)
        self.members.update(dict.fromkeys(members, lives))
        return self.members != before

    def _assign(self, owners: tuple[str, ...]) -> bool:
        if self.entries or not all(owner in self.members for owner in owners):
            return False
        self.entries = [PartitionEntry(owner, FIRST_GENERATION, fresh=True) for owner in owners]
        return True

    def _reassign(self, partition: int, generation: int, owner: str) -> bool:
        entry = self.entries[partition]
        # Only a partition without data can begin at another member; any other must wait for its owner.
        if not entry.fresh or entry.generation != generation or not self.is_live(owner):
            return False
        # A higher generation: the old owner may come back and begin the partition after all, and must find itself
        # outdated.
        self.entries[partition] = PartitionEntry(owner, generation + 1, fresh=True)
        return True

    def _set_online(self, partition: int, generation: int) -> bool:
        entry = self.entries[partition]
        if entry.generation != generation or entry.online:
            return False
        self.entries[partition] = PartitionEntry(entry.owner, generation, online=True)
        return True

    def _begin(self, migration: Migration) -> bool:
        entry = self.entries[migration.partition]
        # A move that was planned on an older table names a generation that has passed, and must not begin.
        begins_here = entry.owner == migration.source and entry.generation == migration.generation - 1 and entry.online
        if migration.partition in self.pending or not begins_here or not self.is_live(migration.target):
            return False
        self.pending[migration.partition] = PendingMigration(migration)
        return True

    def _complete(self, migration: Migration) -> bool:
        if not self._is_pending(migration):
            return False
        del self.pending[migration.partition]
        self.entries[migration.partition] = PartitionEntry(migration.target, migration.generation)
        return True

    def _cancel(self, migration: Migration) -> bool:
        if not self._is_pending(migration) or self.pending[migration.partition].cancelled:
            return False
        self.pending[migration.partition] = PendingMigration(migration, cancelled=True)
        return True

    def _keep_at_source(self, migration: Migration) -> bool:
        if not self._is_pending(migration):
            return False
        del self.pending[migration.partition]
        self.entries[migration.partition] = PartitionEntry(migration.source, migration.generation + 1, online=True)
        return True

    def _is_pending(self, migration: Migration) -> bool:
        pending = self.pending.get(migration.partition)
        return pending is not None and pending.migration == migration

    def snapshot(self) -> bytes:
        """Return the whole state; equal bytes on all replicas that applied the same entries."""
        return _ENCODER.encode(_DirectoryState(self.version, self.members, self.entries, self.pending))

    def restore(self, state: bytes) -> None:
        """Replace this state with that of a snapshot. Raises msgspec.MsgspecError when `state` is not one."""
        content = _STATES.decode(state)
        self.version = content.version
        self.members = content.members
        self.entries = content.entries
        self.pending = content.pending
