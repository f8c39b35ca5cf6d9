"""The workload `read-write`: reads and writes on keys that live for some forty operations each.

It is for registers without compare-and-set: leaderless quorums can make reads and writes linearizable, but no operation
that decides (Herlihy, "Wait-Free Synchronization", 1991: a register has consensus number one). It is `register` with
every compare-and-set planned as a write of its new value, so values still count up per key and are never used twice.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Draft, Generator, map_operations
from faultline.harness.workload import Checker
from faultline.workloads.register import Register

__all__ = ["ReadWrite"]


class ReadWrite:
    """Reads and writes on a few independent keys at a time."""

    name = "read-write"
    promise = "each key is a linearizable register of reads and writes"
    functions = ("read", "write")
    access = Access(final_read="read")

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = 18_500) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        mixed = Register().generator(workers=workers, operations=operations, seed=seed, interval_us=interval_us)
        return map_operations(_without_compare_and_set, mixed)

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return reads of each of the last keys by every worker."""
        return Register().final_generator(workers=workers, seed=seed, operations=operations)

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of linearizability first; then statistics, availability after the heal, and vacuity."""
        return Register().checkers()


def _without_compare_and_set(draft: Draft) -> Draft:
    if draft.f != "cas":
        return draft
    _, new = draft.value
    return Draft("write", draft.key, new, draft.worker, draft.at_us)
