"""Raft's election: the first server that asks a majority, with a log recent enough, becomes the leader.

*Problem.* Several servers may notice at the same time that the leader is gone. They must not wait for each other, and
must not elect two leaders.

*Idea.* A follower that hears no leader for a random time becomes a candidate: it raises the generation, votes for
itself and asks the others. A server votes once per generation, and only for a candidate whose log is at least as up to
date as its own: first the generation of the last entry counts, then its index. A majority of votes makes a leader, so a
leader holds every committed entry. Random timeouts make split votes rare.

Before it raises the generation, a candidate asks whether it *would* be elected (pre-vote, Ongaro's thesis 9.6). A
server that still hears its leader answers no, so a server that was cut off for a while cannot depose a healthy leader
by a generation that it ran up alone.

*Invariants.* LDR-I1, LDR-I2, LDR-I3, LDR-I4 (= GEN-I1), GEN-I5, as in Leader and Followers.

*Tolerates.* Crash and restart at any instant, pauses, lost, late, repeated and reordered messages, any clocks.

*Does not tolerate.* A disk that loses a vote. Without pre-vote, a server with a one-way connection deposes healthy
leaders again and again: this costs time, but no safety.

*Workloads.* `register` with partitions, kills, pauses.

*Checkers.* The invariants above on every run; linearizability.

*Planted bugs.* `vote-twice` (LDR-M6): the vote of a generation is given a second time. `vote-for-any-log` (LDR-M3),
`half-elects-leader` (LDR-M4). In the tests: the index alone counts (LDR-M2), any vote counts (LDR-M5), all servers use
the same election timeout (LDR-M8).

Order of the vote rules (LDR-R6), one deviation: a server under the leader-lease read mode refuses *before* adopting the
higher generation while it knows a leader (LOG-R23), and for one election timeout after its own start (LOG-R25), because
leases are only safe if no leader can be elected inside one.

Sources: Patterns of Distributed Systems ch. 6; Ongaro and Ousterhout, "In Search of an Understandable Consensus
Algorithm" (2014) 5.2 and 5.4.1; Ongaro's thesis 4.2.3, 6.4.1, 9.6.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    CandidateSeen,
    ElectionContext,
    GenerationAdopted,
    Handlers,
    LeaderElection,
    ServerRole,
    VoteCounted,
)
from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker

__all__ = ["PreVoteRequest", "PreVoteResponse", "RaftElection", "VoteRequest", "VoteResponse"]


class VoteRequest(msgspec.Struct, frozen=True, tag="vote-request"):
    """The request of a candidate for a vote in `generation`; its last entry shows how far its log reaches."""

    server_id: str
    generation: int
    last_log_entry_index: int
    last_log_entry_generation: int


class VoteResponse(msgspec.Struct, frozen=True, tag="vote-response"):
    """The answer of `server_id`, whose generation it carries."""

    server_id: str
    generation: int
    granted: bool


class PreVoteRequest(msgspec.Struct, frozen=True, tag="pre-vote-request"):
    """The question whether the receiver would vote for `server_id` in `generation`, which has not begun yet."""

    server_id: str
    generation: int
    last_log_entry_index: int
    last_log_entry_generation: int


class PreVoteResponse(msgspec.Struct, frozen=True, tag="pre-vote-response"):
    """The answer; `proposed_generation` is the one asked about, `generation` the voter's own."""

    server_id: str
    generation: int
    proposed_generation: int
    granted: bool


