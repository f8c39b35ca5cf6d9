"""The planted bugs of elections, heartbeats and generations in `consistent-core`.

Each overrides one step: of an election, of the generation clock, of the log, or of the node's look at a generation.
They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

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
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("consistent-core", CoreParts, pattern="generation-clock", campaign="elections")
_LEADERS = BUGS.group(pattern="leader-and-followers", caught_by=("LDR-I3", "LOG-I2", "HWM-I5", "linearizability"))
_OLD_LEADERS = BUGS.group(caught_by=("GEN-I3", "LOG-I2", "HWM-I5", "linearizability"))


@BUGS.plant(
    "forget-votes",
    "LDR-M1 GEN-M3",
    part="generation_clock",
    campaign="election-durability",
    caught_by=("LDR-I1", "LDR-I2", "GEN-I1", "GEN-I5", "LOG-I1", "LOG-I2", "linearizability"),
)
class _ForgetVotes(GenerationClock):
    """Generation and vote are kept in memory only.

    Shows as: a restarted server votes a second time; two leaders in one generation.
    """

    def _persist(self, generation: int, voted_for: str | None) -> None:
        pass


@_LEADERS.plant("vote-for-any-log", "LDR-M3", part="elections.raft")
class _VoteForAnyLog(RaftElection):
    """A vote is given without a look at the candidate's log.

    Shows as: a leader lacks committed entries, and acknowledged writes vanish.
    """

    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        return True


@_LEADERS.plant(
    "half-elects-leader",
    "LDR-M4",
    part="elections.raft",
    caught_by=("LDR-I1", "LDR-I3", "LOG-I2", "HWM-I5", "linearizability"),
)
class _HalfElectsLeader(RaftElection):
    """Half of the servers, rounded down, elect a leader.

    Shows as: two leaders in one generation, or one that lacks what the other has committed.
    """

    def _new_tracker(self) -> QuorumTracker:
        return QuorumTracker(self._members, len(self._members) // 2)


@_LEADERS.plant(
    "lock-without-fencing",
    "LDR-M9",
    part="elections.external_store",
    campaign="external-store-elections",
    options={"election": "external-store"},
)
class _LockWithoutFencing(ExternalStoreElection):
    """The server that creates the leader key leads at once, without a majority in its generation.

    Shows as: a leader of before goes on committing beside the new one, and the new one lacks what it committed.
    """

    def _begin_leading(self, generation: int) -> bool:
        self._clock.vote(generation, self._me)
        self._ports.trace.emit(GenerationAdopted(self._clock.generation))
        self._lead()
        return True


class _CountsLongerLogs(GenerationAgreement):
    def _is_ahead(self, answer: GenerationPromised) -> bool:
        return False


@_LEADERS.plant(
    "zab-ignores-longer-logs", "LDR-M3", part="elections.zab", campaign="zab-elections", options={"election": "zab"}
)
class _ZabIgnoresLongerLogs(ZabElection):
    """Votes go by the id alone, and promises of servers with longer logs are counted.

    Shows as: the highest id leads although it lacks committed entries.
    """

    def _own_vote(self) -> Vote:
        return Vote(0, 0, self._me)

    def _new_agreement(self, context: ElectionContext) -> GenerationAgreement:
        return _CountsLongerLogs(context)


@BUGS.plant(
    "wall-clock-timeout",
    "HB-M1",
    part="elections.detector_clock",
    replaces=True,
    pattern="heartbeat",
    campaign="election-clocks",
    caught_by=("HB-I3",),
    options={"failure_detector": "fixed-timeout"},
)
class _WallClock:
    """The silence of the leader is measured on the wall clock.

    Shows as: a clock that steps forward makes a follower suspect a leader it has just heard.
    """

    def __init__(self, clock: Clock) -> None:
        self.monotonic_us = clock.wall_us
        self.wall_us = clock.wall_us


@_OLD_LEADERS.plant("old-leader-obeyed", "GEN-M1", part="node")
class _OldLeaderObeyed(KeyValueServer):
    """Requests are accepted whatever their generation.

    Shows as: a leader that slept overwrites committed entries of its successor.
    """

    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        return False


@_OLD_LEADERS.plant("old-heartbeats-obeyed", "GEN-M2", part="node")
class _OldHeartbeatsObeyed(KeyValueServer):
    """The generation is compared for entries, and not for heartbeats.

    Shows as: a leader that slept is followed again.
    """

    def _is_from_the_past(self, request: ReplicationRequest) -> bool:
        return bool(request.entries) and super()._is_from_the_past(request)


@BUGS.plant(
    "own-generation-on-entries", "GEN-M4", part="replicated_log", caught_by=("LOG-I1", "LOG-I2", "linearizability")
)
class _OwnGenerationOnEntries(ReplicatedLog):
    """A follower stores entries under the generation it lives in, not the one they were made in.

    Shows as: servers hold different generations of the same entry.
    """

    def _append_missing(self, entries: list[LogEntry]) -> bool:
        own = self._clock.generation
        return super()._append_missing(
            [LogEntry(entry.index, own, entry.kind, entry.data, entry.time_us) for entry in entries]
        )
