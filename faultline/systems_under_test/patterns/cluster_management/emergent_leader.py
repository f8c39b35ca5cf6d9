"""Emergent leader: the oldest member coordinates the cluster, and every node knows it without an election.

*Problem.* A cluster of equal nodes needs one node for the few decisions that concern all: which nodes are members, and
which node has which partition. An election needs a quorum, and stops without one.

*Idea.* Members are numbered as they join. The member with the lowest number, the oldest, is the coordinator. It admits
new members, marks silent members as failed, and sends each new membership to all, under a higher version. When the
coordinator fails, the next oldest member takes over: the member that finds that *all* older members have failed. No
vote is needed, because every member can see from the membership which member is next.

    athens 1   byzantium 2   cyrene 3          athens falls silent
       ×       byzantium: all older ones have failed → version 4: live byzantium 2, cyrene 3; failed athens
               cyrene: byzantium is older and alive → wait

The pattern prefers availability to consistency. When the network is cut in two, each half believes that the other has
failed, and has a coordinator of its own. Two rules limit the damage. The first is a *minimum size*, a majority of the
largest membership ever seen: a smaller group refuses to serve. The second is the *merge*: a coordinator asks the
members that it believes failed whether they are alive. The smaller group then dissolves, and its nodes join the larger
group as its youngest members.

Two clusters may also list each other's members. That happens when requests to join arrive late, at seeds that have
founded clusters meanwhile. Then no member is silent, and the later version wins, as within one cluster. Of two
memberships with the same version, the rule of the merge says which stays, and its coordinator makes a later version.

*Invariants.* EL-I1 some time after the last fault all connected nodes have one membership and one coordinator. EL-I3 a
version of one coordinator is one list; a node's version never goes back. EL-I4 ages are unique, and no address is both
live and failed. EL-I5 only the coordinator makes versions. EL-I6 no two disjoint groups serve clients. EL-I7 a node
that has not joined serves nothing.

*Tolerates.* Crashes of any members, the coordinator and the seeds included. Lost updates, because a heartbeat with an
old version is answered with the membership. Pauses, after which a node judges no other. Cuts of any kind, after which
the groups merge.

*Does not tolerate.* Use in place of agreement: until a cut is noticed, both halves may act. A system that cannot accept
this needs a consistent core.

*Workloads.* `membership` on `emergent-leader`; `register` and others on `data-grid`, where a split brain costs data.

*Checkers.* `membership`, linearizability; the invariants.

*Planted bugs.* They stand in `reference/emergent/planted_bugs.py` and `reference/data_grid/planted_bugs.py`.

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
    """A member: its address, its age (smaller is older), and the number of this start of its process."""

    address: str
    age: int
    instance: int


class Membership(msgspec.Struct, frozen=True, array_like=True):
    """The members of the cluster, as last decided by its coordinator.

    `next_age` is the age of the next node that joins, `largest` the most members that the cluster ever had at a time.
    """

    version: int
    live: tuple[Member, ...]
    failed: tuple[Member, ...] = ()
    next_age: int = 2
    largest: int = 1

    @classmethod
    def founded_by(cls, address: str, instance: int, version: int = 1, largest: int = 1) -> Membership:
        """Return the cluster of a seed that is alone."""
        return cls(version, (Member(address, 1, instance),), next_age=2, largest=largest)

    @property
    def coordinator(self) -> Member:
        """The oldest live member."""
        return min(self.live, key=_seniority)

    def member(self, address: str) -> Member | None:
        """Return the live member at `address`, None when there is none."""
        return next((member for member in self.live if member.address == address), None)

    def is_failed(self, address: str) -> bool:
        """Return whether the member at `address` is taken for failed."""
        return any(member.address == address for member in self.failed)

    def older_than(self, address: str) -> list[Member]:
        """Return the live members that must be silent before the one at `address` may claim to be the coordinator."""
        own = self.member(address)
        return [] if own is None else [member for member in self.live if _seniority(member) < _seniority(own)]

    def may_claim(self, address: str, silent: Collection[str]) -> bool:
        """Return whether `address` may take over: there are older members, and each of them is silent."""
        older = self.older_than(address)
        return bool(older) and all(member.address in silent for member in older)

    def may_serve(self, minimum: int = 0) -> bool:
        """Return whether there are enough live members; `minimum` 0 is a majority of the largest membership ever."""
        return len(self.live) >= (minimum or majority(self.largest))

    def with_member(self, address: str, instance: int, version_seen: int = 0, largest_seen: int = 1) -> Membership:
        """Return this membership with the process at `address` as the youngest member.

        An earlier incarnation of it, live or failed, is gone. `version_seen` and `largest_seen` are what the joiner
        brings from the cluster that it was in before: the versions that a node sees never go back.
        """
        live = (*(m for m in self.live if m.address != address), Member(address, self.next_age, instance))
        return Membership(
            # Above the versions of both clusters: the joiner must accept this membership although its own was later.
            version=max(self.version, version_seen) + 1,
            live=live,
            failed=tuple(m for m in self.failed if m.address != address),
            # Ages are never used twice, so a member that comes back is the youngest, and not the coordinator at once.
            next_age=self.next_age + 1,
            largest=max(self.largest, largest_seen, len(live)),
        )

    def without(self, addresses: Iterable[str]) -> Membership:
        """Return this membership with the members at `addresses` failed."""
        gone = frozenset(addresses)
        return msgspec.structs.replace(
            self,
            version=self.version + 1,
            live=tuple(m for m in self.live if m.address not in gone),
            failed=(*self.failed, *(m for m in self.live if m.address in gone)),
        )

    def made_later(self) -> Membership:
        """Return the same members under a later version, which beats another cluster's membership of this version."""
        return msgspec.structs.replace(self, version=self.version + 1)


def absorbs(own: Membership, count: int, coordinator: Member) -> bool:
    """Return whether the group `own` takes in another of `count` members under `coordinator`.

    Otherwise it dissolves into that one. The larger group stays; of two equal ones, that of the older coordinator. Both
    groups come to the same result, whichever of them asks.
    """
    mine, other = own.coordinator, coordinator
    # The address comes last, so that two groups never tie: if both stayed, they would never merge; if both dissolved,
    # no group would be left.
    return (-len(own.live), _seniority(mine), mine.address) < (-count, _seniority(other), other.address)


def _seniority(member: Member) -> tuple[int, int]:
    return member.age, member.instance
