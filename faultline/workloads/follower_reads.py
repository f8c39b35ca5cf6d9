"""The workloads `follower-reads`, `read-your-writes` and `bounded-staleness`: what reads from followers may promise.

All three perform reads and writes as `read-write` does; they differ in what is judged. A store that keeps less than a
workload asks for shows anomalies there, which are then *expected*: plain reads from followers do not give
`read-your-writes`, and stamps of writes alone do not give `follower-reads`.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Generator
from faultline.harness.workload import Checker
from faultline.workloads.read_write import ReadWrite

__all__ = ["BoundedStaleness", "FollowerReads", "ReadYourWrites"]


class FollowerReads:
    """Reads and writes on a few independent keys at a time, judged by session."""

    name = "follower-reads"
    promise = "a session reads its own writes, never goes back, and sees nothing that was not written"
    functions = ("read", "write")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """`operations` operations, on average `interval_us` apart over all workers together."""
        return ReadWrite().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Every worker reads each of the last keys."""
        return ReadWrite().final_generator(workers=workers, seed=seed, operations=operations)

    def checkers(self) -> tuple[Checker, ...]:
        """The checker of follower reads first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import FollowerReadsChecker

        return (FollowerReadsChecker(), *_usual())


class ReadYourWrites(FollowerReads):
    """The same, with less asked for."""

    name = "read-your-writes"
    promise = "a session reads its own writes, and nothing that was not written"

    def checkers(self) -> tuple[Checker, ...]:
        """Monotonic reads are not judged."""
        from faultline.checkers import FollowerReadsChecker

        return (FollowerReadsChecker(monotonic_reads=False), *_usual())


class BoundedStaleness(FollowerReads):
    """The same, with the age of answers in place of sessions."""

    name = "bounded-staleness"
    promise = "no answer misses a write that completed longer ago than max_staleness_ms"

    def checkers(self) -> tuple[Checker, ...]:
        """Sessions are not judged."""
        from faultline.checkers import FollowerReadsChecker

        checker = FollowerReadsChecker(read_your_writes=False, monotonic_reads=False, bounded=True)
        return (checker, *_usual())


def _usual() -> tuple[Checker, ...]:
    from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker

    return (StatsChecker(), AvailabilityChecker(), VacuityChecker(FollowerReads.access))
