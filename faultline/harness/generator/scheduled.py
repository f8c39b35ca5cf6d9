"""A plan's operations as a generator: each by its worker, at its time or once the worker is free, whichever is later.

It drives every run, so it does as little as possible: it refers to the plan's own operations, a state is one cursor and
one due time per worker, and `op` looks only at the heads of the free workers, however long the plan is. Before the next
operation is due, `op` makes nothing but the time at which to ask again.

A worker may be late: its operation took long, or no node serves. In real time it skips its backlog, all but the
operation that was due last, so that no burst follows and the operations last as long as planned. In the simulated world
it catches up until the final operations are due: those must not wait for a backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from faultline.harness.generator.core import (
    EMPTY,
    FOREVER,
    PENDING,
    Context,
    Draft,
    Generator,
    Offer,
    Pending,
    members,
    worker_mask,
)
from faultline.harness.plan import PlannedOperation

__all__ = ["Scheduled", "scheduled"]


class Scheduled(Generator, frozen=True, gc=False):
    """`queues[w]` are worker w's operations, `cursors[w]` the next one, `due_us[w]` its time (`FOREVER`: none left).

    `mask` holds the workers that have a queue: a run may have more workers than its plan uses. From `late_from_us`
    on a worker that is late performs only the latest of the operations that were due before `skip_before_us`.
    """

    listens: ClassVar[bool] = False

    queues: tuple[tuple[PlannedOperation, ...], ...]
    cursors: tuple[int, ...]
    due_us: tuple[int, ...]
    left: int
    mask: int
    skip_before_us: int = 0
    late_from_us: int = 0

    def op(self, context: Context) -> Offer:
        """Return the earliest operation of a free worker, once it is due; the lowest worker of those due together."""
        due_us = self.due_us
        best, best_us = -1, FOREVER
        for worker in members(context.free & self.mask):
            at_us = due_us[worker]
            if at_us < best_us:
                best, best_us = worker, at_us
        if best < 0:
            return (PENDING, self) if self.left else (None, EMPTY)
        if best_us > context.time_us:
            return Pending(best_us), self
        queue, cursor = self.queues[best], self.cursors[best]
        skipped = 0
        if best_us < self.skip_before_us and context.time_us >= self.late_from_us:
            most_us = min(context.time_us, self.skip_before_us - 1)
            while cursor + 1 < len(queue) and queue[cursor + 1].at_us <= most_us:
                cursor += 1
                skipped += 1
            best_us = queue[cursor].at_us
        operation = queue[cursor]
        following = cursor + 1
        next_us = queue[following].at_us if following < len(queue) else FOREVER
        after = Scheduled(
            self.queues,
            (*self.cursors[:best], following, *self.cursors[best + 1 :]),
            (*due_us[:best], next_us, *due_us[best + 1 :]),
            self.left - 1 - skipped,
            self.mask,
            self.skip_before_us,
            self.late_from_us,
        )
        answer_of = operation.answer_of or None
        return Draft(operation.f, operation.key, operation.value, best, best_us, answer_of), after


def scheduled(
    operations: Sequence[PlannedOperation], *, workers: int = 0, skip_before_us: int = 0, late_from_us: int = 0
) -> Generator:
    """Return the planned `operations` as a generator; those of one worker in order of time, equal times in the order
    given.

    `workers` is their number, when some of them may have nothing planned. From `late_from_us`
    on a worker that is late leaves out all but the latest of the operations that were due before `skip_before_us`.
    """
    busy = 1 + max((operation.worker for operation in operations), default=-1)
    queues: list[list[PlannedOperation]] = [[] for _ in range(max(busy, workers))]
    for operation in sorted(operations, key=_at_us):
        queues[operation.worker].append(operation)
    due_us = tuple(queue[0].at_us if queue else FOREVER for queue in queues)
    mask = worker_mask(range(len(queues)))
    return Scheduled(
        tuple(map(tuple, queues)), (0,) * len(queues), due_us, len(operations), mask, skip_before_us, late_from_us
    )


def _at_us(operation: PlannedOperation) -> int:
    return operation.at_us
