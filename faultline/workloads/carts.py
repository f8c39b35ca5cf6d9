"""The workload `cart`: elements are added to shopping carts, and in the end none may be missing.

The classic of stores that stay writable: two people add to one cart while replicas are cut off from each other, and
the application makes one cart of the two it finds (DeCandia et al., "Dynamo", 2007, 4.4). A cart may show less than it
did a moment ago, because a read is no promise; every acknowledged element must be in the last one.

The operations are those of `set`. After the heal every worker reads the last carts twice, with a pause between.
"""

from __future__ import annotations

from faultline.harness.generator import Generator, each_thread, sequence, sleep
from faultline.harness.generator.core import EMPTY
from faultline.harness.workload import Checker
from faultline.workloads.sets import Sets

__all__ = ["Carts"]

_PAUSE_US = 300_000


class Carts:
    """Adds to and reads of a cart or two at a time."""

    name = "cart"
    promise = "no acknowledged addition is missing in the end, and every element was added by a client"
    functions = Sets.functions
    access = Sets.access
    generator = Sets.generator

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last carts by every worker, and after a pause again."""
        reads = Sets().final_generator(workers=workers, seed=seed, operations=operations)
        if reads is EMPTY:
            return reads
        return sequence(reads, each_thread(sleep(_PAUSE_US)), reads)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the last read of each cart; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.classic.sets import SetChecker

        return (SetChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
