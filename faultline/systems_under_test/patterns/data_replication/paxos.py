"""Paxos: a group of nodes agrees on one value without a leader, while any node may propose and a minority may fail.

*Problem.* Several nodes propose values at the same time. A two-phase vote in which nodes lock themselves to a proposer
blocks for ever when that proposer dies. If the latest proposal simply wins, a value that a client was told is lost.

*Idea.* Every attempt has a *generation* that is unique and comparable: a round and, to break ties, the node's name. An
attempt has two phases. *Prepare*: ask the acceptors to promise that they will accept no lower generation, and to report
the proposal that they have accepted so far. *Accept*: ask them to accept a value. When a quorum promised and a member
of it had accepted a proposal, that value might already be chosen. So the proposer drops its own and proposes the one of
the *highest* generation among them, under its own generation. A value is chosen once a quorum has accepted it in one
and the same generation. A third phase, *commit*, only tells all nodes of it; the original papers do without it.

There are no locks: a higher generation supersedes any attempt of any node, at any time. Two proposers can supersede
each other for ever (Fischer, Lynch and Paterson prove that no algorithm can exclude this), so they wait a random time
before each new generation, and each new round exceeds every round the node has heard of.

Neither quorum must be a majority. It is enough that each prepare quorum meets each accept quorum (*flexible quorums*):
of five nodes, four promises and two acceptances do.

This module is the agreement on one value, as plain state without ports: `Acceptor`, and `Attempt`, one generation of a
proposer. `paxos_store` makes acceptors durable, one chain of them per key; `paxos_proposer` drives attempts over the
network, with time-outs, waits and new generations. A promise or acceptance must be durable before the answer leaves.

*Invariants.* PAX-I1 at most one value is chosen in an instance. PAX-I2 a chosen value was proposed by some node as its
own. PAX-I3 once a value is chosen, every higher generation proposes the same value. PAX-I4 an acceptor's promise never
decreases, and the acceptor accepts nothing below it. PAX-I6 the committed version of a key never decreases. PAX-R3 no
two proposals share a generation. PAX-R4 a node's next round exceeds every round that it has heard of. PAX-R8 a value is
proposed under the generation that was promised.

*Tolerates.* Proposers and acceptors that crash anywhere and return with their disks, as long as a quorum of each phase
lives at some time; messages lost, late, repeated and overtaken; acceptors that refuse without an answer.

*Does not tolerate.* An acceptor that lost its disk, nodes that lie, or nodes with different lists of members. Progress
is only probable: with bad luck, proposers supersede each other for a long time.

*Workloads.* `register` on the system `paxos-kv`.

*Checkers.* Linearizability; the invariants above, on what proposers count.

*Planted bugs.* `ignore-accepted`, `adopt-oldest-accepted`, `accept-below-promise`, `promise-not-durable`,
`ids-not-unique`, `naive-reset`, `late-answers-count`, `strict-accept`, `local-read`, `success-without-accepts`,
`success-with-other-value`, `half-quorums`, `adopt-under-old-generation`, `rounds-not-learned` and
`no-duplicate-detection`.

Deviations from the printed code: an acceptor accepts its promised generation again (the table of the text demands a
later one) and counts as having accepted only when it did; a refused accept phase is never success, not even for the
proposer's own value.

Sources: Patterns of Distributed Systems ch. 8; Lamport, "The Part-Time Parliament" (1998) and "Paxos Made Simple"
(2001); Howard, Malkhi and Spiegelman, "Flexible Paxos" (2016).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.systems_under_test.patterns.data_replication.quorum import QuorumTracker, majority

__all__ = ["NEVER", "Acceptor", "Attempt", "MonotonicId", "MonotonicIds", "PaxosQuorums", "Proposal"]


class MonotonicId(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A generation: ordered by round, then by the name of the node that made it; [2,a] > [1,e] > [1,a]."""

    round: int
    node: str

    def __str__(self) -> str:
        return f"[{self.round},{self.node}]"


NEVER = MonotonicId(0, "")
"""A generation below every other one; no node makes it."""


class Proposal(msgspec.Struct, frozen=True, array_like=True):
    """A value proposed under a generation."""

    generation: MonotonicId
    value: bytes


