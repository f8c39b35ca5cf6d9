"""Replicated Log: keep the state of several servers equal by agreeing on one log and executing it in order.

*Problem.* Servers that each take updates in their own order end up different. Servers that copy each other lose an
update that only one of them had.

*Idea.* (Raft.) The leader appends each command to its own log and sends it to the followers with the position and
generation of the entry before it. A follower whose log does not hold that entry refuses, and the leader tries again
further back. A follower removes an entry that conflicts with the leader's, and all that follow it. So two logs with an
entry of the same (index, generation) are equal up to that entry. When an entry *of its own generation* is on a
majority, the leader moves the high-water mark, executes up to it and answers; followers learn the mark from later
requests and heartbeats. A new leader appends a no-op first, by which it learns which entries are committed.

One request per follower carries all outstanding entries (a batch), and several may be in flight (a pipeline). Numbers
of requests are matched in order; a mismatch, a lost message or a long silence makes the leader go back to the first
entry that was not acknowledged. A heartbeat is an empty request that points at what the follower *has acknowledged*, so
it can leave ahead of disk writes and is never refused for a gap.

*Invariants.* LOG-I1 if two logs have an entry with the same (index, generation), the entry and all entries before it
are the same. LOG-I2 no two servers execute different entries at one index. LOG-R14 the high-water mark never advances
by counting the copies of an old generation's entry. LOG-I3 a leader only appends. LOG-I5 each entry is applied once, in
order, and none above the mark. LOG-I8 after a heal all servers reach the same log. GEN-I2 generations along a log do
not decrease. HWM-I1 the mark does not move back. HWM-I5 no entry at or below the mark is removed.

*Tolerates.* Lost, late, repeated and reordered messages; crashes between any two effects (acknowledgements wait for the
fsync, in the ports' outbox); followers that were disconnected for long.

*Does not tolerate.* A majority of disks losing data. A follower that needs entries below the low-water mark gets no
more entries: `send_snapshot` is called for it (snapshot installation).

*Workloads.* `register` with partitions, kills, pauses, lossy links.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `commit-old-generation` (LOG-M1), `no-previous-check` (LOG-M2), `previous-index-only` (LOG-M3),
`truncate-to-request` (LOG-M4), `no-truncate-on-conflict` (LOG-M5), `acknowledge-last-index` (LOG-M6), `unbounded-mark`
(LOG-M7), `ack-before-quorum` (LOG-M8), `ack-before-fsync` (LOG-M9), `apply-newest-first` (LOG-M14), `next-index-stuck`
(LOG-M15), `orphaned-callbacks` (LOG-M16); LOG-M10 to LOG-M13 are in the module of the reads that bypass the log.

Deviations from the printed code, all on the safe side (requirements, section 14): the acknowledged index is the last
one *verified by this request*, not the last one in the log; the follower's mark is bounded by it; an empty log
refuses a gap; any differing generation is a conflict, a higher one too; the hint in a refusal lets the leader go back
in one step.

Sources: Patterns of Distributed Systems ch. 9; Ongaro and Ousterhout (2014) 5.3 and 5.4.2, figures 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.followed_log import FollowedLog, LogListener
from faultline.systems_under_test.patterns.data_replication.follower_handler import NO_CONTACT, FollowerHandler
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.high_water_mark import quorum_index
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import Handlers, LeaderElection
from faultline.systems_under_test.patterns.data_replication.replication_messages import (
    EntriesTruncated,
    HighWaterMarkAdvanced,
    PipelineDeepened,
    ReplicationRequest,
    ReplicationResponse,
)
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


class ReplicationTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes and times of replication: entries and bytes per request, and requests in flight.

    Requests without an answer are sent again after `retransmit_us`. After `silent_us` a follower counts as silent and
    gets heartbeats only. For `quiet_us` after heartbeats no others are due.
    """

    batch_entries_max: int
    batch_size_bytes: int
    in_flight_max: int
    retransmit_us: int
    silent_us: int
    quiet_us: int


