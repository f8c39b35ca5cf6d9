"""The workload `metadata`: values that spread, read wherever a client happens to be.

Reads and writes go on through the faults. After the heal every worker reads the last keys and the view of who is up,
and after a pause of some gossip rounds the same again: by then everybody must know the same.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Generator, each_thread, emit, sequence, sleep
from faultline.harness.generator.core import EMPTY
from faultline.harness.workload import Checker
from faultline.workloads.read_write import ReadWrite

__all__ = ["Metadata"]

_PAUSE_US = 900_000


class Metadata:
    """Writes by the owners of keys, reads by everybody, and the views at the end."""

    name = "metadata"
    functions = ("read", "write", "view")
    access = Access(writes=("write",), final_read="read")
    promise = "after a while everybody knows the same, and knows who is up"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """`operations` operations, on average `interval_us` apart over all workers together."""
        return ReadWrite().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Every worker reads the last keys and its node's view, and after a pause both again."""
        reads = ReadWrite().final_generator(workers=workers, seed=seed, operations=operations)
        if reads is EMPTY:
            return reads
        once = sequence(reads, each_thread(emit("view")))
        return sequence(once, each_thread(sleep(_PAUSE_US)), once)

    def checkers(self) -> tuple[Checker, ...]:
        """Convergence first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.convergence import ConvergenceChecker

        return (ConvergenceChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
