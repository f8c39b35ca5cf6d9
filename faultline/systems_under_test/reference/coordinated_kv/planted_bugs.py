"""The planted bugs of `coordinated-kv`: each a record, and a change to one of its parts.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.partition_host import Answer, PartitionContent
from faultline.systems_under_test.reference.coordinated_kv.controller import TABLE, Controller
from faultline.systems_under_test.reference.coordinated_kv.leading import PartitionLeader, Respond
from faultline.systems_under_test.reference.coordinated_kv.messages import AlterInSync
from faultline.systems_under_test.reference.coordinated_kv.node import DataNode, DataParts
from faultline.systems_under_test.reference.coordinated_kv.options import CoordinatedSettings
from faultline.systems_under_test.reference.coordinated_kv.replicas import Replica, ReplicaStore
from faultline.systems_under_test.reference.coordinated_kv.table import (
    Appointments,
    ClusterTable,
    Entry,
    value_of,
)
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, class_with_bugs, layered, with_bugs

__all__ = ["PLANTED_BUGS", "mutated_parts", "node_class"]

_RECORDS = (
    PlantedBug(
        name="table-stored-without-comparing",
        pattern="lease",
        id="X-M1",
        summary="a controller stores the partition table whatever table is there",
        shows_as="what a new controller decided is undone by one that was deposed: two leaders in one generation",
        campaign="coordinated-controllers",
        caught_by=("X-I1", "X-I3", "linearizability"),
    ),
    PlantedBug(
        name="controls-without-a-lease",
        pattern="lease",
        id="X-M2",
        summary="a controller looks neither at its lease nor at the token in the table that it claims again",
        shows_as="two controllers take the table from each other, under older and newer leases in turn",
        campaign="coordinated-controllers",
        caught_by=("X-I2", "X-I3"),
    ),
    PlantedBug(
        name="leads-without-a-lease",
        pattern="lease",
        id="X-M3",
        summary="the leader of a partition answers reads although its lease as a member is over",
        shows_as="a leader that was cut off from the core shows old values after another was appointed",
        campaign="coordinated-owners",
        caught_by=("X-I1", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="acknowledged-by-the-leader-alone",
        pattern="leader-and-followers",
        id="X-M5",
        summary="a leader acknowledges a write before its followers have it",
        shows_as="acknowledged writes are gone when another leads",
        campaign="coordinated-owners",
        caught_by=("X-I5", "X-I7", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="any-replica-appointed",
        pattern="leader-and-followers",
        id="X-M6",
        summary="the controller appoints any replica that lives, also one that is not in sync",
        shows_as="the new leader lacks acknowledged writes",
        campaign="coordinated",
        caught_by=("X-I4", "X-I5"),
    ),
    PlantedBug(
        name="joins-when-the-table-says-so",
        pattern="high-water-mark",
        id="X-M7",
        summary="a follower that is to be in sync counts only once the leader has seen it in the table",
        shows_as="writes acknowledged in between are missing when that follower is appointed",
        campaign="coordinated-slow-news",
        caught_by=("X-I5", "X-I7", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="leaves-before-the-table-says-so",
        pattern="high-water-mark",
        id="X-M8",
        summary="a follower that lags behind counts no longer as soon as the leader has asked to have it out of sync",
        shows_as="the leader acknowledges alone; the follower, in sync in the core, is appointed and lacks the writes",
        campaign="coordinated-slow-news",
        caught_by=("X-I5", "X-I7", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="former-leader-accepted",
        pattern="generation-clock",
        id="X-M9",
        summary="a replica takes what a leader of an earlier generation sends",
        shows_as="the copy goes back to a generation that is over",
        campaign="coordinated-owners",
        caught_by=("X-I5", "X-I6", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="generation-in-memory",
        pattern="generation-clock",
        id="X-M10",
        summary="a leader does not write down that its generation has begun",
        shows_as="restarted, it has forgotten that generation and would listen to the leader before",
        campaign="coordinated-durability",
        caught_by=("X-I6",),
    ),
    PlantedBug(
        name="answers-stay-behind",
        pattern="idempotent-receiver",
        id="X-M11",
        summary="a new leader does not know what its predecessors answered",
        shows_as="a write that is sent again to the new leader is executed a second time",
        campaign="coordinated-owners",
        caught_by=("linearizability", "list-append"),
    ),
    PlantedBug(
        name="shown-before-it-is-copied",
        pattern="high-water-mark",
        id="X-M12",
        summary="reads are answered out of writes that the followers do not have yet",
        shows_as="a value that was read is gone when another leads",
        campaign="coordinated-owners",
        caught_by=("X-I5", "X-I7", "linearizability", "list-append"),
    ),
    PlantedBug(
        name="copied-before-flush",
        pattern="write-ahead-log",
        id="X-M13",
        summary="replicas answer before what they took is flushed, up to 200 ms later",
        shows_as="killed nodes forget writes that were acknowledged",
        campaign="coordinated-durability",
        caught_by=("X-I5", "X-I7", "X-I6", "linearizability", "list-append"),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _StoredWithoutComparing(Controller):
    def storing(self, old: ClusterTable, new: ClusterTable) -> tuple[str, str, Any]:
        return "put", TABLE, value_of(new)


class _ControlsWithoutALease(Controller):
    def _holds_the_lease(self) -> bool:
        return True

    def _is_superseded(self, table: ClusterTable) -> bool:
        return False


class _LeadsWithoutALease(DataNode):
    def _may_answer(self) -> bool:
        return True


class _AcknowledgedByTheLeaderAlone(PartitionLeader):
    def _required(self) -> list[str]:
        return []


class _AnyReplica(Appointments):
    def electable(self, entry: Entry) -> tuple[str, ...]:
        return tuple(name for name in entry.replicas if name in self._members)


class _AnyReplicaAppointed(Controller):
    appointments = _AnyReplica


class _JoinsWhenTheTableSaysSo(PartitionLeader):
    def _newcomers(self, kept: tuple[str, ...]) -> list[str]:
        return []


class _LeavesBeforeTheTableSaysSo(PartitionLeader):
    def _required(self) -> list[str]:
        now_us = self._ports.clock.monotonic_us()
        return [name for name in super()._required() if self._deserves(name, now_us)]

    def _wanted_in_sync(self, now_us: int) -> AlterInSync | None:
        wish = super()._wanted_in_sync(now_us)
        self._advance()
        return wish


class _FormerLeaderAccepted(ReplicaStore):
    def is_from_the_past(self, partition: int, generation: int) -> bool:
        return False

    def install(self, partition: int, generation: int, number: int, content: PartitionContent) -> None:
        replica = self.replica(partition)
        if generation != replica.generation:
            replica.number = -1
        super().install(partition, generation, number, content)


class _GenerationInMemory(ReplicaStore):
    def begin(self, partition: int, generation: int) -> Replica:
        replica = self.replica(partition)
        replica.generation = generation
        return replica


class _AnswersStayBehind(PartitionLeader):
    def __init__(
        self, ports: Ports, settings: CoordinatedSettings, store: ReplicaStore, partition: int, entry: Entry
    ) -> None:
        store.replica(partition).answers.clear()
        super().__init__(ports, settings, store, partition, entry)


class _ShownBeforeItIsCopied(PartitionLeader):
    def _read(self, request_number: int, key: str, respond: Respond) -> None:
        respond(self.replica.number, Answer(request_number, None, self.replica.values.get(key)))


class _CopiedBeforeFlush(LazyFlush, ReplicaStore):
    pass


_CHANGES: dict[str, Callable[[DataParts], DataParts]] = {
    "table-stored-without-comparing": layered("controller", _StoredWithoutComparing),
    "controls-without-a-lease": layered("controller", _ControlsWithoutALease),
    "acknowledged-by-the-leader-alone": layered("leader", _AcknowledgedByTheLeaderAlone),
    "any-replica-appointed": layered("controller", _AnyReplicaAppointed),
    "joins-when-the-table-says-so": layered("leader", _JoinsWhenTheTableSaysSo),
    "leaves-before-the-table-says-so": layered("leader", _LeavesBeforeTheTableSaysSo),
    "former-leader-accepted": layered("store", _FormerLeaderAccepted),
    "generation-in-memory": layered("store", _GenerationInMemory),
    "answers-stay-behind": layered("leader", _AnswersStayBehind),
    "shown-before-it-is-copied": layered("leader", _ShownBeforeItIsCopied),
    "copied-before-flush": layered("store", _CopiedBeforeFlush),
}

_NODES: dict[str, type[DataNode]] = {
    "leads-without-a-lease": _LeadsWithoutALease,
}


def node_class(names: Iterable[str]) -> type[DataNode]:
    """The data node with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, DataNode, _NODES)


def mutated_parts(names: Iterable[str]) -> DataParts:
    """The parts of a data node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("coordinated-kv", names, DataParts(), _CHANGES, elsewhere=_NODES)
