"""Lease: ownership that ends by itself, so that a node that died, sleeps or is cut off cannot keep its resource.

*Problem.* A task, a shard, or a name in the list of members must have one owner. An owner that crashes cannot give it
back, and one that is only slow must not act, when it wakes, beside the owner that replaced it.

*Idea.* A lease has a name, an owner and a time to live. The consistent core grants it through its replicated log, so
that all its servers know of it. Keys can be attached to it. The owner refreshes it in time, after half of the time to
live. Only the *leader* counts time, by its monotonic clock, and refreshes are not in the log, where they would
outnumber all other entries. When a lease has run out the leader proposes its expiry, and it ends when that entry is
applied, at the same place of the log on every server. The attached keys are removed in the same step. A leader that
proposed an expiry has taken the lease out of its own tracking, so that it neither proposes the expiry twice nor
refreshes a lease that is about to end.

A new leader knows nothing of earlier refreshes. Before its first check it gives every lease a full time to live anew: a
lease may live longer than promised, never shorter.

The owner counts too, by its own clock, from the moment at which it *sent* the request that was granted. It counts less
than the time to live, so that the lease ends for the owner first, although clocks run at different rates. The index of
the entry that granted the lease, its *incarnation*, is a **fencing token**: it grows from owner to owner, so that the
guarded resource can refuse a write of an earlier owner that was delayed, or that it sends after a long sleep. An expiry
names the incarnation, so that a late expiry does not end the next owner's lease.

*Invariants.* LS-I1 no two clients believe at one time that they hold the same lease. LS-I2 no lease expires within its
time to live after a refresh that was acknowledged. LS-I3 a lease that is not refreshed ends within bounded time. LS-I4
an attached key exists only while its lease does. LS-I5 servers that have applied the same entries hold the same leases.
LS-I6 the grants and ends of a name alternate in the log. LS-I7 only leaders propose expiries.

*Tolerates.* Crashed, paused and cut-off owners and leaders; lost, repeated and late messages; wall clocks of any kind.

*Does not tolerate.* A leader whose monotonic clock is faster than its owner's by more than the owner's margin (a
quarter by default). An owner that acts long after it looked at its clock, unless the resource checks the token.

*Workloads.* `locks`: acquire, guarded writes, release; `watches`: keys that vanish with their lease.

*Checkers.* `leased-lock`: overlap of holders, tokens that went back, stale writes that were accepted.

*Planted bugs.* `follower-expires-leases` (LS-M1), `duplicate-lease-granted` (LS-M2), `lease-removed-before-commit`
(LS-M3), `leases-not-refreshed-by-new-leader` (LS-M4), `new-leader-tracks-no-leases` (LS-M5), `tracker-never-stops`
(LS-M6), `wall-clock-lease-expiry` (LS-M7), `lease-unit-mix-up` (LS-M8), `refresh-without-quorum` and
`lease-counted-from-receipt` (LS-M9), `attached-on-the-leader-only` (LS-M10), `orphan-attachment` (LS-M11),
`silent-expiry` (LS-M15), `no-fencing`. Transcripts and tests break single steps for the rest: an end by name (LS-M12),
a refresh before the leader's own entry is applied (LS-M13), an early refusal of a client's own repeated request
(LS-M14).

Deviations from the printed code, which removes lease and keys at the leader before the expiry is committed, refreshes
every lease that it is asked to, and expires by name alone. A put with another lease moves the key, and a put without a
lease detaches it, as in etcd. Left out: LogCabin's replicated clock, by which every server could expire by itself.

Sources: Patterns of Distributed Systems ch. 26; Gray and Cheriton, "Leases" (SOSP 1989); Burrows, "The Chubby lock
service" (OSDI 2006) §2.4, sequencers; Kleppmann, "How to do distributed locking" (2016); etcd's lessor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from faultline.harness.world.ports import Clock

__all__ = [
    "ALREADY_HELD",
    "DUPLICATE_LEASE",
    "LEASE_OVER",
    "NOT_HELD",
    "NO_LEASE",
    "STALE_TOKEN",
    "DuplicateLease",
    "FollowerLeaseTracker",
    "HeldLease",
    "LeaderLeaseTracker",
    "Lease",
    "LeaseTable",
    "LeaseTracker",
    "NoLease",
]

DUPLICATE_LEASE = "duplicate-lease"
"""The error code of a registration under a name that is taken."""

NO_LEASE = "no-lease"
"""The error code of a request that names a lease which does not exist, or no longer does."""

STALE_TOKEN = "stale-token"
"""The error code of a guarded write whose token is older than one that the resource has accepted."""

ALREADY_HELD = "already-held"
LEASE_OVER = "lease-over"
NOT_HELD = "not-held"
"""The errors with which a client refuses its own request.