class RaftElection(LeaderElection):
    """One server's part in Raft's election; with `pre_vote` off every timeout is a real election at once."""

    def __init__(self, context: ElectionContext, *, pre_vote: bool) -> None:
        super().__init__(context)
        self._pre_vote = pre_vote
        self._votes = QuorumTracker(self._members)
        self._pre_vote_generation = 0

    def handlers(self) -> Handlers:
        """Return the handlers of votes and pre-votes, of requests and answers."""
        return {
            VoteRequest: self.handle_vote_request,
            VoteResponse: self.handle_vote_response,
            PreVoteRequest: self.handle_pre_vote_request,
            PreVoteResponse: self.handle_pre_vote_response,
        }

    def _leader_is_silent(self) -> None:
        self.role = ServerRole.LOOKING_FOR_LEADER
        self.leader_id = None
        if self._pre_vote:
            self._start_pre_vote()
        else:
            self._start_leader_election()

    def _start_pre_vote(self) -> None:
        log = self._log
        self._pre_vote_generation = self._clock.generation + 1
        self._begin_count()
        if self._votes.reached:
            self._start_leader_election()
            return
        request = PreVoteRequest(self._me, self._pre_vote_generation, log.last_index, log.last_generation)
        for peer in self._peers:
            self._ports.network.send(peer, request)

    def _start_leader_election(self) -> None:
        log = self._log
        self._pre_vote_generation = 0
        self._clock.begin_election(self._me)
        self._ports.trace.emit(GenerationAdopted(self._clock.generation))
        self._begin_count()
        if self._votes.reached:
            # The only server of the cluster: its own vote is a majority, but counts once it is on the disk. In larger
            # clusters no answer comes before that. Like every message, this one leaves when the flush is done.
            self._ports.network.send(self._me, VoteResponse(self._me, self._clock.generation, True))
            return
        request = VoteRequest(self._me, self._clock.generation, log.last_index, log.last_generation)
        for peer in self._peers:
            self._ports.network.send(peer, request)

    def _begin_count(self) -> None:
        self._votes = self._new_tracker()
        self._votes.record(self._me)
        self._restart_timer()

    def handle_pre_vote_response(self, source: NodeId, response: PreVoteResponse) -> None:
        """Count a pre-vote for the present round; with a majority the real election starts."""
        if response.generation > self._clock.generation:
            self.become_follower(response.generation, None)
        elif (
            response.granted
            and self.role is ServerRole.LOOKING_FOR_LEADER
            and response.proposed_generation == self._pre_vote_generation == self._clock.generation + 1
        ):
            self._votes.record(source)
            if self._votes.reached:
                self._start_leader_election()

    def handle_vote_response(self, source: NodeId, response: VoteResponse) -> None:
        """Count a vote of the current generation, once per server; a majority makes this server the leader (LDR-R9)."""
        generation = self._clock.generation
        if response.generation > generation:
            self.become_follower(response.generation, None)
        elif response.granted and self._counts(response):
            self._ports.trace.emit(VoteCounted(source, response.generation))
            self._votes.record(source)
            if self._votes.reached:
                self._become_leader()
        elif response.generation < generation:
            self._ports.trace.sometimes("old-generation-vote-ignored")

    def _forget_candidacy(self) -> None:
        self._pre_vote_generation = 0

    def handle_pre_vote_request(self, source: NodeId, request: PreVoteRequest) -> None:
        """Answer how this server would vote, without a change of state."""
        # Not adopted and not written down: a pre-vote must leave no trace, or it could depose a leader like a real one.
        would_vote = request.generation > self._clock.generation and self._is_up_to_date(request)
        granted = would_vote and not self.knows_leader() and not self._must_stick()
        if would_vote and not granted:
            self._ports.trace.sometimes("pre-vote-refused")
        self._ports.network.send(source, PreVoteResponse(self._me, self._clock.generation, request.generation, granted))

    def handle_vote_request(self, source: NodeId, request: VoteRequest) -> None:
        """Vote by the rules of LDR-R6, durably before the answer leaves."""
        self._ports.trace.emit(CandidateSeen(request.server_id, request.generation))
        if self._must_stick():
            # The generation is not adopted either: adopting it would depose the leader that may hold the lease.
            self._ports.trace.sometimes("vote-refused-leader-known")
            granted = False
        else:
            if request.generation > self._clock.generation:
                self.become_follower(request.generation, None)
            granted = self._grants(request)
        self._ports.network.send(source, VoteResponse(self._me, self._clock.generation, granted))

    def _grants(self, request: VoteRequest) -> bool:
        clock = self._clock
        if request.generation != clock.generation or self.role is ServerRole.LEADING:
            return False
        # A repeated request: the first answer may have been lost, and the vote is the same.
        if clock.voted_for == request.server_id:
            return True
        if not self._is_up_to_date(request):
            self._ports.trace.sometimes("vote-refused-stale-log")
            return False
        # Durable in the clock before the answer leaves: a restart must not vote again in this generation.
        granted = clock.vote(request.generation, request.server_id)
        if granted:
            self._restart_timer()
        return granted

    # Each step below is a method of its own, so that a planted bug can override it.

    def _new_tracker(self) -> QuorumTracker:
        """Return a counter of the votes of one election: each server once, and a majority of all configured ones."""
        return QuorumTracker(self._members)

    def _counts(self, response: VoteResponse) -> bool:
        """Return whether this vote belongs to the present election."""
        return (
            response.generation == self._clock.generation
            and self.role is ServerRole.LOOKING_FOR_LEADER
            and not self._pre_vote_generation
        )

    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        """Return whether the candidate's log reaches at least as far: generation before index (LDR-R7)."""
        log = self._log
        if request.last_log_entry_generation != log.last_generation:
            return request.last_log_entry_generation > log.last_generation
        return request.last_log_entry_index >= log.last_index
