"""The workloads `set` and `sequential`: elements are added to sets that only grow, and the sets are read.

Both run the same operations and differ in the judgement of the answers.

`set` (Jepsen's `set-full`) follows each element through its life: once its add was acknowledged, or a read saw it,
every later read must contain it. This is durability in its plainest form, and it finds lost writes that a register
forgets as soon as it is overwritten.

`sequential` asks for order alone, in the manner of Jepsen's `sequential` and `causal-reverse`: a client that sees a
write sees all that were acknowledged before it began, and no client sees a set shrink. A replica that lags behind, but
applies the log in order, keeps the first half of the promise; a client that moves to another such replica breaks the
second.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US, Objects

__all__ = ["Sequential", "Sets"]

_SALT = 0x9FB2_1C65_1E98_DF25
_ADDS_OF_100 = 55


class Sets:
    """Adds to and reads of a set or two at a time."""

    name = "set"
    promise = "every element whose add was acknowledged is in every later read, and only added elements are"
    functions = ("read", "add")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return Objects.drawn("set", workers, seed).generator(_step, operations, interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last sets by every worker."""
        return Objects.drawn("set", workers, seed).final_reads(operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the life of each element first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted
        from faultline.checkers.classic.set_full import SetFullChecker

        lives = adapted(SetFullChecker(linearizable=True), answers=_elements)
        return (lives, StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


class Sequential:
    """The same operations, judged by the order in which elements become visible."""

    name = "sequential"
    promise = "elements become visible in the order in which their adds were acknowledged, and no client goes back"
    functions = ("read", "add")
    access = Access(final_read="read")
    generator = Sets.generator
    final_generator = Sets.final_generator

    def checkers(self) -> tuple[Checker, ...]:
        """Return the order of elements, then sets that shrink; then statistics, availability after the heal, and
        vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.adapted import adapted, renamed
        from faultline.checkers.classic.causal_reverse import CausalReverseChecker
        from faultline.checkers.classic.monotonic import MonotonicChecker

        return (
            adapted(CausalReverseChecker(), requests=renamed({"add": "write"}), answers=_elements),
            adapted(MonotonicChecker(scope="process"), answers=_elements),
            StatsChecker(),
            AvailabilityChecker(),
            VacuityChecker(self.access),
        )


def _step(context: Context, name: str, number: int) -> tuple[Draft, int]:
    if context.below(100, _SALT) < _ADDS_OF_100:
        return Draft("add", name, number), number + 1
    return Draft("read", name), number


def _elements(answer: Any) -> Any:
    """Return the elements of a set, which is empty before its first addition."""
    return [] if answer is None else answer
