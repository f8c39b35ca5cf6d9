"""The planted bugs of `consistent-core`.

Each is a record (what it is, how it shows, which campaign catches it) and a change to the `Parts` a node is built
from: a subclass that overrides the one step the bug is about. The correct code does not know that any of them exists,
so none can be switched on by accident, and none is a second copy.

They break consistent-core for good: never use them outside the harness.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from faultline.harness.system import Mutant
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchQueue
from faultline.systems_under_test.patterns.node_communication.request_pipeline import RequestPipeline
from faultline.systems_under_test.reference.consistent_core import replicated_log_mutant_records, replicated_log_mutants
from faultline.systems_under_test.reference.consistent_core.election_mutants import (
    ELECTION_CHANGES,
    ELECTION_MUTANTS,
)
from faultline.systems_under_test.reference.consistent_core.follower_reads.mutants import FOLLOWER_READ_MUTANTS
from faultline.systems_under_test.reference.consistent_core.parts import CoreParts
from faultline.systems_under_test.reference.consistent_core.replicated_log_mutants import in_the_log
from faultline.systems_under_test.reference.consistent_core.service_mutant_records import SERVICE_MUTANTS
from faultline.systems_under_test.reference.consistent_core.session_mutants import (
    SESSION_CHANGES,
    SESSION_MUTANTS,
)
from faultline.systems_under_test.reference.consistent_core.storage_mutants import STORAGE_BUGS, STORAGE_CHANGES
from faultline.systems_under_test.reference.consistent_core.update_queue_mutants import (
    UPDATE_QUEUE_CHANGES,
    UPDATE_QUEUE_MUTANTS,
)
from faultline.systems_under_test.reference.raft.append_batches import Proposal
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.shared import planted_bugs
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.planted_bugs import LazyFlush, layered, with_bugs

__all__ = ["MUTANTS", "forced_options", "mutated_parts"]


_RECORDS = (
    Mutant(
        name="stale-read",
        pattern="leader-and-followers",
        id="LDR-M7, LOG-M11, CC-M1",
        summary="a leader answers reads from its own state at once, not asking whether it still leads or is up to date",
        shows_as="a read returns a value that was overwritten before the read began",
        campaign="leadership",
        caught_by=("linearizability",),
    ),
    Mutant(
        name="ack-before-quorum",
        pattern="high-water-mark",
        id="LOG-M8, CC-M3",
        summary="a leader commits and answers as soon as an entry is in its own log",
        shows_as="an acknowledged write vanishes when the leader is cut off or dies; servers execute different entries",
        campaign="leadership",
        caught_by=("linearizability", "LOG-I2", "HWM-I5", "LDR-I3"),
    ),
    Mutant(
        name="ack-before-fsync",
        pattern="write-ahead-log",
        id="LOG-M9",
        summary="leader and followers acknowledge entries and flush them up to 200 ms later",
        shows_as="acknowledged writes vanish when a majority is killed at once",
        campaign="durability",
        caught_by=("linearizability", "LOG-I2", "LDR-I3"),
    ),
    Mutant(
        name="vote-twice",
        pattern="generation-clock",
        id="LDR-M6",
        summary="a server gives the vote of a generation away again",
        shows_as="two leaders in one generation",
        campaign="leadership",
        caught_by=("LDR-I1", "LDR-I2", "LOG-I1", "LOG-I2", "linearizability"),
        options={"pre_vote": "off"},
    ),
    Mutant(
        name="commit-old-generation",
        pattern="replicated-log",
        id="LOG-M1",
        summary="a leader commits an entry of an earlier generation because a majority stores it",
        shows_as="the mark advances by counting an old entry; at worst an acknowledged write is overwritten",
        campaign="leadership",
        caught_by=("LOG-R14", "LOG-I2", "linearizability"),
        options={"batch_entries_max": "1"},
    ),
    Mutant(
        name="wall-clock-lease",
        pattern="leader-and-followers",
        id="LOG-M12, CC-M2",
        summary="the leader's lease is measured on the wall clock",
        shows_as="a clock that steps back prolongs the lease of a deposed leader, which answers stale reads",
        campaign="clocks",
        caught_by=("LOG-I7", "linearizability"),
        options={"read_mode": "leader-lease"},
    ),
    Mutant(
        name="no-truncate-on-conflict",
        pattern="replicated-log",
        id="LOG-M5, HWM-M5",
        summary="a follower keeps its conflicting entries and acknowledges the leader's",
        shows_as="servers execute different entries at one index; reads after a leader change disagree",
        campaign="leadership",
        caught_by=("LOG-I2", "LOG-I1", "LDR-I3", "linearizability"),
    ),
    Mutant(
        name="late-answer-taken",
        pattern="single-socket-channel",
        id="SC-M4",
        summary="a client goes on using a connection after a timeout and takes whatever answer comes next for its own",
        shows_as="a read or a write is answered with the late answer to the request before it",
        campaign="retries",
        caught_by=("linearizability",),
    ),
    Mutant(
        name="no-in-flight-limit",
        pattern="request-pipeline",
        id="RP-M1",
        summary="a leader sends to a follower however many of its requests are unanswered",
        shows_as="more than five requests in flight while a follower is cut off, paused or slow",
        campaign="leadership",
        caught_by=("RP-I1",),
        options={"batch_entries_max": "1"},
    ),
    Mutant(
        name="places-not-released",
        pattern="request-pipeline",
        id="RP-M4",
        summary="places of requests that were lost are not given back",
        shows_as="after five losses a follower gets no more entries; with two such followers nothing is ever committed",
        campaign="retries",
        caught_by=("availability",),
        options={"read_mode": "log"},
    ),
    Mutant(
        name="batch-without-linger-timer",
        pattern="request-batch",
        id="RB-M1",
        summary="a batch is sent when it is full, never because it has waited long enough",
        shows_as="a few small requests are never sent, and the cluster answers nobody",
        campaign="batches",
        caught_by=("availability",),
        options={"read_mode": "log", "batch_entries_max": "1000"},
    ),
    Mutant(
        name="oversize-blocks-batch",
        pattern="request-batch",
        id="RB-M3",
        summary="a request that fits into no batch is queued all the same",
        shows_as="it stays at the head of the queue, and nothing behind it is ever sent",
        campaign="batches",
        caught_by=("availability",),
        options={"read_mode": "log", "batch_size_bytes": "96"},
    ),
    Mutant(
        name="ack-batch-before-flush",
        pattern="request-batch",
        id="RB-M10",
        summary="batches of several entries are acknowledged at once and flushed up to 200 ms later",
        shows_as="acknowledged writes vanish when a majority is killed at once",
        campaign="batch-durability",
        caught_by=("linearizability", "LOG-I2", "LDR-I3"),
    ),
)

MUTANTS: dict[str, Mutant] = {
    record.name: record
    for record in (
        *_RECORDS,
        *replicated_log_mutant_records.RECORDS,
        *ELECTION_MUTANTS,
        *SESSION_MUTANTS,
        *STORAGE_BUGS,
        *UPDATE_QUEUE_MUTANTS,
        *FOLLOWER_READ_MUTANTS,
        *SERVICE_MUTANTS,
    )
}
"""Every planted bug by name."""


class _AckBeforeQuorum(ReplicatedLog):
    def _committed_index(self) -> int:
        return self._log.last_index


class _AckBeforeFsync(LazyFlush, ReplicatedLog):
    pass


class _CommitOldGeneration(ReplicatedLog):
    def _may_commit(self, index: int) -> bool:
        return True


class _WallClockLease(ReplicatedLog):
    def stamp_us(self) -> int:
        return self._ports.clock.wall_us()


class _NoTruncateOnConflict(ReplicatedLog):
    def _truncate(self, index: int) -> bool:
        return False


class _LateAnswerTaken(KeyValueClient):
    def _awaits(self, response: ClientResponse) -> bool:
        return True


class _NoInFlightLimit(ReplicatedLog):
    def _new_pipeline(self) -> RequestPipeline:
        return _Unlimited(self._timing.in_flight_max, self._note_depth)


class _Unlimited(RequestPipeline):
    def _is_full(self, ids: deque[int]) -> bool:
        return False


class _PlacesNotReleased(ReplicatedLog):
    def _release_places(self, follower: FollowerHandler) -> None:
        pass


class _WithoutLingerTimer(BatchQueue[Proposal]):
    def _has_lingered(self) -> bool:
        return False

    def _arm(self) -> None:
        pass


class _OversizeBlocksBatch(BatchQueue[Proposal]):
    def _refuse_oversize(self, size_bytes: int) -> None:
        pass

    def _head_fits(self) -> bool:
        return not self._queue or self._queue[0].size_bytes <= self._limits.size_bytes_max

    def _is_due(self) -> bool:
        return self._head_fits() and super()._is_due()

    def _arm(self) -> None:
        if self._head_fits():
            super()._arm()


class _AckBatchBeforeFlush(LazyFlush, ReplicatedLog):
    def _flush(self) -> None:
        self._log.flush()

    def _flush_batch(self, entries: int) -> None:
        if entries > 1:
            LazyFlush._flush(self)
        else:
            self._flush()


class _VoteTwice(GenerationClock):
    def _may_vote(self, generation: int, candidate: str) -> bool:
        return generation >= self.generation


_CHANGES: dict[str, Callable[[CoreParts], CoreParts]] = {
    "stale-read": lambda parts: replace(parts, confirms_leadership=False),
    "ack-before-quorum": in_the_log(_AckBeforeQuorum),
    "ack-before-fsync": in_the_log(_AckBeforeFsync),
    "vote-twice": lambda parts: replace(parts, generation_clock=_VoteTwice),
    "commit-old-generation": in_the_log(_CommitOldGeneration),
    "wall-clock-lease": in_the_log(_WallClockLease),
    "no-truncate-on-conflict": in_the_log(_NoTruncateOnConflict),
    "late-answer-taken": lambda parts: replace(parts, client=_LateAnswerTaken),
    "no-in-flight-limit": layered("replicated_log", _NoInFlightLimit),
    "places-not-released": layered("replicated_log", _PlacesNotReleased),
    "batch-without-linger-timer": lambda parts: replace(parts, batch_queue=_WithoutLingerTimer),
    "oversize-blocks-batch": lambda parts: replace(parts, batch_queue=_OversizeBlocksBatch),
    "ack-batch-before-flush": in_the_log(_AckBatchBeforeFlush),
    **replicated_log_mutants.CHANGES,
    **ELECTION_CHANGES,
    **SESSION_CHANGES,
    **STORAGE_CHANGES,
    **UPDATE_QUEUE_CHANGES,
}


def mutated_parts(names: Iterable[str]) -> CoreParts:
    """The parts of a node with the planted bugs `names`; with none, the correct ones. Raises UsageError."""
    return _mutated_parts(frozenset(names))


@lru_cache(maxsize=64)
def _mutated_parts(names: frozenset[str]) -> CoreParts:
    elsewhere = (bug.name for bug in (*FOLLOWER_READ_MUTANTS, *SERVICE_MUTANTS))
    return with_bugs("consistent-core", names, CoreParts(), _CHANGES, elsewhere)


def forced_options(names: Iterable[str]) -> dict[str, str]:
    """The options that the planted bugs `names` need to show."""
    return planted_bugs.forced_options(names, MUTANTS)
