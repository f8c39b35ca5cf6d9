"""The planted bugs that only replication makes possible: each a record, and a subclass with the one step changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from faultline.harness.system import PlantedBug
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
from faultline.systems_under_test.reference.shared.planted_bugs import in_front, layered, planted, together
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup
from faultline.systems_under_test.reference.transactional_kv.group_ports import Outbox
from faultline.systems_under_test.reference.transactional_kv.group_replica import GroupReplica
from faultline.systems_under_test.reference.transactional_kv.groups import GroupRoutes
from faultline.systems_under_test.reference.transactional_kv.messages import Reply
from faultline.systems_under_test.reference.transactional_kv.parts import Parts

__all__ = ["GROUP_CHANGES", "GROUP_PLANTED_BUGS"]

_planted = partial(planted, pattern="two-phase-commit", campaign="replicated-transactions", replication_factor="3")

_RECORDS = (
    _planted(
        "vote-before-replication",
        "TPC-R44",
        "a group's leader votes yes when the promise is in its own log, and no follower has it yet",
        "the leader dies, the next one knows of no promise, and half of a transfer is lost",
        "TPC-R44",
        "bank",
    ),
    _planted(
        "decision-before-replication",
        "TPC-R44",
        "a coordinating leader tells its decision when it is in its own log only",
        "the next leader finds no decision and rolls back what others have committed, or clients believe committed",
        "TPC-I2",
        "list-append",
        campaign="deposed-leaders",
    ),
    _planted(
        "serves-when-elected",
        "TPC-R44",
        "a new leader serves at once, without waiting until all that its log holds is committed and known",
        "it has never heard of promises and decisions at the end of its log",
        "TPC-R44",
        "TPC-I2",
        "bank",
    ),
    _planted(
        "locks-not-taken-over",
        "TPC-R44",
        "a new leader takes over the promises of the old one, and not their locks",
        "what was promised is overwritten before it is committed",
        "TPC-R44",
        "bank",
    ),
    _planted(
        "deposed-leader-lets-go",
        "TPC-R44",
        "a leader that learns that it is deposed sends what it had held back until it was replicated",
        "votes and decisions that no log holds",
        "TPC-R44",
        "TPC-I2",
        "bank",
    ),
    _planted(
        "deposed-leader-answers",
        "TPC-R44",
        "a leader that has lost its followers goes on answering from memory, sure that it leads",
        "a deposed oracle gives out times that lie behind, and reads at them miss what was acknowledged",
        "TPC-S18",
        "list-append",
        campaign="deposed-leaders",
    ),
    _planted(
        "participants-by-address",
        "TPC-M17",
        "a coordinator remembers on which node it found a participant, and sends the decision there",
        "after a fail-over the decision goes to a node that leads no longer, and what was promised stays locked",
        "TPC-I8",
        "availability",
    ),
    _planted(
        "stamped-when-replayed",
        "HYC-M4",
        "whoever stands by stores values under the time of its own clock, not under that of the record",
        "the members of a group have the same values under different times",
        "LWM-I1",
        "LWM-I5",
        campaign="replicated-compaction",
        pattern="hybrid-clock",
    ),
)

GROUP_PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug of replicated groups by name."""


# -- what leaves, and when ---------------------------------------------------------------------------------------------


class _VoteBeforeReplication(Outbox):
    def add(self, told: msgspec.Struct, effect: Callable[[], None]) -> None:
        if isinstance(told, Vote) and told.yes:
            effect()
        else:
            super().add(told, effect)


class _DecisionBeforeReplication(Outbox):
    def add(self, told: msgspec.Struct, effect: Callable[[], None]) -> None:
        if isinstance(told, CommitTransaction) or (isinstance(told, Reply) and told.value is True):
            effect()
        else:
            super().add(told, effect)


class _DeposedLeaderLetsGo(Outbox):
    def close(self) -> None:
        for _, effect in self._held:
            effect()
        super().close()


class _AnswersWithoutLease(Outbox):
    def may_leave(self, index: int) -> bool:
        return index <= self._standing.replicated_index()


class _NeverStepsDown(GroupReplica):
    def _reaches_a_quorum(self) -> bool:
        return True


# -- taking over -------------------------------------------------------------------------------------------------------


class _ServesWhenElected(GroupReplica):
    def became_leader(self) -> None:
        super().became_leader()
        self._serve_if_leading()


class _LocksNotTakenOver(GroupReplica):
    def _serve(self) -> None:
        for transaction in self.node.participant.open:
            self.node.participant.locks.release_all(transaction)
        super()._serve()


class _StampedWhenReplayed(Participant):
    def _replay_end(self, record: Finished) -> None:
        super()._replay_end(record if record.time is None else Finished(record.id, self._stamps.tick()))


# -- the way to participants -------------------------------------------------------------------------------------------


class _ParticipantsByAddress(GroupRoutes):
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


def _replica(change: type[GroupReplica]) -> Callable[[Parts], Parts]:
    return lambda parts: replace(parts, replica=in_front(change, parts.replica or GroupReplica))


GROUP_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "vote-before-replication": layered("outbox", _VoteBeforeReplication),
    "decision-before-replication": layered("outbox", _DecisionBeforeReplication),
    "deposed-leader-lets-go": layered("outbox", _DeposedLeaderLetsGo),
    "deposed-leader-answers": together(layered("outbox", _AnswersWithoutLease), _replica(_NeverStepsDown)),
    "serves-when-elected": _replica(_ServesWhenElected),
    "locks-not-taken-over": _replica(_LocksNotTakenOver),
    "stamped-when-replayed": layered("participant", _StampedWhenReplayed),
    "participants-by-address": layered("routes", _ParticipantsByAddress),
}
"""How each of them is put into the parts of a node."""
