"""The Paxos proposer: gets the changes of one node decided, key by key, one version at a time.

A change is not a value but a function of the newest one (a compare-and-set, say), so each attempt begins by asking the
change for its next version. The phases prepare, accept and commit follow. Three events can interrupt them:

- An acceptor reports an accepted value. This attempt finishes that value, and the change tries again for the version
  after it.
- A node has a newer commit. The proposer learns it and tries again from there.
- Too many acceptors refuse, or too few answer in time. The proposer waits a random time, longer each time, and tries a
  higher generation. After `attempts_max` such attempts it gives the change up, with an unknown outcome: an acceptor may
  hold the value, and any node may finish it.

Success is reported only for the change's own value, only after a quorum accepted it in one generation, and only after
this node's own store has learned it.

A node works on one change per key at a time; others wait in line, so that it does not duel with itself.

Sources: Patterns of Distributed Systems ch. 8 (`PaxosPerKeyStore`); Lamport, "Paxos Made Simple" (2001) 2.2 to 2.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

import msgspec

from faultline.harness.world.ports import NodeId, Ports, Timer
from faultline.systems_under_test.patterns.data_replication.paxos import (
    Attempt,
    MonotonicId,
    MonotonicIds,
    PaxosQuorums,
)
from faultline.systems_under_test.patterns.data_replication.paxos_store import (
    AcceptRequest,
    AcceptResponse,
    Commit,
    CommitNotice,
    PaxosStore,
    PrepareRequest,
    PrepareResponse,
)

__all__ = [
    "AcceptanceCounted",
    "Change",
    "PromiseCounted",
    "Proposer",
    "ProposerTiming",
    "ValueChosen",
    "ValueProposed",
    "Work",
]


class Change(Protocol):
    """A change that is to be decided for a key."""

    @property
    def deadline_us(self) -> int:
        """The monotonic time after which no client waits for the change."""

    @property
    def only_reads(self) -> bool:
        """True if a quorum of promises can answer it, when these show that no newer value is under way."""

    def wanted(self, committed: Commit | None) -> bytes | None:
        """Return the value it wants after `committed`; None when `committed` contains it already."""

    def finish(self, committed: Commit | None) -> None:
        """End the change, which was decided; `committed` is the newest value, and contains it."""

    def give_up(self) -> None:
        """End the change with an unknown outcome: it may have been decided, or may still be."""


class ValueProposed(msgspec.Struct, frozen=True):
    """Trace: this node asks acceptors to accept a value; `own` unless it adopted one."""

    key: str
    version: int
    generation: MonotonicId
    checksum: int
    own: bool


class PromiseCounted(msgspec.Struct, frozen=True):
    """Trace: this node counted the promise of `acceptor`, which was durable before it was sent."""

    key: str
    version: int
    generation: MonotonicId
    acceptor: str


class AcceptanceCounted(msgspec.Struct, frozen=True):
    """Trace: this node counted the acceptance of `acceptor`, which was durable before it was sent."""

    key: str
    version: int
    generation: MonotonicId
    acceptor: str


class ValueChosen(msgspec.Struct, frozen=True):
    """Trace: this node saw a quorum of acceptances, so the value is chosen."""

    key: str
    version: int
    generation: MonotonicId
    checksum: int


class ProposerTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The time limit of a phase, the longest wait before the second attempt (it doubles), and the limit of attempts."""

    phase_us: int
    backoff_us: int
    attempts_max: int


@dataclass(slots=True)
class Work:
    """The present change of one key, and the progress of its attempt."""

    key: str
    change: Change
    attempts: int = 0
    version: int = 0
    own: bytes = b""
    proposed: bytes | None = None
    attempt: Attempt | None = None
    timer: Timer | None = None
    waiting: deque[Change] = field(default_factory=deque)


