"""Pulled log: the replicated log whose followers fetch entries. Each fetch acknowledges the entries before it.

*Problem.* A leader that pushes entries keeps a record of every follower: the next entry it needs, the requests in
flight, the place to go back to. With many followers, or with consumers that read the same log, it is simpler if each
server that lacks entries asks for them.

*Idea.* (Kafka's replication.) A follower asks for the entries after its last one, and names that entry's index and
generation. If the leader has the same entry there, the request itself acknowledges all entries up to it: the leader
raises the follower's match index, and with it the high-water mark. The answer brings entries and the mark. Without new
entries, the leader keeps the request until it has some, or until the mark has advanced.

If the logs differ there, the leader names its last entry whose generation is not above the follower's: all entries
behind that place differ. The follower cuts off the entries behind it, and behind its own last entry of that generation,
and fetches again. Each round removes at least one entry, and none that both have.

Elections and heartbeats are those of the pushed log: heartbeats make the leader known, date its lease, and make a
follower fetch again whose request or answer was lost.

*Invariants.* Those of the replicated log. Besides: a follower has one fetch open at most, and never fetches beyond the
entries that it has made durable.

*Tolerates.* Lost, late and repeated requests and answers: an answer is applied only where it continues the log, and a
divergence only to the log that was asked about.

*Does not tolerate.* Requests of another generation than the leader's: the fetch offset acknowledges only entries of a
follower that follows this leader. They are dropped, and the next heartbeat makes the follower fetch again.

*Workloads.* `register`, `append` with partitions, kills, pauses, lossy links (option `replication=pull`).

*Checkers.* Linearizability; LOG-I1, LOG-I2, LOG-R14, HWM-I1, HWM-I5.

*Planted bugs.* Those of the replicated log that do not concern the push itself can be switched on here as well.

Sources: Patterns of Distributed Systems ch. 9 ("push versus pull"); Kafka's replication protocol, KIP-101 and KIP-279
on truncation by leader epoch, KIP-595 on fetching in a Raft quorum.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    Handlers,
    LeaderElection,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    LogListener,
    ReplicatedLog,
    ReplicationTiming,
)
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import (
    COMPACTED,
    LogEntry,
    WriteAheadLog,
)
from faultline.systems_under_test.patterns.node_communication.batch_queue import within_size

__all__ = ["FetchDiverged", "FetchRequest", "FetchResponse", "PulledLog"]


class FetchRequest(msgspec.Struct, frozen=True, tag="fetch-request"):
    """A follower has all entries up to (`after_index`, `after_generation`), durably, and asks for those that follow."""

    server_id: str
    generation: int
    correlation_id: int
    after_index: int
    after_generation: int
    high_water_mark: int


class FetchResponse(msgspec.Struct, frozen=True, tag="fetch-response"):
    """Entries that follow (`after_index`, `after_generation`), and the mark; one of the two is new."""

    leader_id: str
    generation: int
    correlation_id: int
    after_index: int
    after_generation: int
    entries: list[LogEntry]
    high_water_mark: int


class FetchDiverged(msgspec.Struct, frozen=True, tag="fetch-diverged"):
    """The leader has no entry (`after_index`, `after_generation`), and in this generation never will.

    Its last entry whose generation is not higher stands at `index`, with `entry_generation`.
    """

    leader_id: str
    generation: int
    after_index: int
    after_generation: int
    index: int
    entry_generation: int


class PulledLog(ReplicatedLog):
    """A replicated log whose followers fetch; chosen by the option `replication=pull`."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        log: WriteAheadLog,
        clock: GenerationClock,
        listener: LogListener,
        timing: ReplicationTiming,
    ) -> None:
        super().__init__(ports, members, log, clock, listener, timing)
        self._parked: dict[NodeId, FetchRequest] = {}
        self._open: FetchRequest | None = None
        self._fetched_us = 0

    def handlers(self, election: LeaderElection, progressed: Callable[[], None]) -> Handlers:
        """Return the handlers of the three messages by which followers fetch.

        A fetch counts only in the generation of the leader that takes it, an answer only if its leader is not an old
        one.
        """
        clock = self._clock

        def handle_request(source: NodeId, request: FetchRequest) -> None:
            if request.generation > clock.generation:
                election.become_follower(request.generation, None)
            elif request.generation == clock.generation and election.role is ServerRole.LEADING:
                self.handle_fetch_request(source, request)
                progressed()

        def handle_response(source: NodeId, response: FetchResponse) -> None:
            if response.generation >= clock.generation:
                election.follow(response.generation, source)
                self.handle_fetch_response(source, response)

        def handle_diverged(source: NodeId, response: FetchDiverged) -> None:
            if response.generation >= clock.generation:
                election.follow(response.generation, source)
                self.handle_fetch_diverged(source, response)

        return {FetchRequest: handle_request, FetchResponse: handle_response, FetchDiverged: handle_diverged}

    def start_leading(self) -> None:
        """Begin without parked requests: no follower has fetched from this leader yet."""
        super().start_leading()
        self._parked.clear()

    def stop_leading(self) -> None:
        """Leave parked requests unanswered; the next leader's heartbeat makes the followers ask again."""
        super().stop_leading()
        self._parked.clear()

    def handle_fetch_request(self, source: NodeId, request: FetchRequest) -> None:
        """Record the entries of the follower, and answer or park the request (the generation has been compared
        already).
        """
        follower = self.followers.get(source)
        if follower is None:
            return
        if self._log.was_discarded_after(request.after_index):
            self.send_snapshot(follower)
            return
        # Compared before it counts: an index alone would acknowledge entries that this leader never had.
        if self._log.generation_at(request.after_index) != request.after_generation:
            self._tell_divergence(follower, request)
            return
        if request.after_index > follower.match_index:
            follower.note_match(request.after_index)
            if request.after_index > self.high_water_mark.value:
                self._advance_high_water_mark()
        self._parked[source] = request
        if self._has_news_for(request):
            self._replicate(follower)

    def handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        """Record the answer to a heartbeat; the entries of a follower are known from its fetches."""
        follower = self.followers.get(source)
        if follower is not None:
            follower.note_contact(response.correlation_id, response.sent_us)

    def resend_what_was_lost(self) -> None:
        """Do nothing: followers ask again by themselves."""

    def _has_news_for(self, request: FetchRequest) -> bool:
        return request.after_index < self._log.last_index or request.high_water_mark < self.high_water_mark.value

    def _replicate(self, follower: FollowerHandler) -> None:
        """Answer the fetch of this follower, if one is parked."""
        request = self._parked.pop(follower.id, None)
        if request is None:
            return
        entries = within_size(
            self._log.entries(request.after_index + 1, self._timing.batch_entries_max), self._timing.batch_size_bytes
        )
        response = FetchResponse(
            self._me,
            self._clock.generation,
            request.correlation_id,
            request.after_index,
            request.after_generation,
            entries,
            self.high_water_mark.value,
        )
        self._ports.network.send(follower.id, response)

    def _advance_high_water_mark(self) -> None:
        before = self.high_water_mark.value
        super()._advance_high_water_mark()
        if self.high_water_mark.value > before:
            for follower in self.followers.values():
                self._replicate(follower)

    def _tell_divergence(self, follower: FollowerHandler, request: FetchRequest) -> None:
        self._ports.trace.sometimes("fetch-diverged")
        index = self._last_index_up_to(request.after_generation)
        entry_generation = self._log.generation_at(index)
        if entry_generation == COMPACTED:
            # The logs part below what this one still holds: only a snapshot is sure to agree with both.
            self.send_snapshot(follower)
            return
        after = request.after_index, request.after_generation
        self._ports.network.send(
            follower.id, FetchDiverged(self._me, self._clock.generation, *after, index, entry_generation)
        )

    def handle_replication_request(self, source: NodeId, request: ReplicationRequest) -> None:
        """Answer the heartbeat, and fetch if no request is open or its answer is overdue."""
        super().handle_replication_request(source, request)
        if self._open is None or self._open.generation != self._clock.generation or self._is_overdue():
            self._fetch(source)

    def handle_fetch_response(self, source: NodeId, response: FetchResponse) -> None:
        """Append the entries that continue this log, move the mark, and ask for more."""
        log = self._log
        if log.generation_at(response.after_index) == response.after_generation:
            verified = response.after_index + len(response.entries)
            if response.entries and self._append_missing(response.entries):
                self._flush_batch(len(response.entries))
            self._advance_to(self._mark_to_follow(response.high_water_mark, verified), leading=False)
        if self._open is not None and self._open.correlation_id == response.correlation_id:
            self._fetch(source)

    def handle_fetch_diverged(self, source: NodeId, response: FetchDiverged) -> None:
        """Cut off the entries that cannot be in the leader's log, durably, and ask again (HWM-R9).

        This is judged by the end of the log, not by the number of the request: numbers begin anew when a server
        restarts, and a late divergence taken for the answer to a later fetch would cut off entries that were
        acknowledged.
        """
        log = self._log
        if (response.after_index, response.after_generation) != (log.last_index, log.last_generation):
            return
        common = min(response.index, self._last_index_up_to(response.entry_generation))
        if self._truncate(common + 1):
            self._flush()
        self._fetch(source)

    def _fetch(self, leader: NodeId) -> None:
        log = self._log
        self._open = request = FetchRequest(
            self._me,
            self._clock.generation,
            self._next_id,
            log.last_index,
            log.last_generation,
            self.high_water_mark.value,
        )
        self._next_id += 1
        self._fetched_us = self._ports.clock.monotonic_us()
        self._ports.network.send(leader, request)

    def _is_overdue(self) -> bool:
        return self._ports.clock.monotonic_us() - self._fetched_us > self._timing.retransmit_us

    def _last_index_up_to(self, generation: int) -> int:
        """Return the index of the last entry whose generation is at most `generation`; they ascend along a log."""
        index = self._log.last_index
        while index and self._log.generation_at(index) > generation:
            index -= 1
        return index
