"""The workloads `follower-reads`, `read-your-writes` and `bounded-staleness`: promises of reads from followers.

All three perform reads and writes as `read-write` does; they differ in their checkers. A store that promises less than
a workload asks for shows anomalies there, which are then *expected*: plain reads from followers do not give
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
    promise = "a session reads its own writes, never goes back, and sees only written values"
    functions = ("read", "write")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        return ReadWrite().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last keys by every worker."""
        return ReadWrite().final_generator(workers=workers, seed=seed, operations=operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of follower reads first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import FollowerReadsChecker

        return (FollowerReadsChecker(), *_usual())


class ReadYourWrites(FollowerReads):
    """The same operations, with a weaker promise."""

    name = "read-your-writes"
    promise = "a session reads its own writes, and only written values"

    def checkers(self) -> tuple[Checker, ...]:
        """Return the same checkers without monotonic reads."""
        from faultline.checkers import FollowerReadsChecker

        return (FollowerReadsChecker(monotonic_reads=False), *_usual())


class BoundedStaleness(FollowerReads):
    """The same, with the age of answers in place of sessions."""

    name = "bounded-staleness"
    promise = "no answer misses a write that completed longer ago than max_staleness_ms"

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of the age of answers in place of that of sessions."""
        from faultline.checkers import FollowerReadsChecker

        checker = FollowerReadsChecker(read_your_writes=False, monotonic_reads=False, bounded=True)
        return (checker, *_usual())


def _usual() -> tuple[Checker, ...]:
    from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker

    return (StatsChecker(), AvailabilityChecker(), VacuityChecker(FollowerReads.access))
