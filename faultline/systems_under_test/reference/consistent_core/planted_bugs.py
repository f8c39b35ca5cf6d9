"""The planted bugs of `consistent-core`; `BUGS` holds all of them, also those of the modules beside this one.

Here are those of leadership and of communication. Each is a class that is put in front of one of the `Parts`.
They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections import deque

from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads, LocalReads, Serve
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchQueue
from faultline.systems_under_test.patterns.node_communication.request_pipeline import RequestPipeline
from faultline.systems_under_test.reference.consistent_core import (
    collecting_planted_bugs,
    disk_planted_bugs,
    election_planted_bugs,
    replicated_log_planted_bugs,
    session_planted_bugs,
    storage_planted_bugs,
    wire_planted_bugs,
)
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.raft.append_batches import Proposal
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, PlantedBugs

__all__ = ["BUGS"]

_LOGS = ("replicated_log", "pulled_log")

_BUGS = PlantedBugs("consistent-core", CoreParts, campaign="leadership")
_BATCHES = _BUGS.group(pattern="request-batch", campaign="batches", caught_by=("availability",))


@_BUGS.plant(
    "stale-read", "LDR-M7, LOG-M11, CC-M1", part="node", pattern="leader-and-followers", caught_by=("linearizability",)
)
class _StaleRead(KeyValueServer):
    """A leader answers reads from its own state at once, not asking whether it still leads or is up to date.

    Shows as: a read returns a value that was overwritten before the read began.
    """

    def _reaches_a_quorum(self) -> bool:
        return True


@_BUGS.also("stale-read", part=("read_index_reads", "lease_reads"))
def _read_locally(_: ReplicatedLog, serve: Serve, *__: object) -> LeaderReads:
    return LocalReads(serve)


@_BUGS.plant(
    "ack-before-quorum",
    "LOG-M8, CC-M3",
    part=_LOGS,
    pattern="high-water-mark",
    caught_by=("linearizability", "LOG-I2", "HWM-I5", "LDR-I3"),
)
class _AckBeforeQuorum(ReplicatedLog):
    """A leader commits and answers as soon as an entry is in its own log.

    Shows as: an acknowledged write vanishes when the leader is cut off or dies; servers execute different entries.
    """

    def _committed_index(self) -> int:
        return self._log.last_index


@_BUGS.plant(
    "ack-before-fsync",
    "LOG-M9",
    part=_LOGS,
    pattern="write-ahead-log",
    campaign="durability",
    caught_by=("linearizability", "LOG-I2", "LDR-I3"),
)
class _AckBeforeFsync(LazyFlush, ReplicatedLog):
    """Leader and followers acknowledge entries and flush them up to 200 ms later.

    Shows as: acknowledged writes vanish when a majority is killed at once.
    """


@_BUGS.plant(
    "vote-twice",
    "LDR-M6",
    part="generation_clock",
    pattern="generation-clock",
    caught_by=("LDR-I1", "LDR-I2", "LOG-I1", "LOG-I2", "linearizability"),
    options={"pre_vote": "off"},
)
class _VoteTwice(GenerationClock):
    """A server gives the vote of a generation away again.

    Shows as: two leaders in one generation.
    """

    def _may_vote(self, generation: int, candidate: str) -> bool:
        return generation >= self.generation


@_BUGS.plant(
    "commit-old-generation",
    "LOG-M1",
    part=_LOGS,
    pattern="replicated-log",
    caught_by=("LOG-R14", "LOG-I2", "linearizability"),
    options={"batch_entries_max": "1"},
)
class _CommitOldGeneration(ReplicatedLog):
    """A leader commits an entry of an earlier generation because a majority stores it.

    Shows as: the mark advances by counting an old entry; at worst an acknowledged write is overwritten.
    """

    def _may_commit(self, index: int) -> bool:
        return True


@_BUGS.plant(
    "wall-clock-lease",
    "LOG-M12, CC-M2",
    part=_LOGS,
    pattern="leader-and-followers",
    campaign="clocks",
    caught_by=("LOG-I7", "linearizability"),
    options={"read_mode": "leader-lease"},
)
class _WallClockLease(ReplicatedLog):
    """The leader's lease is measured on the wall clock.

    Shows as: a clock that steps back prolongs the lease of a deposed leader, which answers stale reads.
    """

    def stamp_us(self) -> int:
        return self._ports.clock.wall_us()


@_BUGS.plant(
    "no-truncate-on-conflict",
    "LOG-M5, HWM-M5",
    part=_LOGS,
    pattern="replicated-log",
    caught_by=("LOG-I2", "LOG-I1", "LDR-I3", "linearizability"),
)
class _NoTruncateOnConflict(ReplicatedLog):
    """A follower keeps its conflicting entries and acknowledges the leader's.

    Shows as: servers execute different entries at one index; reads after a leader change disagree.
    """

    def _truncate(self, index: int) -> bool:
        return False


@_BUGS.plant(
    "late-answer-taken",
    "SC-M4",
    part="client",
    pattern="single-socket-channel",
    campaign="retries",
    caught_by=("linearizability",),
)
class _LateAnswerTaken(KeyValueClient):
    """A client goes on using a connection after a timeout and takes whatever answer comes next for its own.

    Shows as: a read or a write is answered with the late answer to the request before it.
    """

    def _awaits(self, response: ClientResponse) -> bool:
        return True


class _Unlimited(RequestPipeline):
    def _is_full(self, ids: deque[int]) -> bool:
        return False


@_BUGS.plant(
    "no-in-flight-limit",
    "RP-M1",
    part="replicated_log",
    pattern="request-pipeline",
    caught_by=("RP-I1",),
    options={"batch_entries_max": "1"},
)
class _NoInFlightLimit(ReplicatedLog):
    """A leader sends to a follower however many of its requests are unanswered.

    Shows as: more than five requests in flight while a follower is cut off, paused or slow.
    """

    def _new_pipeline(self) -> RequestPipeline:
        return _Unlimited(self._timing.in_flight_max, self._note_depth)


@_BATCHES.plant(
    "places-not-released",
    "RP-M4",
    part="replicated_log",
    pattern="request-pipeline",
    campaign="retries",
    options={"read_mode": "log"},
)
class _PlacesNotReleased(ReplicatedLog):
    """Places of requests that were lost are not given back.

    Shows as: after five losses a follower gets no more entries; with two such followers nothing is ever committed.
    """

    def _release_places(self, follower: FollowerHandler) -> None:
        pass


@_BATCHES.plant(
    "batch-without-linger-timer", "RB-M1", part="batch_queue", options={"read_mode": "log", "batch_entries_max": "1000"}
)
class _WithoutLingerTimer(BatchQueue[Proposal]):
    """A batch is sent when it is full, never because it has waited long enough.

    Shows as: a few small requests are never sent, and the cluster answers no client.
    """

    def _has_lingered(self) -> bool:
        return False

    def _arm(self) -> None:
        pass


@_BATCHES.plant(
    "oversize-blocks-batch", "RB-M3", part="batch_queue", options={"read_mode": "log", "batch_size_bytes": "96"}
)
class _OversizeBlocksBatch(BatchQueue[Proposal]):
    """A request that fits into no batch is queued all the same.

    Shows as: it stays at the head of the queue, and nothing behind it is ever sent.
    """

    def _refuse_oversize(self, size_bytes: int) -> None:
        pass

    def _head_fits(self) -> bool:
        return not self._queue or self._queue[0].size_bytes <= self._limits.size_bytes_max

    def _is_due(self) -> bool:
        return self._head_fits() and super()._is_due()

    def _arm(self) -> None:
        if self._head_fits():
            super()._arm()


@_BATCHES.plant(
    "ack-batch-before-flush",
    "RB-M10",
    part=_LOGS,
    campaign="batch-durability",
    caught_by=("linearizability", "LOG-I2", "LDR-I3"),
)
class _AckBatchBeforeFlush(LazyFlush, ReplicatedLog):
    """Batches of several entries are acknowledged at once and flushed up to 200 ms later.

    Shows as: acknowledged writes vanish when a majority is killed at once.
    """

    def _flush(self) -> None:
        self._log.flush()

    def _flush_batch(self, entries: int) -> None:
        if entries > 1:
            LazyFlush._flush(self)
        else:
            self._flush()


BUGS = _BUGS.with_those_of(
    replicated_log_planted_bugs.BUGS,
    election_planted_bugs.BUGS,
    session_planted_bugs.BUGS,
    storage_planted_bugs.BUGS,
    disk_planted_bugs.BUGS,
    collecting_planted_bugs.BUGS,
    wire_planted_bugs.BUGS,
)
"""All planted bugs of the system."""
