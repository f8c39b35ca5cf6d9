"""The workload `metadata`: values that spread, read at the node of each client.

Reads and writes go on through the faults. After the heal every worker asks for the view of live nodes, and again after
a pause, in which late writes end and values spread; then it reads every key. By then all nodes must agree."""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Generator, each_thread, emit, sequence, sleep
from faultline.harness.generator.core import EMPTY
from faultline.harness.workload import Checker
from faultline.workloads.read_write import ReadWrite

__all__ = ["Metadata"]

_PAUSE_US = 1_800_000
"""The pause: clients that give up after two seconds have ended their last write, and half a second has passed."""


class Metadata:
    """Writes by the owners of keys, reads by all, and the views at the end."""

    name = "metadata"
    functions = ("read", "write", "view")
    access = Access(writes=("write",), final_read="read", final_readers=None)
    promise = "after a while all nodes agree on all values, and on which nodes are up"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return ReadWrite().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return a question for its node's view by every worker, and after a pause another."""
        if not operations:
            return EMPTY
        view = each_thread(emit("view"))
        return sequence(view, each_thread(sleep(_PAUSE_US)), view)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of convergence first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.convergence import ConvergenceChecker

        return (ConvergenceChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))
