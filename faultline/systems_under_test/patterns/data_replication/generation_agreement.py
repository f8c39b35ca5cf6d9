"""Agreement on a generation: a chosen leader brings its number to a majority before it leads.

*Problem.* Being chosen – by the reckoning of all servers, or by a lock in a store – is not yet a right to lead. The
choice may be old, another server may be chosen a moment later, and a leader of before may still be at work. And the
chosen server may lack entries that were committed.

*Idea.* The chosen server asks the others to enter its generation. Each of them promises it, durably, to the first that
asks, and from then on refuses whatever carries a lower number: that fences leaders of before off. The answer tells how
far the voter's log reaches. Answers of voters that have more than the chosen server are not counted, so whoever gets a
majority of counted answers holds every committed entry. This is the discovery phase of Zab; in Raft the same promise is
the vote.

*Invariants.* LDR-I1, LDR-I2, LDR-I3, GEN-I5: with a majority per generation, each server's promise given once and kept
through restarts, and no counted voter ahead.

*Tolerates.* Answers late, repeated, in any order, of other generations: each names its generation, and each server is
counted once.

*Does not tolerate.* A disk that forgets a promise.

*Workloads.* `register` with partitions, kills, pauses and `election=zab` or `external-store`.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `zab-ignores-longer-logs` (LDR-M3), `lock-without-fencing` (LDR-M9).

Sources: Junqueira, Reed and Serafini, "Zab: High-performance broadcast for primary-backup systems" (DSN 2011) IV.A;
Patterns of Distributed Systems ch. 6 and 11. One deviation from Zab: its leader gives up when any voter is ahead; here
that voter's answer does not count, and a majority of the others is enough.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    CandidateSeen,
    ElectionContext,
    GenerationAdopted,
    VoteCounted,
)
from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = ["GenerationAgreement", "GenerationPromised", "NewGeneration"]


class NewGeneration(msgspec.Struct, frozen=True, tag="new-generation"):
    """The chosen leader asks to enter `generation` under it."""

    server_id: str
    generation: int


class GenerationPromised(msgspec.Struct, frozen=True, tag="generation-promised"):
    """The answer: the voter's generation, whether it promised the one asked for, and how far its log reaches."""

    server_id: str
    generation: int
    promised: bool
    last_log_entry_index: int
    last_log_entry_generation: int


class GenerationAgreement:
    """Both sides of the agreement at one server: asking for a generation, and promising one."""

    def __init__(self, context: ElectionContext) -> None:
        self._ports: Ports = context.ports
        self._me = context.ports.node_id
        self._members = context.members
        self._clock: GenerationClock = context.clock
        self._log: WriteAheadLog = context.log
        self._generation = 0
        self._promises = QuorumTracker(self._members)

    def propose(self, generation: int) -> bool:
        """Promise `generation` to oneself and ask the others for it; False when it is not above one's own."""
        if generation <= self._clock.generation:
            return False
        self._clock.vote(generation, self._me)
        self._ports.trace.emit(GenerationAdopted(generation))
        self._generation = generation
        self._promises = QuorumTracker(self._members)
        self._promises.record(self._me)
        self.ask_again()
        return True

    def ask_again(self) -> None:
        """Ask everybody whose promise has not been counted yet."""
        for member in self._members:
            if member not in self._promises.recorded:
                self.ask(member)

    def ask(self, member: NodeId) -> None:
        """Ask one server."""
        self._ports.network.send(member, NewGeneration(self._me, self._generation))

    def count(self, source: NodeId, answer: GenerationPromised) -> bool:
        """Take in an answer; True when a majority has promised this server its generation."""
        if not answer.promised or answer.generation != self._generation:
            if answer.generation < self._clock.generation:
                self._ports.trace.sometimes("old-generation-vote-ignored")
        elif self._is_ahead(answer):
            self._ports.trace.sometimes("promise-of-a-longer-log-not-counted")
        else:
            self._ports.trace.emit(VoteCounted(source, answer.generation))
            self._promises.record(source)
            return self._promises.reached
        return False

    def promise(self, source: NodeId, request: NewGeneration) -> bool:
        """Enter the generation under `source`, durably, unless it is taken or over; answer. True when promised."""
        clock = self._clock
        before = clock.generation
        promised = clock.vote(request.generation, source)
        if clock.generation > before:
            self._ports.trace.emit(GenerationAdopted(clock.generation))
        self._answer(source, request, promised)
        return promised

    def refuse(self, source: NodeId, request: NewGeneration) -> None:
        """Answer with one's own generation, and change nothing."""
        self._answer(source, request, promised=False)

    def _answer(self, source: NodeId, request: NewGeneration, promised: bool) -> None:
        self._ports.trace.emit(CandidateSeen(request.server_id, request.generation))
        log = self._log
        answer = GenerationPromised(self._me, self._clock.generation, promised, log.last_index, log.last_generation)
        self._ports.network.send(source, answer)

    # A method of its own, so that a planted bug can override it.

    def _is_ahead(self, answer: GenerationPromised) -> bool:
        """Does the voter hold entries that this server may lack?"""
        log = self._log
        theirs = (answer.last_log_entry_generation, answer.last_log_entry_index)
        return theirs > (log.last_generation, log.last_index)
