"""The common part of workloads on single objects, which live for some sixty operations and are read at the end.

A workload gives the next operation on an object; the number of objects that live at once is drawn from the seed, as are
the pauses. Objects have a bounded life, so that the checkers' work grows with the run and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

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
    unfold,
)
from faultline.harness.generator.chance import below, chance_of_text

__all__ = ["INTERVAL_US", "Objects", "Step"]

INTERVAL_US = 18_500
"""The usual distance of operations over all workers together."""

FINAL_OBJECTS = 4
"""The number of the last objects that are read after the heal."""

Step = Callable[[Context, str, int], tuple[Draft, int]]
"""The next operation on the object of that name, and the number to go on with: `number` has not been used yet."""


class Objects(msgspec.Struct, frozen=True):
    """The shape that one seed draws for `name`: the number of objects alive at once, and the operations of each."""

    name: str
    live: int
    operations_each: int

    @classmethod
    def drawn(cls, name: str, workers: int, seed: int) -> Objects:
        """Return the shape of `seed`; each object has at least two workers when there are two."""
        chance = chance_of_text("objects", name, seed)
        return cls(name, 1 + below(chance, max(1, min(2, workers // 2)), 1), 50 + chance // 16 % 31)

    def generator(self, step: Step, operations: int, interval_us: int) -> Generator:
        """Return `operations` operations by `step`, on average `interval_us` apart over all workers together."""

        def one(number: int) -> Generator:
            name = f"{self.name}-{number}"
            return limit(self.operations_each, unfold(lambda context, state: step(context, name, state), 1))

        return limit(operations, stagger(interval_us, independent(one, groups=self.live)))

    def final_reads(self, operations: int) -> Generator:
        """Return reads by every worker of each of the last objects that `operations` operations begin."""
        begun = self.live + operations // self.operations_each
        numbers = range(max(0, begun - FINAL_OBJECTS), begun)
        return each_thread(sequence(*(emit("read", f"{self.name}-{number}") for number in reversed(numbers))))