class MonotonicIds:
    """The source of one node's generations: each round exceeds all rounds that this node has made or heard of.

    `round` must survive restarts. The store recovers it from its log, where the promise of the node itself stands
    before any other node hears of the attempt.
    """

    __slots__ = ("_node", "round")

    def __init__(self, node: str) -> None:
        self._node = node
        self.round = 0

    def observe(self, generation: MonotonicId) -> None:
        """Remember the round of a generation that was heard of, if it is the highest."""
        if generation.round > self.round:
            self.round = generation.round

    def next(self) -> MonotonicId:
        """Return a generation above all that are known here; no other node can make the same."""
        self.round += 1
        return MonotonicId(self.round, self._name())

    def _name(self) -> str:
        """Return the name that tells this node's generations from those of others in the same round."""
        return self._node


class PaxosQuorums(msgspec.Struct, frozen=True):
    """The number of promises that an attempt needs to propose, and of acceptances that choose its value."""

    prepare: int
    accept: int

    @classmethod
    def majorities(cls, n: int) -> PaxosQuorums:
        """Return a majority of `n` for both, as in the original."""
        return cls(majority(n), majority(n))

    def intersect(self, n: int) -> bool:
        """Return whether every prepare quorum shares a member with every accept quorum."""
        return self.prepare + self.accept > n


class Acceptor:
    """The promise and the accepted proposal of one acceptor, in one instance of Paxos."""

    __slots__ = ("accepted", "promised")

    def __init__(self) -> None:
        self.promised = NEVER
        self.accepted: Proposal | None = None

    def prepare(self, generation: MonotonicId) -> bool:
        """Promise to accept nothing below `generation`; return False when a higher one was promised.

        May be repeated.
        """
        if generation < self.promised:
            return False
        self.promised = generation
        return True

    def accept(self, proposal: Proposal) -> bool:
        """Accept `proposal`; return False, and change nothing, when a higher generation was promised."""
        if not self._may_accept(proposal.generation):
            return False
        # Accepting is promising too: this acceptor may have missed the prepare phase of that generation.
        self.promised = max(self.promised, proposal.generation)
        self.accepted = proposal
        return True

    def _may_accept(self, generation: MonotonicId) -> bool:
        # Equal counts: it is the very generation the promise was given for.
        return generation >= self.promised


class Attempt:
    """One generation of a proposer, with its promises, the value that it must propose, and its acceptances."""

    __slots__ = ("_acceptances", "_accepted", "_members", "_promises", "_refusals", "generation")

    def __init__(self, generation: MonotonicId, members: Iterable[str], quorums: PaxosQuorums) -> None:
        self._members = tuple(members)
        self._promises = QuorumTracker(self._members, quorums.prepare)
        self._acceptances = QuorumTracker(self._members, quorums.accept)
        self._refusals: list[str] = []
        self._accepted: list[Proposal] = []
        self.generation = generation

    def promised(self, member: str, accepted: Proposal | None) -> bool:
        """Count the promise of `member`, with its `accepted` proposal; return True when it completes the quorum."""
        if self._promises.reached or not self._promises.record(member):
            return False
        if accepted is not None:
            self._accepted.append(accepted)
        return self._promises.reached

    def adopted(self) -> bytes | None:
        """Return the value that this attempt must propose because it may be chosen already; None when it may propose
        its own.

        To be called when the quorum of promises is complete.
        """
        found = self._most_recent(self._accepted)
        return None if found is None else found.value

    def proposes_under(self) -> MonotonicId:
        """Return the generation under which this attempt proposes: its own, for which it has the promises, also when it
        adopts.
        """
        return self.generation

    def _most_recent(self, accepted: list[Proposal]) -> Proposal | None:
        """Return the accepted proposal of the highest generation.

        If a value is chosen, every later generation has proposed the same value, so this proposal has it too.
        """
        return max(accepted, key=lambda proposal: proposal.generation, default=None)

    def accepted(self, member: str) -> bool:
        """Count the acceptance of `member`; return True when it completes the quorum, so that the value is chosen."""
        if self._acceptances.reached or not self._acceptances.record(member):
            return False
        return self._acceptances.reached

    def refused(self, member: str) -> bool:
        """Count the refusal of `member`.

        Return True when too few members are left for the quorum of the present phase.
        """
        if member in self._members and member not in self._refusals:
            self._refusals.append(member)
        needed = self._acceptances.needed if self._promises.reached else self._promises.needed
        return len(self._members) - len(self._refusals) < needed
