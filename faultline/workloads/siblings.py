"""The workload `siblings`: reads and writes on short-lived keys of a store that answers with concurrent values.

A write replaces the values that its client had last read of the key, so the reads between the writes decide how much is
concurrent: some workers mostly write, without knowing of each other, others read first. After the heal every worker
reads the last keys twice, with a pause between: the first reads may repair replicas, the second ones must agree.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Generator, each_thread, sequence, sleep
from faultline.harness.generator.core import EMPTY
from faultline.harness.workload import Checker
from faultline.workloads.read_write import ReadWrite

__all__ = ["SiblingWrites"]

_PAUSE_US = 300_000


class SiblingWrites:
    """Reads and writes on a few independent keys at a time, with conflicts shown."""

    name = "siblings"
    promise = "no acknowledged write is lost without a concurrent sibling, and replicas converge"
    functions = ("read", "write")
    access = Access(final_read="read")
    answers = "siblings"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return ReadWrite().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last keys by every worker, and after a pause again."""
        reads = ReadWrite().final_generator(workers=workers, seed=seed, operations=operations)
        if reads is EMPTY:
            return reads
        return sequence(reads, each_thread(sleep(_PAUSE_US)), reads)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of siblings first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, SiblingsChecker, StatsChecker, VacuityChecker

        return (SiblingsChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
