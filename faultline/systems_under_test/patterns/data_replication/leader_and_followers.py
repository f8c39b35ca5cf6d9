"""Leader and Followers: one server is elected, takes all decisions, and the others follow it.

*Problem.* Quorums of reads and writes alone do not give clients one order of updates. Somebody has to choose the order;
when that server dies, somebody else has to, and never two at once with equal right.

*Idea.* (Raft's election.) Every leadership has a number, the generation. A follower that hears nothing from a leader
for a random time becomes a candidate: it raises the generation, votes for itself and asks the others. A server votes
once per generation, and only for a candidate whose log is at least as up to date as its own: first the generation of
the last entry counts, then its index. A majority of votes makes a leader, so a leader holds every committed entry.
Random timeouts make split votes rare.

Before it raises the generation, a candidate asks whether it *would* be elected (pre-vote, Ongaro's thesis 9.6). A
server that still hears its leader answers no, so one that was cut off for a while cannot depose a healthy leader by a
generation it ran up alone.

*Invariants.* LDR-I1 at most one leader per generation. LDR-I2 one vote per server and generation, over all restarts.
LDR-I3 a leader holds every entry committed before. LDR-I4 (= GEN-I1) no server's generation goes back.

*Tolerates.* Crash and restart at any instant, pauses, lost, late, repeated and reordered messages, any clocks: time
decides only when an election starts, never how it ends. A minority of servers down.

*Does not tolerate.* Loss of a majority (no leader then); a disk that loses what it called durable: (generation, vote)
would be forgotten.

*Workloads.* `register` with partitions, kills, pauses.

*Checkers.* The invariants above on every run; linearizability.

*Planted bugs.* `vote-twice` (LDR-M6): the vote of a generation is given away again.

Order of the vote rules (LDR-R6), one deviation: a server under the leader-lease read mode refuses *before* adopting the
higher generation while it knows a leader (LOG-R23), and for one election timeout after its own start (LOG-R25), because
leases are only safe if no leader can be elected inside one.

Sources: Patterns of Distributed Systems ch. 6; Ongaro and Ousterhout, "In Search of an Understandable Consensus
Algorithm" (2014) 5.2 and 5.4.1; Ongaro's thesis 4.2.3, 6.4.1, 9.6.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import TimeoutBasedFailureDetector
from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = [
    "BecameLeader",
    "CandidateSeen",
    "ElectionListener",
    "GenerationAdopted",
    "LeaderElection",
    "PreVoteRequest",
    "PreVoteResponse",
    "ServerRole",
    "SteppedDown",
    "VoteCounted",
    "VoteRequest",
    "VoteResponse",
]


class ServerRole(enum.Enum):
    """What a server is at one moment (LDR-R1)."""

    LOOKING_FOR_LEADER = "candidate"
    FOLLOWING = "follower"
    LEADING = "leader"


class VoteRequest(msgspec.Struct, frozen=True, tag="vote-request"):
    """A candidate asks for a vote in `generation`; its last entry says how far its log reaches."""

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
    """Would you vote for me in `generation`, which I have not begun yet?"""

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


class GenerationAdopted(msgspec.Struct, frozen=True):
    """Trace: this server now lives in `generation`."""

    generation: int


class CandidateSeen(msgspec.Struct, frozen=True):
    """Trace: a vote request of `candidate` arrived, so its own vote in `generation` is durable and given."""

    candidate: str
    generation: int


class VoteCounted(msgspec.Struct, frozen=True):
    """Trace: this candidate counted the vote of `voter`; it arrived, so it is durable at the voter."""

    voter: str
    generation: int


class BecameLeader(msgspec.Struct, frozen=True):
    """Trace: this server leads `generation` with a log that ends at this index and generation."""

    generation: int
    last_index: int
    last_generation: int


class SteppedDown(msgspec.Struct, frozen=True):
    """Trace: this server no longer leads `generation`."""

    generation: int


class ElectionListener(Protocol):
    """The node around the election, told about the two changes of role that matter to it."""

    def became_leader(self) -> None:
        """This server leads from now on."""

    def stepped_down(self) -> None:
        """This server leads no longer."""


class LeaderElection:
    """The election as one server takes part in it: its role, the leader it knows, its votes and its timer.

    `vote_stickiness` is the lease rule (refuse to vote while a leader is known). All methods run on the server's
    singular update queue; the timer only calls `on_timeout`, which must come back as `election_timeout`.
    """

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        log: WriteAheadLog,
        clock: GenerationClock,
        listener: ElectionListener,
        on_timeout: Callable[[], None],
        *,
        timeout_us: int,
        pre_vote: bool,
        vote_stickiness: bool,
    ) -> None:
        self.role = ServerRole.FOLLOWING
        self.leader_id: NodeId | None = None
        self._ports = ports
        self._me = ports.node_id
        self._members = members
        self._peers = tuple(member for member in members if member != ports.node_id)
        self._log = log
        self._clock = clock
        self._listener = listener
        self._on_timeout = on_timeout
        self._timeout_us = timeout_us
        self._pre_vote = pre_vote
        self._vote_stickiness = vote_stickiness
        self._detector = TimeoutBasedFailureDetector(ports.clock, timeout_us)
        self._timer: Timer | None = None
        self._votes = QuorumTracker(members)
        self._pre_vote_generation = 0
        self._sticky_until_us = ports.clock.monotonic_us() + timeout_us

    # -- the timer ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin as a follower that waits for a leader (LDR-R2, LDR-R11)."""
        self._sticky_until_us = self._ports.clock.monotonic_us() + self._timeout_us
        self._restart_timer()

    def heartbeat_received(self) -> None:
        """The leader of the current generation has spoken."""
        self._detector.heartbeat_received()

    def election_timeout(self) -> None:
        """The timer rang: look whether the leader has really been silent, and if so stand for election."""
        self._timer = None
        if self.role is ServerRole.LEADING:
            return
        remaining_us = self._detector.check()
        if remaining_us:
            self._arm(remaining_us)
        else:
            self._stand_for_election()

    def knows_leader(self) -> bool:
        """Has a leader been heard within the shortest election timeout (or is this server the leader)?"""
        if self.role is ServerRole.LEADING:
            return True
        return self.leader_id is not None and self._detector.silence_us() < self._timeout_us

    def _restart_timer(self) -> None:
        timeout_us = self._ports.random.uniform_us("election-timeout", self._timeout_us, 2 * self._timeout_us)
        self._detector.heartbeat_received()
        self._arm(self._detector.next_check_in_us(timeout_us))

    def _arm(self, delay_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._ports.timers.after(delay_us, self._on_timeout)

    # -- standing for election ----------------------------------------------------------------------------------------

    def _stand_for_election(self) -> None:
        self.role = ServerRole.LOOKING_FOR_LEADER
        self.leader_id = None
        if self._pre_vote:
            self._start_pre_vote()
        else:
            self._start_leader_election()

    def _start_pre_vote(self) -> None:
        log = self._log
        self._pre_vote_generation = self._clock.generation + 1
        self._votes = QuorumTracker(self._members)
        self._votes.record(self._me)
        self._restart_timer()
        request = PreVoteRequest(self._me, self._pre_vote_generation, log.last_index, log.last_generation)
        for peer in self._peers:
            self._ports.network.send(peer, request)

    def _start_leader_election(self) -> None:
        log = self._log
        self._pre_vote_generation = 0
        self._clock.begin_election(self._me)
        self._ports.trace.emit(GenerationAdopted(self._clock.generation))
        self._votes = QuorumTracker(self._members)
        self._votes.record(self._me)
        self._restart_timer()
        request = VoteRequest(self._me, self._clock.generation, log.last_index, log.last_generation)
        for peer in self._peers:
            self._ports.network.send(peer, request)

    def handle_pre_vote_response(self, source: NodeId, response: PreVoteResponse) -> None:
        """Count a pre-vote for the round that is on; with a majority the real election starts."""
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
        elif (
            response.granted
            and response.generation == generation
            and self.role is ServerRole.LOOKING_FOR_LEADER
            and not self._pre_vote_generation
        ):
            self._ports.trace.emit(VoteCounted(source, generation))
            self._votes.record(source)
            if self._votes.reached:
                self._become_leader()
        elif response.generation < generation:
            self._ports.trace.sometimes("old-generation-vote-ignored")

    def _become_leader(self) -> None:
        self.role = ServerRole.LEADING
        self.leader_id = self._me
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        trace = self._ports.trace
        trace.emit(BecameLeader(self._clock.generation, self._log.last_index, self._log.last_generation))
        trace.sometimes("leader-elected" if self._clock.generation == 1 else "leader-changed")
        self._listener.became_leader()

    # -- voting -------------------------------------------------------------------------------------------------------

    def handle_pre_vote_request(self, source: NodeId, request: PreVoteRequest) -> None:
        """Answer what this server would vote; nothing changes here."""
        would_vote = request.generation > self._clock.generation and self._is_up_to_date(request)
        granted = would_vote and not self.knows_leader() and not self._must_stick()
        if would_vote and not granted:
            self._ports.trace.sometimes("pre-vote-refused")
        self._ports.network.send(source, PreVoteResponse(self._me, self._clock.generation, request.generation, granted))

    def handle_vote_request(self, source: NodeId, request: VoteRequest) -> None:
        """Vote by the rules of LDR-R6, durably before the answer leaves."""
        self._ports.trace.emit(CandidateSeen(request.server_id, request.generation))
        if self._must_stick():
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
        if clock.voted_for == request.server_id:
            return True
        if not self._is_up_to_date(request):
            self._ports.trace.sometimes("vote-refused-stale-log")
            return False
        granted = clock.vote(request.generation, request.server_id)
        if granted:
            self._restart_timer()
        return granted

    def _is_up_to_date(self, request: VoteRequest | PreVoteRequest) -> bool:
        log = self._log
        if request.last_log_entry_generation != log.last_generation:
            return request.last_log_entry_generation > log.last_generation
        return request.last_log_entry_index >= log.last_index

    def _must_stick(self) -> bool:
        """Lease rule: vote for nobody while a leader may hold a lease that this server's answers gave it."""
        if not self._vote_stickiness:
            return False
        return self.role is ServerRole.LEADING or self._ports.clock.monotonic_us() < self._sticky_until_us

    # -- following ----------------------------------------------------------------------------------------------------

    def become_follower(self, generation: int, leader_id: NodeId | None) -> None:
        """Adopt `generation` when it is higher, and follow `leader_id` (None: not known yet)."""
        was_leader = self.role is ServerRole.LEADING
        if generation > self._clock.generation:
            if was_leader:
                self._ports.trace.sometimes("deposed-leader-stepped-down")
            self._clock.adopt(generation)
            self._ports.trace.emit(GenerationAdopted(generation))
        self.role = ServerRole.FOLLOWING
        self.leader_id = leader_id
        self._pre_vote_generation = 0
        if was_leader:
            self._ports.trace.emit(SteppedDown(self._clock.generation))
            self._listener.stepped_down()
        if self._timer is None or leader_id is not None:
            self._restart_timer()

    def follow(self, generation: int, leader_id: NodeId) -> None:
        """A request of the leader of `generation`, not below this server's own, arrived: follow it (LDR-R13)."""
        if leader_id == self.leader_id and generation == self._clock.generation and self.role is ServerRole.FOLLOWING:
            self._detector.heartbeat_received()
        else:
            self.become_follower(generation, leader_id)
        if self._vote_stickiness:
            # Kept apart from `leader_id`: a higher generation heard of meanwhile ends no lease that is running.
            self._sticky_until_us = self._ports.clock.monotonic_us() + self._timeout_us