It holds the lease already, the lease was granted too late for use, or it does not hold the lease.
"""


class DuplicateLease(Exception):
    """The name is taken."""


class NoLease(Exception):
    """There is no such lease, or it is a later incarnation."""


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """One lease, as all servers know it; `incarnation` is the index of the entry that granted it."""

    name: str
    ttl_us: int
    incarnation: int
    keys: tuple[str, ...] = ()


class LeaseTable:
    """All leases with their attached keys: a part of the replicated state, changed only by entries of the log."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._lease_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def get(self, name: str) -> Lease | None:
        """Return the lease of that name, if there is one."""
        return self._leases.get(name)

    def all(self) -> list[Lease]:
        """Return all leases, in the order of their grants."""
        return list(self._leases.values())

    def register(self, name: str, ttl_us: int, index: int) -> Lease:
        """Grant a lease at the entry `index`. Raises DuplicateLease when the name is taken, also by the same client."""
        if self.is_taken(name):
            raise DuplicateLease(f"the lease {name} is held since entry {self._leases[name].incarnation}")
        self._leases.pop(name, None)
        lease = self._leases[name] = Lease(name, ttl_us, index)
        return lease

    def is_taken(self, name: str) -> bool:
        """Return whether a lease has that name.

        Called when the entry of a registration is applied, because another registration may have come before it.
        """
        return name in self._leases

    def attach(self, name: str, key: str) -> None:
        """Attach `key` to this lease, and to no other; it ends with the lease. Raises NoLease."""
        if name not in self._leases:
            raise NoLease(f"there is no lease {name} to attach {key} to")
        self.detach(key)
        lease = self._leases[name]
        self._leases[name] = msgspec.structs.replace(lease, keys=(*lease.keys, key))
        self._lease_of[key] = name

    def detach(self, key: str) -> None:
        """Detach `key` from its lease: it exists by itself again, or is deleted."""
        name = self._lease_of.pop(key, None)
        if name is not None:
            lease = self._leases[name]
            self._leases[name] = msgspec.structs.replace(lease, keys=tuple(one for one in lease.keys if one != key))

    def end(self, name: str, incarnation: int) -> Lease | None:
        """End this incarnation; return the lease as it was, with the keys that end with it, or None if it is gone."""
        lease = self._leases.get(name)
        if lease is None or not self.is_meant(lease, incarnation):
            return None
        del self._leases[name]
        for key in lease.keys:
            del self._lease_of[key]
        return lease

    def is_meant(self, lease: Lease, incarnation: int) -> bool:
        """Return whether the expiry of `incarnation` is for this lease, and not for an earlier one of that name."""
        return lease.incarnation == incarnation

    def content(self) -> list[Lease]:
        """Return all leases as plain data, for a snapshot."""
        return self.all()

    def restore(self, content: Iterable[Lease]) -> None:
        """Replace these leases with those of a snapshot."""
        self._leases = {lease.name: lease for lease in content}
        self._lease_of = {key: lease.name for lease in self._leases.values() for key in lease.keys}


