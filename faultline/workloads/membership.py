"""The workload `membership`: clients of all nodes ask for the members of the cluster and its coordinator.

After the heal all workers ask, and after a pause, in which groups can merge, all ask again.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Generator, cycle, each_thread, emit, limit, sequence, sleep, stagger
from faultline.harness.generator.core import EMPTY
from faultline.harness.workload import Checker

__all__ = ["Memberships"]

_INTERVAL_US = 18_500
_PAUSE_US = 1_300_000


class Memberships:
    """Views, through the faults and after them."""

    name = "membership"
    functions = ("view",)
    access = Access(reads=("view",), writes=())
    answers = "memberships"
    promise = "no two disjoint groups serve clients, and after the heal there is one cluster with one coordinator"

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = _INTERVAL_US) -> Generator:
        """Return `operations` views, on average `interval_us` apart over all workers together."""
        return limit(operations, stagger(interval_us, cycle(emit("view"))))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return one question by every worker, and after a pause another."""
        if not operations:
            return EMPTY
        once = each_thread(emit("view"))
        return sequence(once, each_thread(sleep(_PAUSE_US)), once)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of memberships first; then statistics and vacuity."""
        from faultline.checkers import StatsChecker, VacuityChecker
        from faultline.checkers.membership import MembershipChecker

        return (MembershipChecker(), StatsChecker(), VacuityChecker(self.access))
