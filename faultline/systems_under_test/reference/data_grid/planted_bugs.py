"""The planted bugs of `data-grid`: each a class that changes one of the `GridParts`, or the node.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer
from faultline.systems_under_test.patterns.data_replication.quorum import majority
from faultline.systems_under_test.reference.data_grid.copies import GridCopy
from faultline.systems_under_test.reference.data_grid.dropped import DroppedData
from faultline.systems_under_test.reference.data_grid.lease import MajorityLease
from faultline.systems_under_test.reference.data_grid.messages import DroppedWrite, InstallCopy, ReplicateToBackup
from faultline.systems_under_test.reference.data_grid.node import DataGridNode, GridParts
from faultline.systems_under_test.reference.data_grid.owner import PartitionOwner
from faultline.systems_under_test.reference.data_grid.rounds import Rounds
from faultline.systems_under_test.reference.data_grid.table import GridTable, MemberReport
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "data-grid", GridParts, pattern="emergent-leader", campaign="data-grid", caught_by=("linearizability",)
)
_RETRIES = BUGS.group(campaign="data-grid-retries", caught_by=("linearizability", "list-append"))


@BUGS.plant("acknowledged-before-backups", "EL-M19", part="owner", caught_by=("linearizability", "EL-I10"))
class _BeforeBackups(PartitionOwner):
    """An owner answers as soon as it has a write itself.

    Shows as: the backup that takes over lacks writes that were acknowledged or read.
    """

    def _mark(self) -> int:
        return self.copy.number


@_RETRIES.plant("unfinished-writes-read", "EL-M20", part="owner")
class _UnfinishedWritesRead(PartitionOwner):
    """A read shows writes that some backup lacks still.

    Shows as: a value is read, and is gone when a backup has taken over.
    """

    def _readable(self, key: str) -> Any:
        return self.copy.values.get(key)


@_RETRIES.plant("answers-not-copied", "EL-M21", part="node")
class _AnswersNotCopied(DataGridNode):
    """Backups keep the values of an owner, and not the answers that it gave.

    Shows as: a retried request is executed a second time by the backup that took over.
    """

    def _handle_install(self, source: NodeId, message: InstallCopy) -> None:
        super()._handle_install(source, message)
        self._forget_answers(message.partition)

    def _handle_replicate(self, source: NodeId, message: ReplicateToBackup) -> None:
        super()._handle_replicate(source, message)
        self._forget_answers(message.written.partition)

    def _forget_answers(self, partition: int) -> None:
        copy: GridCopy | None = self._copies.copy(partition)
        if copy is not None:
            copy.answers.clear()


@_RETRIES.plant("retry-executed-again", "EL-M22", part="owner")
class _RetryExecutedAgain(PartitionOwner):
    """An owner executes a request that it has executed before.

    Shows as: a retried write takes effect twice.
    """

    def _known_answer(self, client: NodeId) -> Answer | None:
        return None


@BUGS.plant("owner-before-its-data", "EL-M23", part="rounds")
class _OwnerBeforeItsData(Rounds):
    """The coordinator hands a partition to a member to which it has not been copied yet.

    Shows as: the partition is empty at its new owner, and acknowledged writes are gone.
    """

    def _next(self, previous: GridTable, version: int, reports: list[MemberReport]) -> GridTable:
        table = super()._next(previous, version, reports)
        # New holders come last.
        entries = tuple(
            msgspec.structs.replace(entry, holders=(entry.holders[-1], *entry.holders[:-1]))
            if entry.generation == version
            else entry
            for entry in table.entries
        )
        return msgspec.structs.replace(table, entries=entries)


@BUGS.plant("away-begun-anew", "EL-M24", part="rounds", campaign="data-grid-one-backup", options={"backups": "1"})
class _AwayBegunAnew(Rounds):
    """A partition whose copies do not answer is begun anew at once.

    Shows as: the majority forgets what was acknowledged, while the minority has it.
    """

    def _waits_for_copies(self) -> bool:
        return False


@BUGS.plant(
    "no-lease",
    "EL-M25",
    part="lease",
    campaign="data-grid-short-leases",
    caught_by=("linearizability", "EL-I9", "EL-I12"),
)
class _NoLease(MajorityLease):
    """An owner serves without asking whether others still follow its table.

    Shows as: an owner that was cut off answers reads while a backup has taken over.
    """

    def is_held(self) -> bool:
        return self._version > 0


@BUGS.plant(
    "old-lease-not-awaited",
    "EL-M26",
    part="owner",
    campaign="data-grid-long-leases",
    caught_by=("linearizability", "EL-I9"),
)
class _OldLeaseNotAwaited(PartitionOwner):
    """A backup takes over at once, while the lease of the owner that was cut off is still in force.

    Shows as: two owners answer at a time, one of them with old values.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_waiting = False


@BUGS.plant("minority-serves", "EL-M27", part="lease", caught_by=("linearizability", "EL-I9"))
class _MinorityServes(MajorityLease):
    """A group of any size hands out partitions and serves them.

    Shows as: both halves of a split cluster accept writes for the same keys.
    """

    @property
    def needed(self) -> int:
        return majority(len(self._members))


@BUGS.also("minority-serves", part="rounds")
class _MinorityHandsOut(Rounds):
    def is_large_enough(self, membership: Membership) -> bool:
        return True


@BUGS.plant(
    "dropped-in-silence",
    "EL-M28",
    part="dropped",
    campaign="data-grid-split-brain",
    caught_by=("EL-I13",),
    options={"minimum_size": "none"},
)
class _DroppedInSilence(DroppedData):
    """A group that dissolves drops its data and says nothing.

    Shows as: acknowledged writes are gone, and no report names them.
    """

    def _written(self, copy: GridCopy) -> list[DroppedWrite]:
        return []
