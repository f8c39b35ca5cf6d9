"""The invariants of a replicated `transactional-kv`: those of a replicated log for each group, those of transactions
for groups in place of nodes, and those that only fail-over can break.

A leader's report of a transaction is held back until its group's log has come that far, so it is a fact of the group.
Its reports from memory, of locks and waits, concern its own leadership: the next leader knows nothing of them. A leader
that does not know yet that it is deposed may still hand out locks; no transaction can commit with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from faultline.harness.invariant import Breach, Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import LockMode
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId
from faultline.systems_under_test.patterns.data_partitioning.transaction_records import Finished, Promised
from faultline.systems_under_test.reference.raft.invariants.agreement import (
    AppliedEntriesAgree,
    GenerationsAlongTheLogAscend,
    GenerationsAscend,
    LeaderIsComplete,
    MarkMovesForward,
    MarkRestsOnTheOwnGeneration,
    OneLeaderPerGeneration,
    OneVotePerGeneration,
    TruncationSparesTheMark,
)
from faultline.systems_under_test.reference.raft.invariants.leadership import (
    ServersLeadInNewGenerations,
)
from faultline.systems_under_test.reference.raft.invariants.replicated_log import (
    AppliedInOrderUpToTheMark,
    CommittedEntriesAreOnAQuorumOfDisks,
    FollowersConverge,
    LeadersOnlyAppend,
)
from faultline.systems_under_test.reference.raft.invariants.storage import STORAGE_INVARIANTS
from faultline.systems_under_test.reference.transactional_kv.group_messages import (
    LeadershipEvent,
    ReplicaEvent,
    TookOver,
    VoteTaken,
)
from faultline.systems_under_test.reference.transactional_kv.records import TimeGiven
from faultline.systems_under_test.reference.transactions.events_in_events import (
    Interested,
    decoded,
    finish,
    interested,
)
from faultline.systems_under_test.reference.transactions.invariants import (
    DecisionsAgree,
    LocksAreFreedInTheEnd,
    LocksExclude,
    NothingBelowARead,
    OneTimePerTransaction,
    TheOlderWounds,
    WaitsHaveAReason,
)

__all__ = [
    "GroupDecisionsAgree",
    "GroupLogs",
    "GroupTransactions",
    "PromisesOutliveTheirLeader",
    "TimesAscendOverLeaders",
    "group_invariants",
]
_OF_A_LOG: tuple[Callable[[], Any], ...] = (
    OneLeaderPerGeneration,
    OneVotePerGeneration,
    LeaderIsComplete,
    GenerationsAscend,
    GenerationsAlongTheLogAscend,
    AppliedEntriesAgree,
    MarkRestsOnTheOwnGeneration,
    MarkMovesForward,
    TruncationSparesTheMark,
    ServersLeadInNewGenerations,
    LeadersOnlyAppend,
    AppliedInOrderUpToTheMark,
    CommittedEntriesAreOnAQuorumOfDisks,
    FollowersConverge,
    *STORAGE_INVARIANTS,
)


class GroupLogs:
    """The invariants of a replicated log, those of each group by themselves; breaches carry their ids."""

    id = "LOG-I2"
    statement = "Each group's log and leaders keep the invariants of a replicated log, from LDR-I1 to LWM-I5."
    events = (ReplicaEvent,)
    needs_order = True

    def __init__(self) -> None:
        self._groups: dict[str, Interested] = {}

    def observe(self, time_us: int, node: str, event: ReplicaEvent, report: Report) -> None:
        """Show the event to those of the group's own instances that observe its kind."""
        group = self._groups.get(event.group)
        if group is None:
            group = self._groups[event.group] = interested(invariant() for invariant in _OF_A_LOG)
        for kind, invariant in group.get(event.kind, ()):
            invariant.observe(time_us, node, decoded(event.event, kind), _naming(event.group, report))

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Finish the invariants that look at the end of a run."""
        for name, group in self._groups.items():
            finish(group, healed_us, end_us, _naming(name, report))


def _naming(group: str, report: Report) -> Report:
    def named(breach: Breach) -> None:
        report(msgspec.structs.replace(breach, sentence=f"In {group}: {breach.sentence}"))

    return named


class GroupTransactions:
    """The invariants of transactions with groups for nodes; breaches carry their ids.

    Locks and waits belong to one leadership. Locks held to the end are those of the latest leader: an earlier one does
    not matter. Times that were read and stored belong to the group, under any leader.
    """

    id = "TPC-I6"
    statement = "Each group keeps the invariants of a participant, from TPC-I6 to TPC-I9 and HYC-I5, under any leader."
    events = (LeadershipEvent,)
    needs_order = True

    def __init__(self) -> None:
        self._of_a_leader = interested([LocksExclude(), TheOlderWounds(), WaitsHaveAReason()])
        self._of_the_latest = interested([LocksAreFreedInTheEnd()])
        self._of_a_group = interested([NothingBelowARead(), OneTimePerTransaction()])
        self._latest: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: LeadershipEvent, report: Report) -> None:
        """Show the event as a report of the group, or of its leader at the time."""
        group, generation = event.group, event.generation
        latest = self._latest[group] = max(generation, self._latest.get(group, 0))
        leader = f"{group} (generation {generation})"
        self._show(self._of_a_leader, time_us, leader, event, report)
        self._show(self._of_a_group, time_us, group, event, report)
        if generation == latest:
            self._show(self._of_the_latest, time_us, group, event, report)

    def _show(self, interested: Interested, time_us: int, name: str, event: LeadershipEvent, report: Report) -> None:
        for kind, invariant in interested.get(event.kind, ()):
            invariant.observe(time_us, name, decoded(event.event, kind), report)

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Finish the invariants of the latest leaders."""
        finish(self._of_the_latest, healed_us, end_us, report)


