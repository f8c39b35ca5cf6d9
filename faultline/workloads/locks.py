"""The workload `locks`: leases that several clients want, and the resources that leases guard.

Each client tries to acquire one of a few leases, writes to the guarded resource, checks whether it is still the owner,
gives the lease back, stops refreshing it, as a crashed client would, or sleeps right before it writes. Most attempts
find the lease taken, and the client itself refuses most attempts without it; that costs next to nothing.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    each_thread,
    emit,
    limit,
    sequence,
    sleep,
    stagger,
)
from faultline.harness.generator.chance import below, by_weight, chance_of_text
from faultline.harness.generator.core import PENDING, Offer
from faultline.harness.workload import Checker

__all__ = ["LockActions", "Locks"]

_ACTIONS = (("acquire", 26), ("guarded-write", 35), ("check", 27), ("late-write", 6), ("release", 3), ("abandon", 3))
_ACTION_SALT = 0x51AB_07C3_99E4_1D2F
_LOCK_SALT = 0x1F83_D9AB_FB41_BD6B
_FINAL_PAUSE_US = 250_000
_FINAL_ROUNDS = 5
"""The last round is more than a second after the first, so that it sees the end of every lease held by then."""


class LockActions(Generator, frozen=True, gc=False):
    """Actions on `locks` leases without end; `next_value` has not been written."""

    locks: int
    next_value: int = 1

    def op(self, context: Context) -> Offer:
        """Return one action of a free worker, drawn by weight."""
        if not context.free:
            return PENDING, self
        worker = context.free_worker()
        f = by_weight(_ACTIONS, context.chance, _ACTION_SALT)
        key = f"lock{below(context.chance, self.locks, _LOCK_SALT)}"
        value = self.next_value if f.endswith("write") else None
        after = LockActions(self.locks, self.next_value + 1) if value else self
        return Draft(f, key, value, worker, context.time_us), after


class Locks:
    """Clients that compete for leases and write to the guarded resources."""

    name = "locks"
    promise = "a lease has one owner at a time, and a former owner's write is refused"
    functions = ("acquire", "check", "guarded-write", "late-write", "release", "abandon")
    access = Access(reads=("acquire", "check"), writes=())

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, LockActions(_locks(seed))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return rounds, with pauses, in which every worker acquires, writes and releases; in the end one is late."""
        once = [
            emit(f, f"lock{lock}", 0 if f == "guarded-write" else None)
            for lock in range(_locks(seed))
            for f in ("acquire", "guarded-write", "check", "release")
        ]
        rounds = [each for _ in range(_FINAL_ROUNDS) for each in (*once, sleep(_FINAL_PAUSE_US))]
        return each_thread(sequence(*rounds, emit("acquire", "lock0"), emit("late-write", "lock0", 0)))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checkers of mutual exclusion and fencing first; then statistics, availability after the heal, and
        vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.leased_lock import LeasedLockChecker

        reads = VacuityChecker(self.access)
        # A resource may refuse every late write if it knows more than the newest token, as etcd does.
        counts = StatsChecker(refusals={"late-write": "stale-token"})
        return (LeasedLockChecker(), counts, AvailabilityChecker(), reads)


def _locks(seed: int) -> int:
    return 1 + below(chance_of_text("locks", seed), 2, 1)
