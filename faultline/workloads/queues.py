"""The workload `queue`: elements are put into queues by some clients and taken out by others, and all are drained.

A queue asks of its store what a register cannot: that an element, once acknowledged, comes out, and comes out once. A
fail-over can break both at the same time. If it forgets an enqueue, the element is lost; if it forgets a dequeue, the
element is delivered again, to another client (Jepsen's `total-queue`).

Queues live as long as the run, so that the drain after the heal accounts for every element. Their order is not judged.
"""

from __future__ import annotations

from faultline.harness.access import Access
from faultline.harness.generator import Context, Draft, Generator, each_thread, emit, limit, sequence, stagger, unfold
from faultline.harness.generator.chance import below, chance_of_text
from faultline.harness.workload import Checker
from faultline.workloads.objects import INTERVAL_US

__all__ = ["Queues"]

_KIND_SALT = 0x9FB2_1C65_1E98_DF25
_QUEUE_SALT = 0xEB44_ACCA_B455_D165
_ENQUEUES_OF_100 = 55
"""The share of enqueues: a little more than half, so that the drain finds elements."""


class Queues:
    """Enqueues to and dequeues from a queue or two."""

    name = "queue"
    promise = "every acknowledged element comes out once, and no other element does"
    functions = ("enqueue", "dequeue", "drain")
    access = Access(reads=("drain",), writes=("enqueue",))

    def generator(self, *, workers: int, operations: int, seed: int, interval_us: int = INTERVAL_US) -> Generator:
        """Return `operations` operations, on average `interval_us` apart over all workers together."""
        names = _names(seed)

        def step(context: Context, number: int) -> tuple[Draft, int]:
            name = names[context.below(len(names), _QUEUE_SALT)]
            if context.below(100, _KIND_SALT) < _ENQUEUES_OF_100:
                return Draft("enqueue", name, number), number + 1
            return Draft("dequeue", name), number

        return limit(operations, stagger(interval_us, unfold(step, 1)))

    def final_generator(self, *, workers: int, seed: int, operations: int = 200) -> Generator:
        """Return two drains of each queue by every worker: all but the first find it empty."""
        return each_thread(sequence(*(emit("drain", name) for name in _names(seed) * 2)))

    def checkers(self) -> tuple[Checker, ...]:
        """Return the checker of elements first; then statistics, availability after the heal, and vacuity."""
        from faultline.checkers import AvailabilityChecker, StatsChecker, VacuityChecker
        from faultline.checkers.classic.queues import TotalQueueChecker

        return (TotalQueueChecker(), StatsChecker(), AvailabilityChecker(), VacuityChecker(self.access))


def _names(seed: int) -> tuple[str, ...]:
    return tuple(f"queue-{number}" for number in range(1 + below(chance_of_text("queues", seed), 2, 1)))
