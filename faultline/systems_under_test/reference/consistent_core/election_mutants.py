"""The planted bugs of elections, heartbeats and generations in `consistent-core`.

Each is a subclass that overrides one step: of an election, of the generation clock, of the log, or of the node's look
at a generation. They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultline.harness.system import Mutant
from faultline.harness.world.ports import Clock
from faultline.systems_under_test.patterns.data_replication.external_store_election import ExternalStoreElection
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationAgreement,
    GenerationPromised,
)
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    GenerationAdopted,
)
from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker
from faultline.systems_under_test.patterns.data_replication.raft_election import (
    PreVoteRequest,
    RaftElection,
    VoteRequest,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog, ReplicationRequest
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry
from faultline.systems_under_test.patterns.data_replication.zab_election import Vote, ZabElection
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.shared.planted_bugs import layered

__all__ = ["ELECTION_CHANGES", "ELECTION_MUTANTS"]

ELECTION_MUTANTS = (
    Mutant(
        name="forget-votes",
        pattern="generation-clock",
        id="LDR-M1 GEN-M3",
        summary="generation and vote are kept in memory only",
        shows_as="a restarted server votes a second time; two leaders in one generation",
        campaign="election-durability",
        caught_by=("LDR-I1", "LDR-I2", "GEN-I1", "GEN-I5", "LOG-I1", "LOG-I2", "linearizability"),
    ),
    Mutant(
        name="vote-for-any-log",
        pattern="leader-and-followers",
        id="LDR-M3",
        summary="a vote is given without a look at the candidate's log",
        shows_as="a leader lacks committed entries, and acknowledged writes vanish",
        campaign="elections",
        caught_by=("LDR-I3", "LOG-I2", "HWM-I5", "linearizability"),
    ),
    Mutant(
        name="half-elects-leader",
        pattern="leader-and-followers",
        id="LDR-M4",
        summary="half of the servers, rounded down, elect a leader",
        shows_as="two leaders in one generation, or one that lacks what the other has committed",
        campaign="elections",
        caught_by=("LDR-I1", "LDR-I3", "LOG-I2", "HWM-I5", "linearizability"),
    ),
    Mutant(
        name="lock-without-fencing",
        pattern="leader-and-followers",
        id="LDR-M9",
        summary="whoever creates the leader key leads at once, without a majority in its generation",
        shows_as="a leader of before goes on committing beside the new one, and the new one lacks what it committed",
        campaign="external-store-elections",
        caught_by=("LDR-I3", "LOG-I2", "HWM-I5", "linearizability"),
        options={"election": "external-store"},
    ),
    Mutant(
        name="zab-ignores-longer-logs",
        pattern="leader-and-followers",
        id="LDR-M3",
        summary="votes go by the id alone, and promises of servers with longer logs are counted",
        shows_as="the highest id leads although it lacks committed entries",
        campaign="zab-elections",
        caught_by=("LDR-I3", "LOG-I2", "HWM-I5", "linearizability"),
        options={"election": "zab"},
    ),
    Mutant(
        name="wall-clock-timeout",
        pattern="heartbeat",
        id="HB-M1",
        summary="the silence of the leader is measured on the wall clock",
        shows_as="a clock that steps forward makes a follower suspect a leader it has just heard",
        campaign="election-clocks",
        caught_by=("HB-I3",),
        options={"failure_detector": "fixed-timeout"},
    ),
    Mutant(
        name="old-leader-obeyed",
        pattern="generation-clock",
        id="GEN-M1",
        summary="requests are accepted whatever their generation",
        shows_as="a leader that slept overwrites committed entries of its successor",
        campaign="elections",
        caught_by=("GEN-I3", "LOG-I2", "HWM-I5", "linearizability"),
    ),
    Mutant(
        name="old-heartbeats-obeyed",
        pattern="generation-clock",
        id="GEN-M2",
        summary="the generation is compared for entries, and not for heartbeats",
        shows_as="a leader that slept is followed again",
        campaign="elections",
        caught_by=("GEN-I3", "LOG-I2", "HWM-I5", "linearizability"),
    ),
    Mutant(
        name="own-generation-on-entries",
        pattern="generation-clock",
        id="GEN-M4",
        summary="a follower stores entries under the generation it lives in, not the one they were made in",
        shows_as="servers hold different generations of the same entry",
        campaign="elections",
        caught_by=("LOG-I1", "LOG-I2", "linearizability"),
    ),
)


class _ForgetVotes(GenerationClock):
    def _persist(self, generation: int, voted_for: str | None) -> None:
        pass


class _VoteForAnyLog(RaftElection):
    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        return True


class _HalfElectsLeader(RaftElection):
    def _new_tracker(self) -> QuorumTracker:
        return QuorumTracker(self._members, len(self._members) // 2)


class _LockWithoutFencing(ExternalStoreElection):
    def _begin_leading(self, generation: int) -> bool:
        self._clock.vote(generation, self._me)
        self._ports.trace.emit(GenerationAdopted(self._clock.generation))
        self._lead()
        return True


class _CountsLongerLogs(GenerationAgreement):
    def _is_ahead(self, answer: GenerationPromised) -> bool:
        return False


class _ZabIgnoresLongerLogs(ZabElection):
    def _own_vote(self) -> Vote:
        return Vote(0, 0, self._me)

    def _new_agreement(self, context: ElectionContext) -> GenerationAgreement:
        return _CountsLongerLogs(context)


class _WallClock:
    """A clock whose monotonic time is the wall's."""

    def __init__(self, clock: Clock) -> None:
        self.monotonic_us = clock.wall_us
        self.wall_us = clock.wall_us


class _OldLeaderObeyed(KeyValueServer):
    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        return False


class _OldHeartbeatsObeyed(KeyValueServer):
    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        return bool(request.entries) and super()._is_from_the_past(request)


class _OwnGenerationOnEntries(ReplicatedLog):
    def _append_missing(self, entries: list[LogEntry]) -> bool:
        own = self._clock.generation
        return super()._append_missing(
            [LogEntry(entry.index, own, entry.kind, entry.data, entry.time_us) for entry in entries]
        )


def _in_elections(style: str, change: Any) -> Callable[[CoreParts], CoreParts]:
    return lambda parts: replace(parts, elections=replace(parts.elections, **{style: change}))


def _in_the_node(change: type[KeyValueServer]) -> Callable[[CoreParts], CoreParts]:
    return lambda parts: replace(parts, node=change)


ELECTION_CHANGES: dict[str, Callable[[CoreParts], CoreParts]] = {
    "forget-votes": lambda parts: replace(parts, generation_clock=_ForgetVotes),
    "vote-for-any-log": _in_elections("raft", _VoteForAnyLog),
    "half-elects-leader": _in_elections("raft", _HalfElectsLeader),
    "lock-without-fencing": _in_elections("external_store", _LockWithoutFencing),
    "zab-ignores-longer-logs": _in_elections("zab", _ZabIgnoresLongerLogs),
    "wall-clock-timeout": _in_elections("detector_clock", _WallClock),
    "old-leader-obeyed": _in_the_node(_OldLeaderObeyed),
    "old-heartbeats-obeyed": _in_the_node(_OldHeartbeatsObeyed),
    "own-generation-on-entries": layered("replicated_log", _OwnGenerationOnEntries),
}
"""What each of them replaces in the parts of a node."""
