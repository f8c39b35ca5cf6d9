"""Emergent leader: the oldest member decides, and everybody knows who that is without an election.

*Problem.* A cluster of equals needs one node for the few decisions that concern all: who belongs to the cluster, where
the partitions lie. An election needs a quorum, and stops without one.

*Idea.* Members are numbered as they join. The one with the lowest number, the oldest, is the coordinator: it admits new
members, marks silent ones as failed, and tells everybody the new membership, under a version that grows. When it fails
itself, the next oldest takes over; that is who finds that *all* older members have failed. No vote is needed, because
everybody can see from the membership whose turn it is.

    athens 1   byzantium 2   cyrene 3          athens falls silent
       ×       byzantium: all older ones have failed → version 4: live byzantium 2, cyrene 3; failed athens
               cyrene: byzantium is older and alive → wait

What this buys in availability it costs in consistency: cut in two, each half believes that the other has failed, and
has a coordinator of its own. Two things limit the damage. A *minimum size*, a majority of the largest membership ever
seen, below which a group refuses to serve. And the *merge*: a coordinator asks those that it believes failed whether
they live; the smaller group then dissolves, and its nodes join the larger one as the youngest.

Two clusters may also list each other's members: when requests to join arrive late, at seeds that have founded clusters
meanwhile. Then none of them is silent, and the later version stands, as within one cluster. Of two with the same
version the merge's rule says which stays, and its coordinator makes a later version.

*Invariants.* EL-I1 some time after the last fault all connected nodes have one membership and one coordinator. EL-I3 a
version of one coordinator is one list; a node's version never goes back. EL-I4 ages are unique, and no address is both
live and failed. EL-I5 only the coordinator makes versions. EL-I6 no two disjoint groups serve clients. EL-I7 who has
not joined serves nothing.

*Tolerates.* Crashes of any members, the coordinator and the seeds included; lost updates (a heartbeat shows an old
version and is answered with the membership); pauses, after which members are not judged; cuts of any kind, which heal
by a merge.

*Does not tolerate.* Being taken for agreement: while a cut is not noticed two halves may both act. Whoever cannot bear
that needs a consistent core.

*Workloads.* `membership`.

*Checkers.* `membership`; the invariants.

*Planted bugs.* See `reference/emergent/planted_bugs.py`.

Sources: Patterns of Distributed Systems ch. 29; JGroups, Hazelcast, Akka and Ignite order their members so. Deviations
from the printed code: a claim needs all older members to have failed, and only those; a tie between two groups is
broken by the age of their coordinators; heartbeats name the coordinator, so that one version with two coordinators is
seen; ages are never used twice; the minimum is reached at the minimum, not above it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from faultline.systems_under_test.patterns.data_replication.quorum import majority

__all__ = ["Member", "Membership", "absorbs"]


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A member: where it is, how old it is (smaller is older), and which start of the process it is."""

    address: str
    age: int
    instance: int


class Membership(msgspec.Struct, frozen=True, array_like=True):
    """Who belongs to the cluster, as its coordinator said last.

    `next_age` is the age of whoever joins next, `largest` the most members the cluster ever had at a time.
    """

    version: int
    live: tuple[Member, ...]
    failed: tuple[Member, ...] = ()
    next_age: int = 2
    largest: int = 1

    @classmethod
    def founded_by(cls, address: str, instance: int, version: int = 1, largest: int = 1) -> Membership:
        """The cluster of a seed that is alone."""
        return cls(version, (Member(address, 1, instance),), next_age=2, largest=largest)

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def coordinator(self) -> Member:
        """The oldest live member."""
        return min(self.live, key=_seniority)

    def member(self, address: str) -> Member | None:
        """The live member there."""
        return next((member for member in self.live if member.address == address), None)

    def is_failed(self, address: str) -> bool:
        """Whether the member there is taken for failed."""
        return any(member.address == address for member in self.failed)

    def older_than(self, address: str) -> list[Member]:
        """The live members before whom the one at `address` may not claim to be the coordinator."""
        own = self.member(address)
        return [] if own is None else [member for member in self.live if _seniority(member) < _seniority(own)]

    def may_claim(self, address: str, silent: Collection[str]) -> bool:
        """Whether it is the turn of `address`: there are older members, and every one of them is silent."""
        older = self.older_than(address)
        return bool(older) and all(member.address in silent for member in older)

    def may_serve(self, minimum: int = 0) -> bool:
        """Whether there are enough live members; `minimum` 0 is a majority of the largest membership ever."""
        return len(self.live) >= (minimum or majority(self.largest))

    # -- changes, each a version later --------------------------------------------------------------------------------

    def with_member(self, address: str, instance: int, version_seen: int = 0, largest_seen: int = 1) -> Membership:
        """With the process at `address` as the youngest; an earlier incarnation of it, live or failed, is gone.

        `version_seen` and `largest_seen` are what the joiner brings from the cluster it was in before: versions never
        go back for anybody.
        """
        live = (*(m for m in self.live if m.address != address), Member(address, self.next_age, instance))
        return Membership(
            version=max(self.version, version_seen) + 1,
            live=live,
            failed=tuple(m for m in self.failed if m.address != address),
            next_age=self.next_age + 1,
            largest=max(self.largest, largest_seen, len(live)),
        )

    def without(self, addresses: Iterable[str]) -> Membership:
        """With the members at `addresses` failed."""
        gone = frozenset(addresses)
        return msgspec.structs.replace(
            self,
            version=self.version + 1,
            live=tuple(m for m in self.live if m.address not in gone),
            failed=(*self.failed, *(m for m in self.live if m.address in gone)),
        )

    def made_later(self) -> Membership:
        """With the same members, so that it stands against another cluster's membership of this version."""
        return msgspec.structs.replace(self, version=self.version + 1)


def absorbs(own: Membership, count: int, coordinator: Member) -> bool:
    """Whether the group `own` takes in another of `count` members under `coordinator`, instead of dissolving into it.

    The larger group stays; of two equal ones that of the older coordinator. The rule says the same to both.
    """
    mine, other = own.coordinator, coordinator
    return (-len(own.live), _seniority(mine), mine.address) < (-count, _seniority(other), other.address)


def _seniority(member: Member) -> tuple[int, int]:
    return member.age, member.instance
