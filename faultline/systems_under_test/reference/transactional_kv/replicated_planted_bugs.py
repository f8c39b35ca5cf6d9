"""The planted bugs that only replicated groups of `transactional-kv` have; `BUGS` holds all of the system.

They break the system for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import (
    CommitTransaction,
    PrepareTransaction,
    RollBackTransaction,
    TransactionId,
    Vote,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import Participant
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import Finished
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup
from faultline.systems_under_test.reference.transactional_kv.group_ports import Outbox
from faultline.systems_under_test.reference.transactional_kv.group_replica import GroupReplica
from faultline.systems_under_test.reference.transactional_kv.groups import GroupRoutes
from faultline.systems_under_test.reference.transactional_kv.planted_bugs import BUGS
from faultline.systems_under_test.reference.transactions.messages import Reply

__all__ = ["BUGS"]

_REPLICATED = BUGS.group(campaign="replicated-transactions", options={"replication_factor": "3"})
_DEPOSED = _REPLICATED.group(campaign="deposed-leaders")


@_REPLICATED.plant("vote-before-replication", "TPC-R44", part="outbox", caught_by=("TPC-R44", "bank"))
class _VoteBeforeReplication(Outbox):
    """A group's leader votes yes when the promise is in its own log, and no follower has it yet.

    Shows as: the leader dies, the next one knows of no promise, and half of a transfer is lost.
    """

    def add(self, told: msgspec.Struct, effect: Callable[[], None]) -> None:
        if isinstance(told, Vote) and told.yes:
            effect()
        else:
            super().add(told, effect)


@_DEPOSED.plant("decision-before-replication", "TPC-R44", part="outbox", caught_by=("TPC-I2", "list-append"))
class _DecisionBeforeReplication(Outbox):
    """A coordinating leader tells its decision when it is in its own log only.

    Shows as: the next leader finds no decision and rolls back transactions that others have committed, or that clients
    believe committed.
    """

    def add(self, told: msgspec.Struct, effect: Callable[[], None]) -> None:
        if isinstance(told, CommitTransaction) or (isinstance(told, Reply) and told.value is True):
            effect()
        else:
            super().add(told, effect)


@_REPLICATED.plant("serves-when-elected", "TPC-R44", part="replica", caught_by=("TPC-R44", "TPC-I2", "bank"))
class _ServesWhenElected(GroupReplica):
    """A new leader serves at once, without waiting until the entries of its log are committed and known.

    Shows as: it does not know the promises and decisions at the end of its log.
    """

    def became_leader(self) -> None:
        super().became_leader()
        self._serve_if_leading()


@_REPLICATED.plant("locks-not-taken-over", "TPC-R44", part="replica", caught_by=("TPC-R44", "bank"))
class _LocksNotTakenOver(GroupReplica):
    """A new leader takes over the promises of the old one, and not their locks.

    Shows as: promised keys are overwritten before the transaction is committed.
    """

    def _serve(self) -> None:
        for transaction in self.node.participant.open:
            self.node.participant.locks.release_all(transaction)
        super()._serve()


@_REPLICATED.plant("deposed-leader-lets-go", "TPC-R44", part="outbox", caught_by=("TPC-R44", "TPC-I2", "bank"))
class _DeposedLeaderLetsGo(Outbox):
    """A leader that learns that it is deposed sends the messages that waited for replication.

    Shows as: votes and decisions that no log holds.
    """

    def close(self) -> None:
        for _, effect in self._held:
            effect()
        super().close()


@_DEPOSED.plant("deposed-leader-answers", "TPC-R44", part="outbox", caught_by=("TPC-S18", "list-append"))
class _AnswersWithoutLease(Outbox):
    """A leader that has lost its followers goes on answering from memory, sure that it leads.

    Shows as: a deposed oracle gives out old times, and reads at them miss acknowledged writes.
    """

    def may_leave(self, index: int) -> bool:
        return index <= self._standing.replicated_index()


@_DEPOSED.also("deposed-leader-answers", part="replica")
class _NeverStepsDown(GroupReplica):
    """The deposed leader never notices that its followers are gone."""

    def _reaches_a_quorum(self) -> bool:
        return True


@_REPLICATED.plant("participants-by-address", "TPC-M17", part="routes", caught_by=("TPC-I8", "availability"))
class _ParticipantsByAddress(GroupRoutes):
    """A coordinator remembers on which node it found a participant, and sends the decision there.

    Shows as: after a fail-over the decision goes to a node that leads no longer, and the promised keys stay locked.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._addresses: dict[tuple[TransactionId, NodeId], NodeId] = {}

    def send(self, group: NodeId, to: NodeId, message: Any) -> None:
        transaction = _about(message)
        if transaction is None:
            super().send(group, to, message)
            return
        node = self._addresses.setdefault((transaction, to), self.leader_of(to))
        self._network.send(node, ToGroup(to, group, message, passed_on=True))


def _about(message: Any) -> TransactionId | None:
    if isinstance(message, PrepareTransaction):
        return message.ref.id
    return message.id if isinstance(message, CommitTransaction | RollBackTransaction) else None


@_REPLICATED.plant(
    "stamped-when-replayed",
    "HYC-M4",
    part="participant",
    pattern="hybrid-clock",
    campaign="replicated-compaction",
    caught_by=("LWM-I1", "LWM-I5"),
)
class _StampedWhenReplayed(Participant):
    """A member that stands by stores values under the time of its own clock, not under that of the record.

    Shows as: the members of a group have the same values under different times.
    """

    def _replay_end(self, record: Finished) -> None:
        super()._replay_end(record if record.time is None else Finished(record.id, self._stamps.tick()))
