"""The workload `causal-pairs`: a cause and its effect on two keys, which two servers may keep.

Each pair has one writer, which counts up: the left half first, then, knowing that, the right half. All others read the
right half, and the left half as of the stamp of the right. If stamps follow causes, the left half is never the older.
"""

from __future__ import annotations

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
from faultline.harness.generator.core import EMPTY, PENDING, Offer, worker_mask
from faultline.harness.workload import Checker

__all__ = ["CausalPairs", "OnePair"]

_INTERVAL_US = 18_500
_OPERATIONS_PER_PAIR = 30
_FINAL_PAIRS = 4
_WRITES_PERCENT = 40
_ACTION_SALT = 0x5851_F42D_4C95_7F2D


class OnePair(Generator, frozen=True, gc=False):
    """Operations on the pair `key` without end: `writer` writes `next_value` at times, all others read.

    The worker that begins becomes the writer.
    """

    key: str
    writer: int | None = None
    next_value: int = 1

    def op(self, context: Context) -> Offer:
        """Return a write when the writer is free and drawn, else a read by a free worker."""
        if not context.free:
            return PENDING, self
        writer = context.free_worker() if self.writer is None else self.writer
        is_drawn = self.writer is None or below(context.chance, 100, _ACTION_SALT) < _WRITES_PERCENT
        if is_drawn and context.free & worker_mask([writer]):
            after = OnePair(self.key, writer, self.next_value + 1)
            return Draft("write-pair", self.key, self.next_value, writer, context.time_us), after
        return Draft("read-pair", self.key, None, context.free_worker(), context.time_us), self


class CausalPairs:
    """Writes and reads of pairs, two alive at once."""

    name = "causal-pairs"
    functions = ("write-pair", "read-pair")
    access = Access(reads=("read-pair",), final_read="read-pair")
    promise = "a client that reads an effect finds its cause at the effect's stamp"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = _INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""

        def one_pair(number: int) -> Generator:
            return limit(_OPERATIONS_PER_PAIR, OnePair(f"p{number}"))

        return limit(operations, stagger(interval_us, independent(one_pair, groups=min(2, workers))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last pairs by every worker."""
        begun = 2 + operations // _OPERATIONS_PER_PAIR
        if not operations:
            return EMPTY
        numbers = range(max(0, begun - _FINAL_PAIRS), begun)
        return each_thread(sequence(*(emit("read-pair", f"p{number}") for number in reversed(numbers))))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of pairs first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.causal_pairs import CausalPairsChecker

        return (CausalPairsChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
