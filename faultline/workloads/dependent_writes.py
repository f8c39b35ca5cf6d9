"""The workloads `dependent-writes`, `causal-writes` and `moved-sessions`: clients act on what was read, across keys.

A *chain* has three keys. Clients write numbers to the first. A client that has read the first writes what it read to
the second, under a number of its own; a client that has read the second writes that to the third. A client that reads
an effect must then see its cause, or a newer value, on the key before.

A worker performs one script after the other: it writes the first key; or reads a key and writes the next; or reads all
three, last key first. In `causal-writes` the reader itself writes, for stores that order what one session knows. In
`dependent-writes` every other such write depends on the answer that another worker got, as when a service reads and
tells a second one to write: the store sees no connection, and only linearizability keeps the order.

In `moved-sessions` a user also changes the client: another worker, at another node, is handed the answer to a write,
which is all that the interface of the store hands over, and goes on from there (`read-after`).

Keys that are linearizable one by one are so together (Herlihy and Wing 1990, theorem 1), so that `dependent-writes`
finds no anomaly that is none of a single key; it makes others likely. The other two judge what no single key shows.

Every value is `[number, answer]`, and no number is used twice on a key.

Sources: Lamport, "Time, clocks, and the ordering of events" (CACM 1978), on what happened before and on messages beside
the system; Terry et al., "Session guarantees for weakly consistent replicated data" (1994), on writes after reads.
"""

from __future__ import annotations

from typing import Any

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
from faultline.harness.generator.chance import below
from faultline.harness.generator.core import EMPTY, PENDING, Offer, members
from faultline.harness.operation import AnswerOf
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["CausalWrites", "DependentWrites", "MovedSessions", "OneChain"]

_KEYS_PER_CHAIN = 3
_OPERATIONS_PER_CHAIN = 60
_FINAL_CHAINS = 3
_SCRIPT_SALT = 0x9FB2_1C65_1E98_DF25
_SOURCE_SALT = 0xEB44_ACCA_B455_D165
_TOLD_SALT = 0xC2B2_AE3D_27D4_EB4F
_WRITTEN_SALT = 0x5851_F42D_4C95_7F2D


class OneChain(Generator, frozen=True, gc=False):
    """Scripts on `keys` without end: `scripts[w]` is what worker w still has to do, `next_number` has not been
    written.

    With `across_workers` half of the dependent writes depend on the answer that another worker got. With `moves` there
    are sessions that move as well: a worker is handed the answer to a write of another one, and reads all keys.
    """

    keys: tuple[str, ...]
    across_workers: bool
    moves: bool
    scripts: tuple[tuple[Draft, ...], ...]
    next_number: int = 1

    def op(self, context: Context) -> Offer:
        """Return the next step of a free worker's script; a worker without one begins another."""
        if not context.free:
            return PENDING, self
        worker = context.free_worker()
        first, *rest = self.scripts[worker] or self._script(context)
        number = self.next_number
        answer_of: AnswerOf | None = None
        value: Any = None
        if first.f == "write":
            place = self.keys.index(first.key or "")
            is_told = self.across_workers and below(context.chance, 2, _TOLD_SALT)
            source = self._other(context, worker) if is_told else worker
            value = number if place else [number, None]
            answer_of = AnswerOf(source, "read", self.keys[place - 1]) if place else None
        elif first.f == "read-after":
            written = self.keys[below(context.chance, len(self.keys), _WRITTEN_SALT)]
            answer_of = AnswerOf(self._other(context, worker), "write", written)
        scripts = (*self.scripts[:worker], tuple(rest), *self.scripts[worker + 1 :])
        after = OneChain(self.keys, self.across_workers, self.moves, scripts, number + (first.f == "write"))
        return Draft(first.f, first.key, value, worker, context.time_us, answer_of), after

    def _script(self, context: Context) -> tuple[Draft, ...]:
        keys = self.keys
        drawn = below(context.chance, (7 if self.moves else 4) + len(keys), _SCRIPT_SALT)
        if drawn < 2:
            return (Draft("write", keys[0]),)
        if drawn < 1 + len(keys):
            return Draft("read", keys[drawn - 2]), Draft("write", keys[drawn - 1])
        every = tuple(Draft("read", key) for key in reversed(keys))
        return every if drawn < 4 + len(keys) else (Draft("read-after", keys[-1]), *every[1:])

    def _other(self, context: Context, worker: int) -> int:
        """Return another worker of those that share the chain; `worker` itself where it is alone."""
        others = [other for other in members(context.workers) if other != worker] or [worker]
        return others[below(context.chance, len(others), _SOURCE_SALT)]


class DependentWrites:
    """Reads, and writes because of them, on two chains of three keys at a time."""

    name = "dependent-writes"
    promise = "each key is a linearizable register, and a client that reads an effect finds its cause"
    functions: tuple[str, ...] = ("read", "write")
    access = Access(final_read="read")
    included_in = "read-write"
    _across_workers = True
    _moves = False

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""

        def one_chain(number: int) -> Generator:
            chain = OneChain(_keys(number), self._across_workers, self._moves, ((),) * workers)
            return limit(_OPERATIONS_PER_CHAIN, chain)

        return limit(operations, stagger(interval_us, independent(one_chain, groups=1 + (workers > 3))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of the last chains by every worker, effects before causes."""
        if not operations:
            return EMPTY
        begun = 2 + operations // _OPERATIONS_PER_CHAIN
        numbers = range(max(0, begun - _FINAL_CHAINS), begun)
        keys = [key for number in reversed(numbers) for key in reversed(_keys(number))]
        return each_thread(sequence(*(emit("read", key) for key in keys)))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the linearizability of each key and the chains first; then statistics, availability after the heal,
        and vacuity."""
        from faultline.checkers import LinearizabilityChecker
        from faultline.checkers.dependent_writes import DependentWritesChecker

        return (LinearizabilityChecker(model="cas-register"), DependentWritesChecker(across_clients=True), *_usual())


class CausalWrites(DependentWrites):
    """The same where each write depends on a read of its own worker, judged by what sessions know."""

    name = "causal-writes"
    promise = "a client that reads an effect finds its cause or a newer value, and no session goes back"
    _across_workers = False

    def checkers(self) -> tuple[Checker, ...]:
        """Return the chains first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers.dependent_writes import DependentWritesChecker

        return (DependentWritesChecker(), *_usual())


class MovedSessions(CausalWrites):
    """The same, and sessions that move: a client goes on where another has been, at another node."""

    name = "moved-sessions"
    promise = "a client that is handed the answer to a write sees that write, and what its writer knew, or newer values"
    functions = ("read", "write", "read-after")
    access = Access(reads=("read", "read-after"), final_read="read")
    included_in = ""
    _moves = True


def _keys(number: int) -> tuple[str, ...]:
    return tuple(f"c{number}/{place}" for place in range(_KEYS_PER_CHAIN))


def _usual() -> tuple[Checker, ...]:
    from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker

    return (StatsChecker(), AvailabilityChecker(), VacuityChecker(MovedSessions.access))