class GroupDecisionsAgree(ReportingInvariant):
    """TPC-I2. A rollback counts where the group had promised: without a promise it only forgets, and may learn anew."""

    id = "TPC-I2"
    statement = "A transaction ends alike in all groups that promised, under any leaders; committed under one time."
    events = (LeadershipEvent,)

    def __init__(self) -> None:
        self._ends = DecisionsAgree()
        self._promised: dict[tuple[str, TransactionId], None] = {}

    def observe(self, time_us: int, node: str, event: LeadershipEvent, report: Report) -> None:
        """Compare with how it ended elsewhere, or here before."""
        if event.kind == "Promised":
            promised = decoded(event.event, Promised)
            self._promised[event.group, promised.id] = None
        elif event.kind == "Finished":
            end = decoded(event.event, Finished)
            if end.time is not None or (event.group, end.id) in self._promised:
                self._ends.observe(time_us, event.group, end, report)


class PromisesOutliveTheirLeader(ReportingInvariant):
    """TPC-R44, from both sides: the promises of a leader, and the votes that a coordinator has counted."""

    id = "TPC-R44"
    statement = "A new leader of a group takes over every promise that left the group, with all its locks."
    events = (LeadershipEvent,)
    needs_order = True

    def __init__(self) -> None:
        self._promised: dict[tuple[str, TransactionId], dict[str, LockMode] | None] = {}
        self._over: dict[tuple[str, TransactionId], None] = {}

    def observe(self, time_us: int, node: str, event: LeadershipEvent, report: Report) -> None:
        """Follow the promises of each group, and compare when a leader takes over."""
        group, told = event.group, event.event
        if event.kind == "VoteTaken":
            vote = decoded(told, VoteTaken)
            self._promise(vote.voter, vote.id, None)
        elif event.kind == "Promised":
            promised = decoded(told, Promised)
            self._promise(group, promised.id, promised.locks)
        elif event.kind == "Finished":
            self._end(group, [decoded(told, Finished).id])
        elif event.kind == "TookOver":
            took_over = decoded(told, TookOver)
            self._end(group, took_over.ended)
            self._compare(time_us, event, {each.id: each.locks for each in took_over.promises}, report)

    def _promise(self, group: str, transaction: TransactionId, locks: dict[str, LockMode] | None) -> None:
        if (group, transaction) not in self._over and self._promised.get((group, transaction)) is None:
            self._promised[group, transaction] = locks

    def _end(self, group: str, ended: Sequence[TransactionId]) -> None:
        for transaction in ended:
            self._promised.pop((group, transaction), None)
            self._over[group, transaction] = None

    def _compare(
        self, time_us: int, event: LeadershipEvent, found: dict[TransactionId, dict[str, LockMode]], report: Report
    ) -> None:
        for (group, transaction), locks in self._promised.items():
            if group == event.group and found.get(transaction) is None:
                self._lost(report, time_us, event, f"the promise of transaction {transaction}")
            elif group == event.group and locks is not None and found[transaction] != locks:
                self._lost(report, time_us, event, f"locks that transaction {transaction} was promised")

    def _lost(self, report: Report, time_us: int, event: LeadershipEvent, what: str) -> None:
        sentence = f"The leader of generation {event.generation} took over {event.group} without {what}."
        self._breach(report, time_us, event.group, sentence)


class TimesAscendOverLeaders(ReportingInvariant):
    """TPC-S18 for an oracle that is a group: its times ascend in the order in which they leave, under any leader."""

    id = "TPC-S18"
    statement = "The oracle's times ascend, under any leader of its group."
    events = (LeadershipEvent,)
    needs_order = True

    def __init__(self) -> None:
        self._last = 0
        self._given_in = 0

    def observe(self, time_us: int, node: str, event: LeadershipEvent, report: Report) -> None:
        """Compare with the time given out last."""
        if event.kind != "TimeGiven":
            return
        time = decoded(event.event, TimeGiven).time
        if time <= self._last:
            sentence = (
                f"The leader of generation {event.generation} of {event.group} gave out the time {time} after"
                f" {self._last} had been given out in generation {self._given_in}."
            )
            self._breach(report, time_us, event.group, sentence)
        else:
            self._last, self._given_in = time, event.generation


def group_invariants() -> list[Invariant]:
    """Return new instances, for one run."""
    return [
        GroupLogs(),
        GroupTransactions(),
        GroupDecisionsAgree(),
        PromisesOutliveTheirLeader(),
        TimesAscendOverLeaders(),
    ]
