"""The planted bugs of `coordinated-kv`: each a class put in front of the part that it breaks.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, PartitionContent
from faultline.systems_under_test.reference.coordinated_kv.controller import TABLE, Controller
from faultline.systems_under_test.reference.coordinated_kv.leading import PartitionLeader, Respond
from faultline.systems_under_test.reference.coordinated_kv.messages import AlterInSync
from faultline.systems_under_test.reference.coordinated_kv.node import DataNode, DataParts
from faultline.systems_under_test.reference.coordinated_kv.replicas import Replica, ReplicaStore
from faultline.systems_under_test.reference.coordinated_kv.settings import DataNodeSettings
from faultline.systems_under_test.reference.coordinated_kv.table import (
    Appointments,
    ClusterTable,
    Entry,
    value_of,
)
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("coordinated-kv", DataParts, campaign="coordinated-owners")

_LOST = ("X-I5", "X-I7", "linearizability", "list-append")
_CONTROLLERS = BUGS.group(pattern="lease", campaign="coordinated-controllers")
_SLOW_NEWS = BUGS.group(pattern="high-water-mark", campaign="coordinated-slow-news", caught_by=_LOST)


@_CONTROLLERS.plant(
    "table-stored-without-comparing", "X-M1", part="controller", caught_by=("X-I1", "X-I3", "linearizability")
)
class _StoredWithoutComparing(Controller):
    """A controller stores the partition table over any other table.

    Shows as: a deposed controller undoes the decisions of a new one: two leaders in one generation.
    """

    def storing(self, old: ClusterTable, new: ClusterTable) -> tuple[str, str, Any]:
        return "put", TABLE, value_of(new)


@_CONTROLLERS.plant("controls-without-a-lease", "X-M2", part="controller", caught_by=("X-I2", "X-I3"))
class _ControlsWithoutALease(Controller):
    """A controller looks neither at its lease nor at the token in the table that it claims again.

    Shows as: two controllers take the table from each other, under older and newer leases in turn.
    """

    def _holds_the_lease(self) -> bool:
        return True

    def _is_superseded(self, table: ClusterTable) -> bool:
        return False


@BUGS.plant(
    "leads-without-a-lease", "X-M3", part="node", pattern="lease", caught_by=("X-I1", "linearizability", "list-append")
)
class _LeadsWithoutALease(DataNode):
    """The leader of a partition answers reads although its lease as a member is over.

    Shows as: a leader that was cut off from the core shows old values after another was appointed.
    """

    def _may_answer(self) -> bool:
        return True


@BUGS.plant("acknowledged-by-the-leader-alone", "X-M5", part="leader", pattern="leader-and-followers", caught_by=_LOST)
class _AcknowledgedByTheLeaderAlone(PartitionLeader):
    """A leader acknowledges a write before its followers have it.

    Shows as: acknowledged writes are gone under the next leader.
    """

    def _required(self) -> list[str]:
        return []


class _AnyReplica(Appointments):
    def electable(self, entry: Entry) -> tuple[str, ...]:
        return tuple(name for name in entry.replicas if name in self._members)


@BUGS.plant(
    "any-replica-appointed",
    "X-M6",
    part="controller",
    pattern="leader-and-followers",
    campaign="coordinated",
    caught_by=("X-I4", "X-I5"),
)
class _AnyReplicaAppointed(Controller):
    """The controller appoints any replica that lives, also one that is not in sync.

    Shows as: the new leader lacks acknowledged writes.
    """

    appointments = _AnyReplica


@_SLOW_NEWS.plant("joins-when-the-table-says-so", "X-M7", part="leader")
class _JoinsWhenTheTableSaysSo(PartitionLeader):
    """A follower that is to be in sync counts only once the leader has seen it in the table.

    Shows as: writes acknowledged in between are missing when that follower is appointed.
    """

    def _newcomers(self, kept: tuple[str, ...]) -> list[str]:
        return []


@_SLOW_NEWS.plant("leaves-before-the-table-says-so", "X-M8", part="leader")
class _LeavesBeforeTheTableSaysSo(PartitionLeader):
    """A follower that lags behind counts no longer as soon as the leader has asked to have it out of sync.

    Shows as: the leader acknowledges alone; the follower, in sync in the core, is appointed and lacks the writes.
    """

    def _required(self) -> list[str]:
        now_us = self._ports.clock.monotonic_us()
        return [name for name in super()._required() if self._deserves(name, now_us)]

    def _wanted_in_sync(self, now_us: int) -> AlterInSync | None:
        wish = super()._wanted_in_sync(now_us)
        self._advance()
        return wish


@BUGS.plant(
    "former-leader-accepted",
    "X-M9",
    part="store",
    pattern="generation-clock",
    caught_by=("X-I5", "X-I6", "linearizability", "list-append"),
)
class _FormerLeaderAccepted(ReplicaStore):
    """A replica accepts messages of a leader of an earlier generation.

    Shows as: the copy goes back to a generation that is over.
    """

    def is_from_the_past(self, partition: int, generation: int) -> bool:
        return False

    def install(self, partition: int, generation: int, number: int, content: PartitionContent) -> None:
        replica = self.replica(partition)
        if generation != replica.generation:
            replica.number = -1
        super().install(partition, generation, number, content)


@BUGS.plant(
    "generation-in-memory",
    "X-M10",
    part="store",
    pattern="generation-clock",
    campaign="coordinated-durability",
    caught_by=("X-I6",),
)
class _GenerationInMemory(ReplicaStore):
    """A leader does not write down that its generation has begun.

    Shows as: after a restart it has forgotten that generation and would follow the leader before.
    """

    def begin(self, partition: int, generation: int) -> Replica:
        replica = self.replica(partition)
        replica.generation = generation
        return replica


@BUGS.plant(
    "answers-stay-behind",
    "X-M11",
    part="leader",
    pattern="idempotent-receiver",
    caught_by=("linearizability", "list-append"),
)
class _AnswersStayBehind(PartitionLeader):
    """A new leader does not know the answers of its predecessors.

    Shows as: a write that is sent again to the new leader is executed a second time.
    """

    def __init__(
        self, ports: Ports, settings: DataNodeSettings, store: ReplicaStore, partition: int, entry: Entry
    ) -> None:
        store.replica(partition).answers.clear()
        super().__init__(ports, settings, store, partition, entry)


@BUGS.plant("shown-before-it-is-copied", "X-M12", part="leader", pattern="high-water-mark", caught_by=_LOST)
class _ShownBeforeItIsCopied(PartitionLeader):
    """Reads are answered out of writes that the followers do not have yet.

    Shows as: a value that was read is gone under the next leader.
    """

    def _read(self, request_number: int, key: str, respond: Respond) -> None:
        respond(self.replica.number, Answer(request_number, None, self.replica.values.get(key)))


@BUGS.plant(
    "copied-before-flush",
    "X-M13",
    part="store",
    pattern="write-ahead-log",
    campaign="coordinated-durability",
    caught_by=("X-I5", "X-I7", "X-I6", "linearizability", "list-append"),
)
class _CopiedBeforeFlush(LazyFlush, ReplicaStore):
    """Replicas answer before they flush, up to 200 ms later.

    Shows as: killed nodes forget writes that were acknowledged.
    """