class LeaseTracker(Protocol):
    """The tracking of the time of leases: the tracker of a leader counts, that of a follower does nothing."""

    def track(self, lease: Lease) -> None:
        """Give the lease a full time to live from now on."""

    def refresh(self, name: str, incarnation: int) -> bool:
        """Give a tracked lease a full time to live from now on; return False if it is not tracked."""

    def forget(self, name: str) -> None:
        """Stop tracking a lease that has ended."""

    def expired(self) -> list[Lease]:
        """Return the leases whose time is over, each of them once."""


class FollowerLeaseTracker:
    """The tracker of a server that does not lead, which leaves the time to the leader."""

    def track(self, lease: Lease) -> None:
        """Do nothing: a follower counts no time."""

    def refresh(self, name: str, incarnation: int) -> bool:
        """Return False: only a leader refreshes."""
        return False

    def forget(self, name: str) -> None:
        """Do nothing: no time was counted."""

    def expired(self) -> list[Lease]:
        """Return no lease: only the leader ends leases."""
        return []


class LeaderLeaseTracker:
    """The tracker of a leader, which uses its monotonic clock and begins with every known lease (LS-R21)."""

    def __init__(self, clock: Clock, leases: Iterable[Lease]) -> None:
        self._clock = clock
        self._tracked: dict[str, tuple[Lease, int]] = {}
        for lease in leases:
            self.track(lease)

    def track(self, lease: Lease) -> None:
        self._tracked[lease.name] = (lease, self.now_us() + self.ttl_us(lease))

    def refresh(self, name: str, incarnation: int) -> bool:
        """Give a tracked lease a full time to live; an expiry that was proposed is not taken back."""
        tracked = self._tracked.get(name)
        if tracked is None or tracked[0].incarnation != incarnation:
            return False
        self.track(tracked[0])
        return True

    def forget(self, name: str) -> None:
        self._tracked.pop(name, None)

    def expired(self) -> list[Lease]:
        """Return the leases that ended *before* now, and stop tracking them (LS-R10)."""
        now_us = self.now_us()
        # Strictly before: a lease lives at least as long as was promised, and a refresh at its last instant still
        # counts.
        ended = [lease for lease, expires_us in self._tracked.values() if expires_us < now_us]
        for lease in ended:
            del self._tracked[lease.name]
        return ended

    def now_us(self) -> int:
        """Return the time by which leases are counted."""
        return self._clock.monotonic_us()

    def ttl_us(self, lease: Lease) -> int:
        """Return the time to live, in the unit of the clock."""
        return lease.ttl_us


class HeldLease:
    """The owner's side of a lease that it asked for at `sent_us`; its own clock decides whether it may still act.

    `margin_percent` of the time to live is left unused, because clocks run at different rates (LS-R16).
    """

    def __init__(self, clock: Clock, name: str, token: int, ttl_us: int, margin_percent: int, sent_us: int) -> None:
        self._clock = clock
        self.name = name
        self.token = token
        self._trusted_us = ttl_us * (100 - margin_percent) // 100
        self._refresh_us = ttl_us // 2
        self._since_us = sent_us
        self._is_lost = False

    @property
    def refresh_interval_us(self) -> int:
        """The time from one refresh to the next: half the time to live."""
        return self._refresh_us

    def refreshed(self, sent_us: int) -> None:
        """Extend the lease by a refresh that was sent at `sent_us` and acknowledged, unless the lease is over."""
        # A lease that ended by this clock may have another owner by now, even if the refresh came in time.
        if self.is_valid():
            # Counted from the sending, not from the answer: the leader may have counted from any moment in between.
            self._since_us = max(self._since_us, sent_us)

    def lost(self) -> None:
        """Give the lease up, because the core says that it does not exist."""
        self._is_lost = True

    def is_valid(self) -> bool:
        """Return whether the owner may still act; once it was False, it stays False."""
        if self._clock.monotonic_us() - self._since_us >= self._trusted_us:
            self._is_lost = True
        return not self._is_lost
