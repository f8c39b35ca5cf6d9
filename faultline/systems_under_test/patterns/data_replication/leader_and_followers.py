"""Leader and Followers: one server is elected, takes all decisions, and the others follow it.

*Problem.* Quorums of reads and writes alone do not give clients one order of updates. One server has to choose the
order. When it dies, another server has to, and two servers must never do so at the same time with equal right.

*Idea.* Every leadership has a number, the generation, higher than all before it. A server leads a generation only when
a majority has promised it that generation, durably and to no other server, and only when no member of that majority has
a log that reaches further than its own, or when it has collected their entries. Any two majorities share a server, so
a generation has one leader, and the leader holds every committed entry. Four styles answer the open questions: which
server may try to lead, and when.

| style | module | who becomes leader | who raises the generation |
|---|---|---|---|
| `raft` | `raft_election` | the first that asks a majority with a log recent enough | every candidate |
| `zab` | `zab_election` | the most recent log, then the highest id: all servers compute the same | the winner only |
| `collecting` | `collecting_election` | the first that asks a majority, whose entries it collects | every candidate |
| `external-store` | `external_store_election` | the first to create a key in a linearizable store | the store |

The first three suit three or five servers, which know each other. With an external store servers need to know only the
store, so that thousands can choose a leader (LDR-R17).

This module holds the common part of the styles: the roles, the known leader, the timer that notices its silence, the
changes from one role to the next, and the reports to the harness.

*Invariants.* LDR-I1 a generation has at most one leader. LDR-I2 a server votes once in a generation, also across
restarts. LDR-I3 a leader holds every entry that was committed in earlier generations. LDR-I4 (= GEN-I1) no server's
generation decreases. LDR-I5 only a leader acknowledges a command. LDR-I6 while a majority is in contact, a leader is
elected within a few election timeouts.

*Tolerates.* Crash and restart at any instant, pauses, lost, late, repeated and reordered messages, any clocks: time
decides only when an election starts, never how it ends. A minority of servers that is down.

*Does not tolerate.* Loss of a majority: then there is no leader. A disk that loses data which it reported as durable:
the server would forget its generation and its vote.

*Workloads.* `register` with partitions, kills, pauses.

*Checkers.* The invariants above on every run; linearizability.

*Planted bugs.* In any style `stale-read` (LDR-M7); the module of each style names the others.

Sources: Patterns of Distributed Systems ch. 6; Ongaro and Ousterhout, "In Search of an Understandable Consensus
Algorithm" (2014) 5.2 and 5.4.1.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import FailureDetector

__all__ = [
    "BecameLeader",
    "CandidateSeen",
    "ElectedLog",
    "ElectionContext",
    "ElectionListener",
    "ElectionTiming",
    "GenerationAdopted",
    "Handlers",
    "LeaderElection",
    "LeaderSuspected",
    "OldGenerationFollowed",
    "ServerRole",
    "SteppedDown",
    "VoteCounted",
]

Handlers = Mapping[type, Callable[[NodeId, Any], None]]
"""The handler of each type of message."""


class ServerRole(enum.Enum):
    """The role of a server at one moment (LDR-R1)."""

    LOOKING_FOR_LEADER = "candidate"
    FOLLOWING = "follower"
    LEADING = "leader"


class GenerationAdopted(msgspec.Struct, frozen=True):
    """Trace: this server adopted `generation`."""

    generation: int


class CandidateSeen(msgspec.Struct, frozen=True):
    """Trace: a vote request of `candidate` arrived, so the candidate's vote for itself in `generation` is durable."""

    candidate: str
    generation: int


class VoteCounted(msgspec.Struct, frozen=True):
    """Trace: this candidate counted the vote of `voter`, which is durable at the voter because it arrived."""

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


class LeaderSuspected(msgspec.Struct, frozen=True):
    """Trace: no leader was heard for `silence_us`; the detector had promised to wait for `timeout_us` at least."""

    silence_us: int
    timeout_us: int


class OldGenerationFollowed(msgspec.Struct, frozen=True):
    """Trace: a request of `generation` was accepted by a server of the higher `own_generation`."""

    generation: int
    own_generation: int


class ElectionListener(Protocol):
    """The node around the election, which is told when it becomes the leader and when it stops being it."""

    def became_leader(self) -> None:
        """Begin the work of a leader."""

    def stepped_down(self) -> None:
        """End the work of a leader."""


class ElectedLog(Protocol):
    """The log as an election sees it: its end decides who may lead."""

    @property
    def last_index(self) -> int:
        """The index of the newest entry."""

    @property
    def last_generation(self) -> int:
        """The generation of the newest entry."""


class ElectionTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The shortest silence of a leader that starts an election, and the interval at which unanswered messages are
    repeated.

    `vote_stickiness` is the lease rule: promise no vote to a new leader while an old one may hold a lease.
    `silence_us_min` is the silence before which the failure detector promises not to suspect the leader.
    """

    timeout_us: int
    interval_us: int
    vote_stickiness: bool = False
    silence_us_min: int = 0


@dataclass(frozen=True, slots=True)
class ElectionContext:
    """The objects that the election at one server works with.

    `on_timeout` must lead to a call of `election_timeout` from the server's queue.
    """

    ports: Ports
    members: tuple[NodeId, ...]
    log: ElectedLog
    clock: GenerationClock
    listener: ElectionListener
    on_timeout: Callable[[], None]
    timing: ElectionTiming
    detector: FailureDetector


class LeaderElection(ABC):
    """The election as one server takes part in it: its role, the leader it knows, and its timer.

    A style says in `_leader_is_silent` what happens when no leader is heard, and in `handlers` which messages it takes.
    All methods run on the server's singular update queue (LDR-R18).
    """

    def __init__(self, context: ElectionContext) -> None:
        self.role = ServerRole.FOLLOWING
        self.leader_id: NodeId | None = None
        self._ports = context.ports
        self._me = context.ports.node_id
        self._members = context.members
        self._peers = tuple(member for member in context.members if member != self._me)
        self._log = context.log
        self._clock = context.clock
        self._listener = context.listener
        self._on_timeout = context.on_timeout
        self._timeout_us = context.timing.timeout_us
        self._interval_us = context.timing.interval_us
        self._vote_stickiness = context.timing.vote_stickiness
        self._silence_us_min = context.timing.silence_us_min
        self._detector = context.detector
        self._timer: Timer | None = None
        self._heard_us = self._ports.clock.monotonic_us()
        self._sticky_until_us = self._heard_us + self._timeout_us

    @abstractmethod
    def handlers(self) -> Handlers:
        """Return the messages of this style of election, with their handlers."""

    @abstractmethod
    def _leader_is_silent(self) -> None:
        """Look for a new leader, because none was heard for the whole timeout."""

    def _forget_candidacy(self) -> None:  # noqa: B027  # a hook: not every style has a candidacy
        """Drop the state of this server's own attempt to lead: it follows from now on."""

    def start(self) -> None:
        """Begin as a follower that waits for a leader (LDR-R2, LDR-R11)."""
        self._sticky_until_us = self._ports.clock.monotonic_us() + self._timeout_us
        self._restart_timer()

    def election_timeout(self) -> None:
        """Check whether the leader has really been silent, and if so look for another (LDR-R10); the timer calls it."""
        self._timer = None
        if self.role is ServerRole.LEADING:
            return
        remaining_us = self._detector.check()
        if remaining_us:
            self._arm(remaining_us)
        else:
            silence_us = self._ports.clock.monotonic_us() - self._heard_us
            self._ports.trace.emit(LeaderSuspected(silence_us, self._silence_us_min))
            self._leader_is_silent()

    def knows_leader(self) -> bool:
        """Return whether a leader was heard within the shortest election timeout, or is this server."""
        if self.role is ServerRole.LEADING:
            return True
        return self.leader_id is not None and self._detector.silence_us() < self._timeout_us

    def _restart_timer(self) -> None:
        self._arm(self._detector.restart(self._draw_timeout_us()))

    def _draw_timeout_us(self) -> int:
        """Return a new random timeout, so that servers rarely stand for election in the same instant (LDR-R11)."""
        return self._ports.random.uniform_us("election-timeout", self._timeout_us, 2 * self._timeout_us)

    def _arm(self, delay_us: int) -> None:
        self._cancel_timer()
        self._timer = self._ports.timers.after(delay_us, self._on_timeout)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _become_leader(self) -> None:
        self.role = ServerRole.LEADING
        self.leader_id = self._me
        self._cancel_timer()
        trace = self._ports.trace
        trace.emit(BecameLeader(self._clock.generation, self._log.last_index, self._log.last_generation))
        trace.sometimes("leader-elected" if self._clock.generation == 1 else "leader-changed")
        self._listener.became_leader()

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
        self._forget_candidacy()
        if was_leader:
            self._ports.trace.emit(SteppedDown(self._clock.generation))
            self._listener.stepped_down()
        # A higher generation alone does not restart a running timer: candidates that cannot win could otherwise keep
        # this server from ever standing for election.
        if self._timer is None or leader_id is not None:
            self._restart_timer()

    def follow(self, generation: int, leader_id: NodeId) -> None:
        """Follow the leader of `generation`, which is not below this server's own and has sent a request (LDR-R13)."""
        if leader_id == self.leader_id and generation == self._clock.generation and self.role is ServerRole.FOLLOWING:
            self._detector.heartbeat_received()
        else:
            if generation < self._clock.generation:
                self._ports.trace.emit(OldGenerationFollowed(generation, self._clock.generation))
            self.become_follower(generation, leader_id)
        self._heard_us = self._ports.clock.monotonic_us()
        # Kept apart from `leader_id`: a higher generation that was heard of meanwhile does not end a running lease.
        self._sticky_until_us = self._heard_us + self._timeout_us

    def _must_stick(self) -> bool:
        """Return whether the lease rule forbids a vote: this server's answers may have given a leader a lease that
        still runs.
        """
        if not self._vote_stickiness:
            return False
        return self.role is ServerRole.LEADING or self._ports.clock.monotonic_us() < self._sticky_until_us
