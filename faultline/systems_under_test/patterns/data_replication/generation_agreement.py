"""Agreement on a generation: a chosen leader has a majority promise its generation before it leads.

*Problem.* A server that was chosen, by all servers or by a lock in a store, may not lead yet. The choice may be old,
another server may be chosen a moment later, and an earlier leader may still be at work. And the chosen server may lack
entries that were committed.

*Idea.* The chosen server asks the others to enter its generation. Each of them promises it durably to the first server
that asks, and from then on refuses messages of a lower generation: that fences earlier leaders off. The answer says how
far the voter's log reaches. Answers of voters whose log is longer than that of the chosen server are not counted, so a
server with a majority of counted answers holds every committed entry. This is the discovery phase of Zab; in Raft the
same promise is the vote.

*Invariants.* LDR-I1, LDR-I2, LDR-I3 and GEN-I5. They hold because a generation needs a majority, because each server
gives its promise once and keeps it through restarts, and because no counted voter is ahead.

*Tolerates.* Late and repeated answers, in any order, and answers of other generations: each answer names its
generation, and each server is counted once.

*Does not tolerate.* A disk that loses a promise.

*Workloads.* `register` with partitions, kills, pauses and `election=zab` or `external-store`.

*Checkers.* The invariants above; linearizability.

*Planted bugs.* `zab-ignores-longer-logs` (LDR-M3), `lock-without-fencing` (LDR-M9).

Sources: Junqueira, Reed and Serafini, "Zab: High-performance broadcast for primary-backup systems" (DSN 2011) IV.A;
Patterns of Distributed Systems ch. 6 and 11. One deviation from Zab: its leader gives up when any voter is ahead; here
the answer of that voter does not count, and a majority of the others is enough.
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

__all__ = ["GenerationAgreement", "GenerationPromised", "NewGeneration"]


class NewGeneration(msgspec.Struct, frozen=True, tag="new-generation"):
    """The request of the chosen leader to enter `generation` under it."""

    server_id: str
    generation: int


class GenerationPromised(msgspec.Struct, frozen=True, tag="generation-promised"):
    """The answer: the voter's generation, its promise of the requested one if it gave it, and the end of its log."""

    server_id: str
    generation: int
    promised: bool
    last_log_entry_index: int
    last_log_entry_generation: int


class GenerationAgreement:
    """Both sides of the agreement at one server: the request for a generation, and the promise of one."""

    def __init__(self, context: ElectionContext) -> None:
        self._ports: Ports = context.ports
        self._me = context.ports.node_id
        self._members = context.members
        self._clock: GenerationClock = context.clock
        self._log = context.log
        self._generation = 0
        self._promises = QuorumTracker(self._members)

    def propose(self, generation: int) -> bool:
        """Promise `generation` to this server itself and ask the others for it.

        Return False when it is not above its own.
        """
        if generation <= self._clock.generation:
            return False
        # Its own promise first, durably: after a restart it must not promise this generation to another server.
        self._clock.vote(generation, self._me)
        self._ports.trace.emit(GenerationAdopted(generation))
        self._generation = generation
        self._promises = QuorumTracker(self._members)
        self._promises.record(self._me)
        self.ask_again()
        return True

    def ask_again(self) -> None:
        """Ask each server whose promise has not been counted yet."""
        for member in self._members:
            if member not in self._promises.recorded:
                self.ask(member)

    def ask(self, member: NodeId) -> None:
        """Ask one server to promise the generation."""
        self._ports.network.send(member, NewGeneration(self._me, self._generation))

    def count(self, source: NodeId, answer: GenerationPromised) -> bool:
        """Take in an answer; return True when a majority has promised this server its generation."""
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
        """Enter the generation under `source`, durably, unless it is taken or over.

        Answer, and return True when promised.
        """
        clock = self._clock
        before = clock.generation
        promised = clock.vote(request.generation, source)
        if clock.generation > before:
            self._ports.trace.emit(GenerationAdopted(clock.generation))
        self._answer(source, request, promised)
        return promised

    def refuse(self, source: NodeId, request: NewGeneration) -> None:
        """Answer with this server's own generation, and change nothing."""
        self._answer(source, request, promised=False)

    def _answer(self, source: NodeId, request: NewGeneration, promised: bool) -> None:
        self._ports.trace.emit(CandidateSeen(request.server_id, request.generation))
        log = self._log
        answer = GenerationPromised(self._me, self._clock.generation, promised, log.last_index, log.last_generation)
        self._ports.network.send(source, answer)

    # A method of its own, so that a planted bug can override it.

    def _is_ahead(self, answer: GenerationPromised) -> bool:
        """Return whether the voter may hold entries that this server lacks."""
        log = self._log
        theirs = (answer.last_log_entry_generation, answer.last_log_entry_index)
        return theirs > (log.last_generation, log.last_index)
