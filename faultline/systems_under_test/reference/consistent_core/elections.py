"""Which election and which failure detector a server of `consistent-core` uses, by its options.

`Elections` names the classes; a planted bug is a subclass put in place of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock, NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.external_store_election import ExternalStoreElection
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    FailureDetector,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    ElectionListener,
    ElectionTiming,
    LeaderElection,
)
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiAccrualFailureDetector, PhiParameters
from faultline.systems_under_test.patterns.data_replication.raft_election import RaftElection
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog
from faultline.systems_under_test.patterns.data_replication.zab_election import ZabElection
from faultline.systems_under_test.reference.consistent_core.options import CoreSettings

__all__ = ["Elections", "election_timing", "failure_detector", "new_election", "replicas_of", "store_of"]


def _itself(clock: Clock) -> Clock:
    return clock


@dataclass(frozen=True, slots=True)
class Elections:
    """The class of each style of election, and the clock that failure detectors read: the server's, unchanged."""

    raft: type[RaftElection] = RaftElection
    zab: type[ZabElection] = ZabElection
    external_store: type[ExternalStoreElection] = ExternalStoreElection
    detector_clock: Callable[[Clock], Clock] = _itself


def store_of(members: tuple[NodeId, ...], settings: CoreSettings) -> NodeId | None:
    """The node that keeps the leader key instead of a replica; None when leaders are elected without a store."""
    if settings.election != "external-store":
        return None
    if len(members) < 3:
        raise UsageError(
            f"Of {len(members)} nodes, one would be the store, and nothing would be replicated.",
            "Use 4 or 6 nodes with election=external-store (--nodes 4): the last one is the store.",
        )
    return members[-1]


def replicas_of(members: tuple[NodeId, ...], settings: CoreSettings) -> tuple[NodeId, ...]:
    """The nodes that hold the log."""
    return members if store_of(members, settings) is None else members[:-1]


def new_election(
    ports: Ports,
    members: tuple[NodeId, ...],
    log: WriteAheadLog,
    clock: GenerationClock,
    listener: ElectionListener,
    on_timeout: Callable[[], None],
    settings: CoreSettings,
    elections: Elections,
) -> LeaderElection:
    """The election that the options ask for, among those of `members` that hold the log."""
    detector = failure_detector(settings, elections.detector_clock(ports.clock))
    replicas = replicas_of(members, settings)
    context = ElectionContext(ports, replicas, log, clock, listener, on_timeout, election_timing(settings), detector)
    store = store_of(members, settings)
    if store is not None:
        return elections.external_store(context, store=store, ttl_us=settings.leader_key_ttl_us)
    if settings.election == "zab":
        return elections.zab(context)
    return elections.raft(context, pre_vote=settings.pre_vote)


def election_timing(settings: CoreSettings) -> ElectionTiming:
    """Lost messages are repeated at the interval of heartbeats; leases make voters stick to their leader."""
    return ElectionTiming(
        timeout_us=settings.election_timeout_us,
        interval_us=settings.heartbeat_interval_us,
        vote_stickiness=settings.read_mode == "leader-lease",
        silence_us_min=0 if settings.failure_detector == "phi-accrual" else settings.election_timeout_us,
    )


def failure_detector(settings: CoreSettings, clock: Clock) -> FailureDetector:
    """The detector that the options ask for; sleeping through heartbeats is forgiven by all but `fixed-timeout`."""
    timeout_us = settings.election_timeout_us
    if settings.failure_detector == "fixed-timeout":
        return TimeoutBasedFailureDetector(clock, timeout_us)
    if settings.failure_detector == "phi-accrual":
        phi = PhiAccrualFailureDetector(clock, timeout_us, PhiParameters.of(settings.heartbeat_interval_us))
        return PauseAwareFailureDetector(phi, clock, timeout_us)
    return PauseAwareFailureDetector(TimeoutBasedFailureDetector(clock, timeout_us), clock, timeout_us)