class Proposer:
    """The proposer of one node, for all keys."""

    attempt_class: Callable[[MonotonicId, tuple[str, ...], PaxosQuorums], Attempt] = Attempt

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        store: PaxosStore,
        ids: MonotonicIds,
        quorums: PaxosQuorums,
        timing: ProposerTiming,
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        """`enter` runs the callback of a timer in turn with all other events of the node."""
        self._enter = enter
        self._ports = ports
        self._members = members
        self._peers = tuple(member for member in members if member != ports.node_id)
        self._store = store
        self._ids = ids
        self._quorums = quorums
        self._timing = timing
        self._works: dict[str, Work] = {}

    def __len__(self) -> int:
        """Return the number of changes that are not decided yet."""
        return sum(1 + len(work.waiting) for work in self._works.values())

    def submit(self, key: str, change: Change) -> None:
        """Get `change` decided, after those of the same key that came before it."""
        work = self._works.get(key)
        if work is not None:
            work.waiting.append(change)
            return
        self._works[key] = work = Work(key, change)
        self._begin(work)

    def _begin(self, work: Work) -> None:
        """Begin an attempt for the version after the newest commit, under a new generation."""
        self._disarm(work)
        committed = self._store.committed(work.key)
        own = work.change.wanted(committed)
        if own is None:
            self._finish(work, committed)
            return
        if self._ports.clock.monotonic_us() >= work.change.deadline_us:
            self._give_up(work)
            return
        work.own, work.proposed = own, None
        work.version = 1 if committed is None else committed.version + 1
        work.attempt = self.attempt_class(self._ids.next(), self._members, self._quorums)
        self._arm(work, self._timing.phase_us, self._phase_timed_out)
        request = PrepareRequest(work.key, work.version, work.attempt.generation, committed)
        # The own promise first: it makes this generation durable before any other node hears of it.
        response = self._store.prepare(request)
        self._send_to_peers(request)
        if response is not None:
            self.handle_prepare_response(self._ports.node_id, response)

    def handle_prepare_response(self, source: NodeId, response: PrepareResponse) -> None:
        """Count a promise or a refusal; with a quorum of promises, propose."""
        self._ids.observe(response.promised)
        work = self._work_of(response)
        if work is None or work.proposed is not None or self._superseded(work, response.committed):
            return
        attempt = work.attempt
        assert attempt is not None
        if not response.given:
            self._count_refusal(work, source)
            return
        self._ports.trace.emit(PromiseCounted(work.key, work.version, response.generation, source))
        if attempt.promised(source, response.accepted):
            self._promises_complete(work)

    def _promises_complete(self, work: Work) -> None:
        assert work.attempt is not None
        adopted = work.attempt.adopted()
        if adopted is None and work.change.only_reads:
            # No acceptor of the quorum has accepted a newer value, so none was chosen before it promised.
            self._finish(work, self._store.committed(work.key))
            return
        if adopted is not None:
            self._ports.trace.sometimes("accepted-value-adopted")
        self._propose(work, work.own if adopted is None else adopted, own=adopted is None)

    def _propose(self, work: Work, value: bytes, *, own: bool) -> None:
        assert work.attempt is not None
        work.proposed = value
        generation = work.attempt.proposes_under()
        self._ports.trace.emit(ValueProposed(work.key, work.version, generation, crc32(value), own))
        self._arm(work, self._timing.phase_us, self._phase_timed_out)
        request = AcceptRequest(work.key, work.version, generation, value)
        response = self._store.accept(request)
        self._send_to_peers(request)
        if response is not None:
            self.handle_accept_response(self._ports.node_id, response)

    def handle_accept_response(self, source: NodeId, response: AcceptResponse) -> None:
        """Count an acceptance or a refusal; with a quorum of acceptances, the value is chosen."""
        self._ids.observe(response.promised)
        work = self._work_of(response)
        if work is None or work.proposed is None or self._superseded(work, response.committed):
            return
        attempt = work.attempt
        assert attempt is not None
        if not response.given:
            self._count_refusal(work, source)
            return
        self._ports.trace.emit(AcceptanceCounted(work.key, work.version, response.generation, source))
        if attempt.accepted(source):
            self._chosen(work)

    def _chosen(self, work: Work) -> None:
        assert work.attempt is not None and work.proposed is not None
        # Chosen for good: any later prepare quorum shares an acceptor with this one, which reports the value.
        commit = Commit(work.version, work.attempt.generation, work.proposed)
        self._ports.trace.emit(ValueChosen(work.key, commit.version, commit.generation, crc32(commit.value)))
        self._store.learn(work.key, commit)
        self._send_to_peers(CommitNotice(work.key, commit))
        if self._is_own(work):
            self._finish(work, commit)
        else:
            self._ports.trace.sometimes("other-value-finished-first")
            self._begin(work)

    def _is_own(self, work: Work) -> bool:
        """Return whether the chosen value is the one this change wanted, rather than one it had to finish."""
        return work.proposed == work.own

    def handle_commit_notice(self, source: NodeId, notice: CommitNotice) -> None:
        """Learn a chosen value; an attempt for its version is over."""
        self._store.learn(notice.key, notice.commit)
        work = self._works.get(notice.key)
        if work is not None and work.attempt is not None:
            self._superseded(work, notice.commit)

    def _superseded(self, work: Work, committed: Commit | None) -> bool:
        """Return whether `committed` decides the version of this attempt; if so, learn it and begin anew after it."""
        if committed is None or committed.version < work.version:
            return False
        self._store.learn(work.key, committed)
        self._ports.trace.sometimes("attempt-superseded-by-commit")
        self._begin(work)
        return True

    def _count_refusal(self, work: Work, source: NodeId) -> None:
        assert work.attempt is not None
        if work.attempt.refused(source):
            self._failed(work)

    def _phase_timed_out(self, work: Work) -> None:
        self._ports.trace.sometimes("phase-timed-out")
        self._failed(work)

    def _failed(self, work: Work) -> None:
        """Wait a random while before the next, higher generation, or give up after too many.

        Called when there is no quorum.
        """
        self._disarm(work)
        work.attempts += 1
        if work.attempts >= self._timing.attempts_max:
            self._ports.trace.sometimes("change-given-up")
            self._give_up(work)
            return
        # Answers to the attempt that failed must not revive it while this one waits.
        work.attempt = None
        self._arm(work, self._backoff_us(work.attempts), self._begin)

    def _backoff_us(self, attempts: int) -> int:
        # Random, and longer each time, so that two proposers stop superseding each other.
        longest_us = self._timing.backoff_us << (attempts - 1)
        return self._ports.random.uniform_us("paxos-backoff", longest_us // 8, longest_us)

    def _finish(self, work: Work, committed: Commit | None) -> None:
        change = work.change
        self._next(work)
        change.finish(committed)

    def _give_up(self, work: Work) -> None:
        change = work.change
        self._next(work)
        change.give_up()

    def _next(self, work: Work) -> None:
        """Turn to the change that waits for this key, if there is one."""
        self._disarm(work)
        del self._works[work.key]
        if work.waiting:
            later = Work(work.key, work.waiting.popleft(), waiting=work.waiting)
            self._works[work.key] = later
            self._arm(later, 0, self._begin)

    def _work_of(self, response: PrepareResponse | AcceptResponse) -> Work | None:
        """Return the change whose present attempt this answers; None for a late answer."""
        work = self._works.get(response.key)
        if work is None or work.attempt is None or work.version != response.version:
            return None
        return work if self._is_answer_to(work.attempt, response.generation) else None

    def _is_answer_to(self, attempt: Attempt, generation: MonotonicId) -> bool:
        # Only answers of one generation make a quorum, also when an earlier one asked for the same value.
        return generation == attempt.generation

    def _send_to_peers(self, message: PrepareRequest | AcceptRequest | CommitNotice) -> None:
        for peer in self._peers:
            self._ports.network.send(peer, message)

    def _arm(self, work: Work, delay_us: int, callback: Callable[[Work], None]) -> None:
        self._disarm(work)
        work.timer = self._ports.timers.after(delay_us, lambda: self._enter(lambda: callback(work)))

    def _disarm(self, work: Work) -> None:
        if work.timer is not None:
            work.timer.cancel()
            work.timer = None
