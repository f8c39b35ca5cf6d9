"""Quorum: a decision needs a majority of all members, so two groups that cannot talk cannot both decide.

*Problem.* A server that does not wait for others loses its decisions when it dies. A server that waits for all others
stops when any of them does.

*Idea.* Wait for a majority of the *configured* members. Any two majorities share a member, so two decisions cannot
contradict each other unseen. With n members, floor(n/2) + 1 are needed, and n minus that many may fail. A member that
makes the number even adds no tolerance.

*Invariants.* QRM-I1 any two quorums that have to meet share a member. QRM-I2 an acknowledged decision is on a quorum of
distinct replicas. QRM-I3 a node that hears from fewer than a quorum acknowledges nothing.

*Tolerates.* n minus quorum members that are dead, paused or cut off; acknowledgements that are late, repeated, or from
nodes that are not members: each configured member is counted once, and errors are not acknowledgements.

*Does not tolerate.* Nodes with different lists of members: without a membership protocol the set must be the same on
all nodes. A node that counts itself before its own write is durable. A quorum of stored copies alone is not
linearizable (LDR-S7): the system `quorum-register` shows that, and also the write-back of readers, which repairs it.

*Workloads.* `register`, with partitions of every shape.

*Checkers.* Linearizability; in `quorum-register` QRM-I1 to QRM-I3 on the nodes that answered and stored, in
`consistent-core` LDR-I1 and LDR-I3.

*Planted bugs.* In `quorum-register`: `half-is-a-majority` (QRM-M1), `majority-of-the-living` (QRM-M2),
`count-duplicate-answers` (QRM-M3), `count-errors` (QRM-M4), `coordinator-counts-twice` (QRM-M5) and
`first-answer-decides` (QRM-M6: the phase that finds the newest value is the register's election). In `paxos-kv`
`half-quorums`, in `consistent-core` `ack-before-quorum`.

Sources: Patterns of Distributed Systems ch. 10; Gifford, "Weighted Voting for Replicated Data" (SOSP 1979); Howard et
al., "Flexible Paxos" (2016) for quorums of other sizes (`needed`).
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["QuorumTracker", "majority", "tolerated_failures"]


def majority(n: int) -> int:
    """Return the smallest number of members out of `n` such that any two groups of that size share one."""
    if n < 1:
        raise ValueError(f"a cluster has at least one member, not {n}")
    return n // 2 + 1


def tolerated_failures(n: int) -> int:
    """Return how many of `n` members may fail while a majority can still decide."""
    return n - majority(n)


class QuorumTracker:
    """A count of the distinct members that have said yes to one question; errors and refusals are not counted."""

    __slots__ = ("_members", "_recorded", "needed")

    def __init__(self, members: Iterable[str], needed: int | None = None) -> None:
        """Count among `members`; `needed` of them decide, a majority by default.

        Raises ValueError when `needed` is not between 1 and the number of members.
        """
        self._members = tuple(dict.fromkeys(members))
        self._recorded: list[str] = []
        self.needed = majority(len(self._members)) if needed is None else needed
        if not 1 <= self.needed <= len(self._members):
            raise ValueError(f"{self.needed} of {len(self._members)} members can never be reached")

    def record(self, member: str) -> bool:
        """Count the yes of `member`; return False when it is not a member or was counted before."""
        if member in self._recorded or member not in self._members:
            return False
        self._recorded.append(member)
        return True

    @property
    def reached(self) -> bool:
        """True once enough distinct members have said yes."""
        return len(self._recorded) >= self.needed

    @property
    def recorded(self) -> tuple[str, ...]:
        """The members counted so far, in the order of their answers."""
        return tuple(self._recorded)
