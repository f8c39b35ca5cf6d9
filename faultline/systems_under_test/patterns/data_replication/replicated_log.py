"""Replicated Log: keep the state of several servers equal by agreeing on one log and executing it in order.

*Problem.* Servers that each take updates in their own order end up different; servers that copy each other lose what
only one of them had.

*Idea.* (Raft.) The leader appends each command to its own log and sends it to the followers with the position and
generation of the entry before it. A follower whose log does not hold that entry refuses, and the leader tries again
further back; an entry that conflicts with the leader's is cut off with all that follow. So equal (index, generation)
means equal logs up to there. When an entry *of its own generation* is on a majority, the leader moves the high-water
mark, executes up to it and answers; followers learn the mark from later requests and heartbeats. A new leader appends
a no-op first, which tells it what is committed.

One request per follower carries everything outstanding (a batch), and several may be in flight (a pipeline). Numbers of
requests are matched in order; a mismatch, a lost message or a long silence makes the leader go back to the first entry
that was not acknowledged. A heartbeat is an empty request that points at what the follower *has acknowledged*, so it
can leave ahead of disk writes and is never refused for a gap.

*Invariants.* LOG-I1 the same (index, generation) means the same entry and the same log before it. LOG-I2 no two
servers execute different entries at one index. LOG-R14 the mark never moves by counting copies of an old generation's
entry. LOG-I3 a leader only appends. LOG-I5 each entry is applied once, in order, at or below the mark. LOG-I8 after a
heal everybody gets there. GEN-I2 generations along a log do not decrease. HWM-I1, HWM-I5: the mark does not move back,
nothing below it is cut off.

*Tolerates.* Lost, late, repeated and reordered messages; crashes between any two effects (acknowledgements wait for the
fsync, in the ports' outbox); followers that were away for long.

*Does not tolerate.* A majority of disks losing data. A follower that needs entries below the low-water mark gets no
entries any more: `send_snapshot` is asked to help it (snapshot installation).

*Workloads.* `register` with partitions, kills, pauses, lossy links.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `commit-old-generation` (LOG-M1), `no-previous-check` (LOG-M2), `previous-index-only` (LOG-M3),
`truncate-to-request` (LOG-M4), `no-truncate-on-conflict` (LOG-M5), `acknowledge-last-index` (LOG-M6), `unbounded-mark`
(LOG-M7), `ack-before-quorum` (LOG-M8), `ack-before-fsync` (LOG-M9), `apply-newest-first` (LOG-M14), `next-index-stuck`
(LOG-M15), `orphaned-callbacks` (LOG-M16); LOG-M10 to LOG-M13 stand with the reads that bypass the log.

Deviations from the printed code, all on the safe side (requirements, section 14): the acknowledged index is the last
one *verified by this request*, not the last one in the log; the follower's mark is bounded by it; an empty log
refuses a gap; any differing generation is a conflict, a higher one too; the hint in a refusal lets the leader go back
in one step.

Sources: Patterns of Distributed Systems ch. 9; Ongaro and Ousterhout (2014) 5.3 and 5.4.2, figures 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.followed_log import FollowedLog
from faultline.systems_under_test.patterns.data_replication.follower_handler import NO_CONTACT, FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.high_water_mark import quorum_index
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import Handlers, LeaderElection
from faultline.systems_under_test.patterns.data_replication.log_listener import LogListener, no_snapshot
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
    PipelineDeepened,
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.replication_timing import ReplicationTiming
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry, WriteAheadLog
from faultline.systems_under_test.patterns.node_communication.batch_queue import within_size
from faultline.systems_under_test.patterns.node_communication.request_pipeline import (
    OutOfOrderResponse,
    RequestPipeline,
)

__all__ = [
    "EntriesTruncated",
    "HighWaterMarkAdvanced",
    "LogListener",
    "PipelineDeepened",
    "ReplicatedLog",
    "ReplicationRequest",
    "ReplicationResponse",
    "ReplicationTiming",
]


class ReplicatedLog(FollowedLog):
    """The log as one server takes part in it; what is here is the leader's half, the follower's is `FollowedLog`.

    All methods run on the server's singular update queue.
    """

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        log: WriteAheadLog,
        clock: GenerationClock,
        listener: LogListener,
        timing: ReplicationTiming,
    ) -> None:
        super().__init__(ports, log, clock, listener)
        self.followers: dict[NodeId, FollowerHandler] = {}
        self.send_snapshot: Callable[[FollowerHandler], None] = no_snapshot
        self._peers = tuple(member for member in members if member != ports.node_id)
        self._timing = timing
        self._pipeline = self._new_pipeline()
        self._next_id = 1
        self._heartbeats_us = 0

    def handlers(self, election: LeaderElection, progressed: Callable[[], None]) -> Handlers:
        """Return the handlers of messages that only this kind of log takes, beside replication and its answers.

        `election` hears of the leaders and generations that they name, `progressed` is called when followers have
        acknowledged more.
        """
        return {}

    # -- leading ------------------------------------------------------------------------------------------------------

    @property
    def next_correlation_id(self) -> int:
        """The number the next request will have: what is acknowledged from here on was sent from now on."""
        return self._next_id

    def start_leading(self) -> None:
        """Forget what was known of the followers; assume their logs end where this one does."""
        for peer in self._peers:
            self._pipeline.reset(peer)
            self.followers[peer] = FollowerHandler(peer, self._log.last_index, self._next_id)

    def stop_leading(self) -> None:
        """Follow from now on."""
        self.followers.clear()

    def append_and_replicate(self, kind: int, data: bytes) -> int:
        """Append a command to the own log, durably, and send it to everyone with room in the pipeline; its index."""
        log = self._log
        index = log.last_index + 1
        log.append(LogEntry(index, self._clock.generation, kind, data, self._ports.clock.wall_us()))
        self._flush()
        for follower in self.followers.values():
            self._replicate(follower)
        self._advance_high_water_mark()
        return index

    def append_batch_and_replicate(self, kind: int, batch: list[bytes]) -> None:
        """The same for several commands, which share one flush and travel together."""
        log, generation, now_us = self._log, self._clock.generation, self._ports.clock.wall_us()
        for data in batch:
            log.append(LogEntry(log.last_index + 1, generation, kind, data, now_us))
        self._flush_batch(len(batch))
        for follower in self.followers.values():
            self._replicate(follower)
        self._advance_high_water_mark()

    def send_heartbeats(self) -> None:
        """Show every follower that the leader lives, ahead of disk writes: a heartbeat promises nothing new."""
        sent_us = self.stamp_us()
        self._heartbeats_us = self._ports.clock.monotonic_us()
        for follower in self.followers.values():
            # The generation of a discarded entry may be forgotten; about the place before the log everybody agrees.
            prev = follower.match_index if follower.match_index > self._log.compacted_index else 0
            self._ports.network.send_ahead(follower.id, self._request(prev, [], sent_us))

    def send_heartbeats_if_due(self) -> None:
        """The same, unless a read has just had heartbeats sent: then the next interval is soon enough."""
        if self._ports.clock.monotonic_us() - self._heartbeats_us >= self._timing.quiet_us:
            self.send_heartbeats()

    def resend_what_was_lost(self) -> None:
        """Go back for every follower that has not acknowledged anything for too long."""
        now_us = self._ports.clock.monotonic_us()
        for follower in self.followers.values():
            if self._pipeline.is_stuck(follower.id, now_us, self._timing.retransmit_us):
                self._go_back(follower)
                if self._is_heard(follower):
                    self._replicate(follower)

    def handle_replication_response(self, source: NodeId, response: ReplicationResponse) -> None:
        """Take note of an answer to a request of this leadership (the generation has been compared already)."""
        follower = self.followers.get(source)
        if follower is None:
            return
        follower.note_contact(response.correlation_id, response.sent_us)
        if not response.succeeded:
            self._handle_mismatch(follower, response)
            return
        if response.replicated_log_index > follower.match_index:
            follower.note_match(response.replicated_log_index)
            if response.replicated_log_index > self.high_water_mark.value:
                self._advance_high_water_mark()
        self._free_place(follower, response.correlation_id)
        if follower.sent_index < self._log.last_index:
            self._replicate(follower)

    def note_installed(self, source: NodeId, index: int) -> None:
        """A follower that needed discarded entries has installed a snapshot that reaches to `index`."""
        follower = self.followers.get(source)
        if follower is None:
            return
        if index > follower.match_index:
            follower.note_match(index)
        self._go_back(follower)
        self._replicate(follower)

    def quorum_contact_us(self, own_us: int) -> int | None:
        """The moment (by the clock that stamps requests) up to which a majority is known to have followed this leader.

        Counted from the *sending* of what they acknowledged; `own_us` counts for this server itself.
        """
        contact_us = quorum_index([own_us, *[follower.contact_us for follower in self.followers.values()]])
        return None if contact_us == NO_CONTACT else contact_us

    def quorum_acknowledged_id(self) -> int:
        """The highest request number such that a majority, this server included, answered it or a later one."""
        acknowledged = [follower.acknowledged_id for follower in self.followers.values()]
        acknowledged.append(self._next_id)
        return quorum_index(acknowledged)

    def _free_place(self, follower: FollowerHandler, correlation_id: int) -> None:
        try:
            self._pipeline.received(follower.id, correlation_id, self._ports.clock.monotonic_us())
        except OutOfOrderResponse:
            # An earlier request or its answer was lost on the way.
            self._go_back(follower)

    def _handle_mismatch(self, follower: FollowerHandler, response: ReplicationResponse) -> None:
        if response.correlation_id < follower.go_back_id:
            return
        follower.note_mismatch(response.replicated_log_index)
        self._go_back(follower)
        self._replicate(follower)

    def _go_back(self, follower: FollowerHandler) -> None:
        self._ports.trace.sometimes("in-flight-go-back")
        self._release_places(follower)
        follower.go_back(self._next_id)

    def _replicate(self, follower: FollowerHandler) -> None:
        """Send everything that is outstanding, in batches, while the pipeline has room."""
        log, pipeline = self._log, self._pipeline
        if follower.sent_index <= log.compacted_index and log.was_discarded_after(follower.sent_index):
            self.send_snapshot(follower)
            return
        last_index = log.last_index
        while follower.sent_index < last_index and pipeline.has_room(follower.id):
            prev = follower.sent_index
            entries = log.entries(prev + 1, self._timing.batch_entries_max)
            if len(entries) > 1:
                entries = within_size(entries, self._timing.batch_size_bytes)
            request = self._request(prev, entries, self.stamp_us())
            pipeline.sent(follower.id, request.correlation_id, self._ports.clock.monotonic_us())
            follower.sent_index = prev + len(entries)
            self._ports.network.send(follower.id, request)

    def _request(self, prev: int, entries: list[LogEntry], sent_us: int) -> ReplicationRequest:
        correlation_id = self._next_id
        self._next_id = correlation_id + 1
        return ReplicationRequest(
            self._me,
            self._clock.generation,
            correlation_id,
            sent_us,
            prev,
            self._log.generation_at(prev),
            self.high_water_mark.value,
            entries,
        )

    def _is_heard(self, follower: FollowerHandler) -> bool:
        heard_us = follower.contact_us
        return heard_us != NO_CONTACT and self.stamp_us() - heard_us < self._timing.silent_us

    def _advance_high_water_mark(self) -> None:
        """Commit what a majority stores, if its last entry is of this leader's own generation (LOG-R9, LOG-R14)."""
        index = self._committed_index()
        if index <= self.high_water_mark.value:
            return
        if not self._may_commit(index):
            self._ports.trace.sometimes("old-generation-entry-held-back")
            return
        self._advance_to(index, leading=True)

    def _note_depth(self, peer: str, in_flight: int) -> None:
        self._ports.trace.emit(PipelineDeepened(peer, in_flight, self._timing.in_flight_max))
        if in_flight > 1:
            self._ports.trace.sometimes("requests-in-flight-together")

    # -- the steps a planted bug may change ---------------------------------------------------------------------------

    def _new_pipeline(self) -> RequestPipeline:
        return RequestPipeline(self._timing.in_flight_max, self._note_depth)

    def _release_places(self, follower: FollowerHandler) -> None:
        self._pipeline.reset(follower.id)

    def _committed_index(self) -> int:
        """The highest index that is on a majority. The own copy counts: no request left before it was durable."""
        match_indexes = [follower.match_index for follower in self.followers.values()]
        match_indexes.append(self._log.last_index)
        return quorum_index(match_indexes)

    def _may_commit(self, index: int) -> bool:
        return self._log.generation_at(index) == self._clock.generation

    def stamp_us(self) -> int:
        """The time that dates requests, and so the leader's lease: monotonic, because wall clocks step."""
        return self._ports.clock.monotonic_us()
