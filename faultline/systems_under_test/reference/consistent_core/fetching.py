"""Between a node of `consistent-core` and its log when followers fetch (option `replication=pull`).

What the replicated log leaves to the node is the comparison of generations: a fetch counts only in the generation of
the leader that takes it, an answer only if its leader is not an old one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import LeaderElection, ServerRole
from faultline.systems_under_test.patterns.data_replication.leader_reads import LeaderReads
from faultline.systems_under_test.patterns.data_replication.pulled_log import (
    FetchDiverged,
    FetchRequest,
    FetchResponse,
    PulledLog,
)

__all__ = ["fetch_handlers"]


def fetch_handlers(
    log: PulledLog, election: LeaderElection, clock: GenerationClock, reads: LeaderReads
) -> dict[type, Callable[[NodeId, Any], None]]:
    """The handlers of the three messages by which followers fetch, by the type of the message."""

    def handle_request(source: NodeId, request: FetchRequest) -> None:
        if request.generation > clock.generation:
            election.become_follower(request.generation, None)
        elif request.generation == clock.generation and election.role is ServerRole.LEADING:
            log.handle_fetch_request(source, request)
            reads.progress()

    def handle_response(source: NodeId, response: FetchResponse) -> None:
        if response.generation >= clock.generation:
            election.follow(response.generation, source)
            log.handle_fetch_response(source, response)

    def handle_diverged(source: NodeId, response: FetchDiverged) -> None:
        if response.generation >= clock.generation:
            election.follow(response.generation, source)
            log.handle_fetch_diverged(source, response)

    return {FetchRequest: handle_request, FetchResponse: handle_response, FetchDiverged: handle_diverged}