class ReplicatedLog(FollowedLog):
    """The log as one server takes part in it: this is the leader's half, `FollowedLog` the follower's.

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
        self.send_snapshot: Callable[[FollowerHandler], None] = _no_snapshot
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

    @property
    def next_correlation_id(self) -> int:
        """The number of the next request: a response with this number or a higher one is to a request sent from now
        on.
        """
        return self._next_id

    def start_leading(self) -> None:
        """Forget the earlier state of the followers, and assume that their logs end where this one does."""
        for peer in self._peers:
            # The guess is corrected by refusals. What is known to be stored starts at 0, since only an answer proves
            # it.
            self._pipeline.reset(peer)
            self.followers[peer] = FollowerHandler(peer, self._log.last_index, self._next_id)

    def stop_leading(self) -> None:
        """Follow from now on."""
        self.followers.clear()

    def append_and_replicate(self, kind: int, data: bytes) -> int:
        """Append a command durably, send it to each follower with room in the pipeline, and return its index."""
        log = self._log
        index = log.last_index + 1
        log.append(LogEntry(index, self._clock.generation, kind, data, self._ports.clock.wall_us()))
        self._flush()
        for follower in self.followers.values():
            self._replicate(follower)
        self._advance_high_water_mark()
        return index

    def append_batch_and_replicate(self, kind: int, batch: list[bytes]) -> None:
        """Append and send several commands, which share one flush and travel together."""
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
            # The generation of a discarded entry may be forgotten; the place before the log is the same for all.
            prev = follower.match_index if follower.match_index > self._log.compacted_index else 0
            self._ports.network.send_ahead(follower.id, self._request(prev, [], sent_us))

    def send_heartbeats_if_due(self) -> None:
        """Send heartbeats, unless a read has just caused some: then the next interval is soon enough."""
        if self._ports.clock.monotonic_us() - self._heartbeats_us >= self._timing.quiet_us:
            self.send_heartbeats()

    def resend_what_was_lost(self) -> None:
        """Go back for every follower that has not acknowledged a request for too long."""
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
        # Answers come in any order; what a follower stores never shrinks within a leadership.
        if response.replicated_log_index > follower.match_index:
            follower.note_match(response.replicated_log_index)
            if response.replicated_log_index > self.high_water_mark.value:
                self._advance_high_water_mark()
        self._free_place(follower, response.correlation_id)
        if follower.sent_index < self._log.last_index:
            self._replicate(follower)

    def note_installed(self, source: NodeId, index: int) -> None:
        """Go on behind `index` for a follower that has installed a snapshot up to it."""
        follower = self.followers.get(source)
        if follower is None:
            return
        if index > follower.match_index:
            follower.note_match(index)
        self._go_back(follower)
        self._replicate(follower)

    def quorum_contact_us(self, own_us: int) -> int | None:
        """Return the moment up to which a majority is known to have followed, by the clock that stamps requests.

        It is the *sending* of the requests that they acknowledged; `own_us` counts for this server itself. None when no
        majority has answered.
        """
        contact_us = quorum_index([own_us, *[follower.contact_us for follower in self.followers.values()]])
        return None if contact_us == NO_CONTACT else contact_us

    def quorum_acknowledged_id(self) -> int:
        """Return the highest request number such that a majority, this server included, answered it or a later one."""
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
        # The leader went back after that request already; going back for each refusal in flight would never end.
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
        """Send the outstanding entries, in batches, while the pipeline has room."""
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
        """Commit the entries that a majority stores, if the last is of this leader's own generation (LOG-R9,
        LOG-R14).
        """
        index = self._committed_index()
        if index <= self.high_water_mark.value:
            return
        # A majority that stores an entry of an older generation can still be outvoted by a leader with a newer log
        # (Raft, figure 8). An entry of the own generation commits all before it.
        if not self._may_commit(index):
            self._ports.trace.sometimes("old-generation-entry-held-back")
            return
        self._advance_to(index, leading=True)

    def _note_depth(self, peer: str, in_flight: int) -> None:
        self._ports.trace.emit(PipelineDeepened(peer, in_flight, self._timing.in_flight_max))
        if in_flight > 1:
            self._ports.trace.sometimes("requests-in-flight-together")

    # Each step below is a method of its own, so that a planted bug can override it.

    def _new_pipeline(self) -> RequestPipeline:
        return RequestPipeline(self._timing.in_flight_max, self._note_depth)

    def _release_places(self, follower: FollowerHandler) -> None:
        self._pipeline.reset(follower.id)

    def _committed_index(self) -> int:
        """Return the highest index that is on a majority.

        The own copy counts: no request left before it was durable.
        """
        match_indexes = [follower.match_index for follower in self.followers.values()]
        match_indexes.append(self._log.last_index)
        return quorum_index(match_indexes)

    def _may_commit(self, index: int) -> bool:
        return self._log.generation_at(index) == self._clock.generation

    def stamp_us(self) -> int:
        """Return the time that dates requests, and so the leader's lease: monotonic, because wall clocks step."""
        return self._ports.clock.monotonic_us()


def _no_snapshot(follower: FollowerHandler) -> None:
    """Fail: a log without snapshots discards no entries, so no follower can need one."""
    raise AssertionError(f"{follower.id} needs entries that were discarded, and no snapshots were set up")
