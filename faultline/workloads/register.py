"""The workload `register`: reads, writes and compare-and-sets on keys that live for some forty operations each.

The oldest test of a replicated store (Jepsen's `linearizable-register`), and still the one that finds most: a register
is the simplest object whose linearizability can be broken by a stale read, a lost write or a write that happened twice.

The following is drawn once per seed, so that a campaign covers several shapes of load (a *portfolio*):

- how many keys live at once: few keys mean contention, and contention is what makes an anomaly visible;
- the life of a key (25 to 40 operations), which bounds the work of the checker;
- a role for each worker: writers, readers, and mixed ones. A worker that only reads notices a stale value, which a
  write of its own in between would explain. It also stays with a leader that was cut off, while unanswered writes
  drive the others away. Long runs deal the roles again every sixteen keys.

Values count up per key and are never used twice, so that one value is one write, and a checker that sees it knows where
it came from. A compare-and-set expects one of the values planned shortly before, so most of them can succeed.
"""

from __future__ import annotations

import msgspec

from faultline.harness.access import Access
from faultline.harness.generator import (
    Context,
    Draft,
    Generator,
    each_thread,
    emit,
    independent,
    limit,
    sequence,
    stagger,
)
from faultline.harness.generator.chance import below, chance_of_text
from faultline.harness.generator.core import EMPTY, PENDING, Offer
from faultline.harness.workload import Checker

__all__ = ["OneRegister", "Register", "RegisterShape"]

INTERVAL_US = 18_500
"""The usual distance of operations: 200 of them take the 4 s of a simulated run, and a second has some 50."""

FINAL_KEYS = 6
"""The number of the last keys that are read after the heal."""

_ROLES = {"writer": (15, 50), "mixed": (45, 30), "reader": (100, 0)}
"""Role: percentage of reads, percentage of writes; the rest are compare-and-sets."""

_PORTFOLIOS = (
    ("mixed",),
    ("writer", "reader"),
    ("writer", "reader", "reader", "mixed"),
    ("writer", "writer", "reader"),
    ("mixed", "reader"),
)
"""Roles dealt to the workers in turn; each seed draws the row to begin with."""

_KEYS_PER_DEAL = 16

_ACTION_SALT = 0x9FB2_1C65_1E98_DF25
_RECENT_SALT = 0xEB44_ACCA_B455_D165
_RECENT = 3


class RegisterShape(msgspec.Struct, frozen=True):
    """The shape that one seed draws: keys alive at once, operations per key, and the portfolio to begin with."""

    live_keys: int
    operations_per_key: int
    workers: int
    portfolio: int

    @classmethod
    def drawn(cls, workers: int, seed: int) -> RegisterShape:
        """Return the shape of `seed` for `workers` workers; each live key has at least two workers when there are
        two."""
        chance = chance_of_text("register", seed)
        live_keys = 1 + below(chance, max(1, min(3, workers // 2)), 1)
        return cls(live_keys, 25 + chance // 16 % 16, workers, chance % len(_PORTFOLIOS))

    def roles_for(self, number: int) -> tuple[str, ...]:
        """Return the role of each worker on the key of that number."""
        portfolio = _PORTFOLIOS[(self.portfolio + number // _KEYS_PER_DEAL) % len(_PORTFOLIOS)]
        return tuple(portfolio[worker % len(portfolio)] for worker in range(self.workers))

    def keys_begun(self, operations: int) -> int:
        """Return the largest number of keys that `operations` operations begin."""
        return self.live_keys + operations // self.operations_per_key


class OneRegister(Generator, frozen=True, gc=False):
    """Operations on `key` without end; `next_value` has not been written, `recent` are the values planned last."""

    key: str
    roles: tuple[str, ...]
    next_value: int = 1
    recent: tuple[int, ...] = ()

    def op(self, context: Context) -> Offer:
        """Return a read, write or compare-and-set by a free worker, as its role weighs them; the first change is a
        write."""
        if not context.free:
            return PENDING, self
        worker = context.free_worker()
        reads, writes = _ROLES[self.roles[worker % len(self.roles)]]
        drawn = below(context.chance, 100, _ACTION_SALT)
        if drawn < reads and (self.recent or not writes):
            return Draft("read", self.key, None, worker, context.time_us), self
        new = self.next_value
        after = OneRegister(self.key, self.roles, new + 1, (new, *self.recent[: _RECENT - 1]))
        if not self.recent or drawn < reads + writes:
            return Draft("write", self.key, new, worker, context.time_us), after
        old = self._expected(context)
        return Draft("cas", self.key, [old, new], worker, context.time_us), after

    def _expected(self, context: Context) -> int:
        """Return the latest planned value two times in three, else one of the others: some must fail."""
        drawn = context.below(3 * len(self.recent), _RECENT_SALT)
        return self.recent[0] if drawn < 2 * len(self.recent) else self.recent[drawn - 2 * len(self.recent)]


class Register:
    """Reads, writes and compare-and-sets on a few independent keys at a time."""

    name = "register"
    promise = "each key is a linearizable register"
    functions = ("read", "write", "cas")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        shape = RegisterShape.drawn(workers, seed)

        def one_register(number: int) -> Generator:
            return limit(shape.operations_per_key, OneRegister(f"k{number}", shape.roles_for(number)))

        keys = independent(one_register, groups=shape.live_keys)
        return limit(operations, stagger(interval_us, keys))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads by every worker of each of the last keys that `operations` operations begin, from its own key
        on.

        The last key may have had no operation before; reading it is harmless.
        """
        begun = RegisterShape.drawn(workers, seed).keys_begun(operations)
        numbers = range(max(0, begun - FINAL_KEYS), begun)
        if not numbers:
            return EMPTY
        return each_thread(sequence(*(emit("read", f"k{number}") for number in reversed(numbers))))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of linearizability first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, LinearizabilityChecker, StatsChecker, VacuityChecker

        return (
            LinearizabilityChecker(model="cas-register"),
            StatsChecker(),
            AvailabilityChecker(),
            VacuityChecker(self.access),
        )
