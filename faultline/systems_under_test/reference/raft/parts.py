"""The parts of a Raft server: the classes it is made of, and which of them the options choose.

A server asks its parts for its election, its log and its reads, and never learns which it was given. A planted bug is
a subclass put in the place of one of the classes; the correct code never names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock, NodeId, Ports, Storage, Trace
from faultline.systems_under_test.patterns.data_replication.collected_log import CollectedLog
from faultline.systems_under_test.patterns.data_replication.collecting_election import (
    CollectableLog,
    CollectingElection,
)
from faultline.systems_under_test.patterns.data_replication.external_store_election import ExternalStoreElection
from faultline.systems_under_test.patterns.data_replication.flush_policy import LogFlushedLater
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    FailureDetector,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    Acknowledged,
    ClientSessions,
    DiscardPolicy,
    LastResponses,
    OneAtATime,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    ElectionTiming,
    LeaderElection,
)
from faultline.systems_under_test.patterns.data_replication.leader_reads import (
    LeaderLeaseReads,
    LeaderReads,
    ReadIndexReads,
    Serve,
)
from faultline.systems_under_test.patterns.data_replication.lone_log import LoneLog
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiAccrualFailureDetector, PhiParameters
from faultline.systems_under_test.patterns.data_replication.pulled_log import PulledLog
from faultline.systems_under_test.patterns.data_replication.raft_election import RaftElection
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog, ReplicationTiming
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import RequestWaitingList
from faultline.systems_under_test.patterns.data_replication.restamped_log import RestampedLog
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog
from faultline.systems_under_test.patterns.data_replication.session_expiry import SessionExpiry
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.patterns.data_replication.zab_election import ZabElection
from faultline.systems_under_test.patterns.node_communication.batch_queue import BatchLimits, BatchQueue, WhenFull
from faultline.systems_under_test.reference.raft.append_batches import Proposal
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse
from faultline.systems_under_test.reference.shared.compaction import Compaction

__all__ = ["Elections", "Parts", "discard_policy", "replicas_of", "store_of"]

_REQUESTS_IN_FLIGHT = 1
"""The requests that a client has in flight: it is asked for one operation at a time."""

_BATCH_QUEUE_MAX = 1_000
"""The number of commands that may wait for their batch; an append frees the queue, so only a burst can fill it."""


def _itself(clock: Clock) -> Clock:
    return clock


@dataclass(frozen=True, slots=True)
class Elections:
    """The class of each style of election, and the clock that failure detectors read: the server's, unchanged."""

    raft: type[RaftElection] = RaftElection
    zab: type[ZabElection] = ZabElection
    external_store: type[ExternalStoreElection] = ExternalStoreElection
    collecting: type[CollectingElection] = CollectingElection
    detector_clock: Callable[[Clock], Clock] = _itself


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a server is made of."""

    segmented_log: type[SegmentedLog] = SegmentedLog
    generation_clock: Callable[[Storage], GenerationClock] = GenerationClock
    replicated_log: type[ReplicatedLog] = ReplicatedLog
    pulled_log: type[PulledLog] = PulledLog
    collected_log: type[CollectedLog] = CollectedLog
    sessions: type[ClientSessions[ClientResponse]] = ClientSessions
    session_expiry: type[SessionExpiry] = SessionExpiry
    elections: Elections = field(default_factory=Elections)
    batch_queue: type[BatchQueue[Proposal]] = BatchQueue
    compaction: type[Compaction] = Compaction
    read_index_reads: type[ReadIndexReads] = ReadIndexReads
    lease_reads: type[LeaderLeaseReads] = LeaderLeaseReads
    waiting_list: type[RequestWaitingList[int, ClientResponse]] = RequestWaitingList

    def replicas(self, members: tuple[NodeId, ...], settings: RaftSettings) -> tuple[NodeId, ...]:
        """Return the nodes that hold the log. Raises UsageError when there are too few for the options."""
        if len(members) < 2 and (settings.election, settings.replication) != ("raft", "push"):
            raise UsageError(
                "A single node elects itself and has no followers, so election must be raft and replication push.",
                "Leave these options out, or use 3 or 5 nodes (--nodes 3).",
            )
        return replicas_of(members, settings)

    # Elections.

    def election(self, context: ElectionContext, members: tuple[NodeId, ...], settings: RaftSettings) -> LeaderElection:
        """Return the election that the options ask for."""
        store = store_of(members, settings)
        if store is not None:
            return self.elections.external_store(context, store=store, ttl_us=settings.leader_key_ttl_us)
        if settings.election == "zab":
            return self.elections.zab(context)
        if settings.election == "collecting":
            # The log is the one that `write_ahead_log` made for these settings.
            return self.elections.collecting(context, cast("CollectableLog", context.log), pre_vote=settings.pre_vote)
        return self.elections.raft(context, pre_vote=settings.pre_vote)

    def election_timing(self, settings: RaftSettings) -> ElectionTiming:
        """Repeat lost messages at the interval of heartbeats; under leases, let voters stick to their leader."""
        return ElectionTiming(
            timeout_us=settings.election_timeout_us,
            interval_us=settings.heartbeat_interval_us,
            vote_stickiness=settings.read_mode == "leader-lease",
            silence_us_min=0 if settings.failure_detector == "phi-accrual" else settings.election_timeout_us,
        )

    def failure_detector(self, ports: Ports, settings: RaftSettings) -> FailureDetector:
        """Return the detector that the options ask for.

        All but `fixed-timeout` forgive heartbeats that were missed because the server itself slept.
        """
        clock, timeout_us = self.elections.detector_clock(ports.clock), settings.election_timeout_us
        if settings.failure_detector == "fixed-timeout":
            return TimeoutBasedFailureDetector(clock, timeout_us)
        if settings.failure_detector == "phi-accrual":
            phi = PhiAccrualFailureDetector(clock, timeout_us, PhiParameters.of(settings.heartbeat_interval_us))
            return PauseAwareFailureDetector(phi, clock, timeout_us)
        return PauseAwareFailureDetector(TimeoutBasedFailureDetector(clock, timeout_us), clock, timeout_us)

    # The log and its replication.

    def write_ahead_log(self, ports: Ports, settings: RaftSettings) -> WriteAheadLog:
        """Return the log on this server's disk, in segments, flushed as the options have it."""
        size_bytes = settings.segment_size_bytes
        if settings.election == "collecting":
            return RestampedLog(ports.storage, segment_size_bytes_max=size_bytes, files=self.segmented_log)
        if settings.flush_policy == "each-append":
            return WriteAheadLog(ports.storage, segment_size_bytes_max=size_bytes, files=self.segmented_log)
        interval_us = settings.flush_interval_us if settings.flush_policy == "interval" else 0
        return LogFlushedLater(ports, interval_us, segment_size_bytes_max=size_bytes)

    def replication(self, replicas: tuple[NodeId, ...], settings: RaftSettings) -> type[ReplicatedLog]:
        """Return the kind of log: pushed to followers, fetched by them, stamped anew, or of a server without any."""
        if len(replicas) == 1:
            return LoneLog
        if settings.election == "collecting":
            return self.collected_log
        return self.pulled_log if settings.replication == "pull" else self.replicated_log

    def replication_timing(self, settings: RaftSettings) -> ReplicationTiming:
        """Return the limits of replication, and how long it waits for what."""
        return ReplicationTiming(
            batch_entries_max=settings.batch_entries_max,
            batch_size_bytes=settings.batch_size_bytes,
            in_flight_max=settings.in_flight_max,
            retransmit_us=2 * settings.heartbeat_interval_us,
            silent_us=settings.election_timeout_us,
            quiet_us=settings.heartbeat_interval_us // 2,
        )

    def append_limits(self, settings: RaftSettings) -> BatchLimits:
        """Return the limits of the batches in which a leader appends commands."""
        return BatchLimits(
            size_bytes_max=settings.batch_size_bytes,
            requests_max=settings.batch_entries_max,
            linger_us=settings.batch_linger_us,
            queue_max=max(_BATCH_QUEUE_MAX, settings.batch_entries_max),
            when_full=WhenFull.REFUSE,
        )

    # Reads and sessions.

    def leader_reads(
        self, settings: RaftSettings, log: ReplicatedLog, trace: Trace, serve: Serve, refuse: Serve
    ) -> LeaderReads:
        """Return the way in which a leader answers reads that bypass the log; `refuse` is for one without a lease."""
        if settings.read_mode == "leader-lease":
            return self.lease_reads(log, serve, refuse, trace, settings.leader_lease_us)
        return self.read_index_reads(log, serve, trace)

    def new_sessions(self, settings: RaftSettings) -> ClientSessions[ClientResponse]:
        """Return the table of client sessions, empty. Raises UsageError for a policy that cannot serve the clients."""
        return self.sessions(discard_policy(settings))


def discard_policy(settings: RaftSettings) -> DiscardPolicy:
    """Return the policy that the options ask for. Raise UsageError when it cannot serve the clients."""
    policy: DiscardPolicy = LastResponses(settings.saved_responses_max)
    if settings.discard_policy == "one-at-a-time":
        policy = OneAtATime()
    elif settings.discard_policy == "acknowledged":
        policy = Acknowledged()
    policy.refuse_in_flight(_REQUESTS_IN_FLIGHT)
    return policy


def store_of(members: tuple[NodeId, ...], settings: RaftSettings) -> NodeId | None:
    """Return the node that keeps the leader key instead of a replica; None when leaders are elected without one."""
    if settings.election != "external-store":
        return None
    if len(members) < 3:
        raise UsageError(
            f"Of {len(members)} nodes, one would be the store, and nothing would be replicated.",
            "Use 4 or 6 nodes with election=external-store (--nodes 4): the last one is the store.",
        )
    return members[-1]


def replicas_of(members: tuple[NodeId, ...], settings: RaftSettings) -> tuple[NodeId, ...]:
    """Return the nodes that hold the log."""
    return members if store_of(members, settings) is None else members[:-1]
