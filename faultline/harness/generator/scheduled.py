"""A plan's operations as a generator: each by its worker, at its time or once the worker is free, whichever is later.

This is what every run is driven by, so it does the least it can: drafts are made once, a state is one cursor and one
due time per worker, and an ask looks at the heads of the free workers only, however long the plan is.
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
    members,
    worker_mask,
)
from faultline.harness.plan import PlannedOperation

__all__ = ["Scheduled", "scheduled"]


class Scheduled(Generator, frozen=True, gc=False):
    """`queues[w]` are worker w's drafts, `cursors[w]` the next one, `due_us[w]` its time (`FOREVER`: none left).

    `mask` are the workers that have a queue: a run may have more of them than its plan uses.
    """

    listens: ClassVar[bool] = False

    queues: tuple[tuple[Draft, ...], ...]
    cursors: tuple[int, ...]
    due_us: tuple[int, ...]
    left: int
    mask: int

    def op(self, context: Context) -> Offer:
        """The earliest draft of a free worker; the lowest worker of those due together."""
        due_us = self.due_us
        best, best_us = -1, FOREVER
        for worker in members(context.free & self.mask):
            at_us = due_us[worker]
            if at_us < best_us:
                best, best_us = worker, at_us
        if best < 0:
            return (PENDING, self) if self.left else (None, EMPTY)
        queue, cursor = self.queues[best], self.cursors[best]
        draft = queue[cursor]
        following = cursor + 1
        next_us = queue[following].at_us if following < len(queue) else FOREVER
        after = Scheduled(
            self.queues,
            (*self.cursors[:best], following, *self.cursors[best + 1 :]),
            (*due_us[:best], next_us, *due_us[best + 1 :]),
            self.left - 1,
            self.mask,
        )
        return draft, after


def scheduled(operations: Sequence[PlannedOperation], *, workers: int = 0) -> Generator:
    """The planned `operations` as a generator; those of one worker in order of time, equal times in the order given.

    `workers` is how many there are, when some of them may have nothing planned.
    """
    busy = 1 + max((operation.worker for operation in operations), default=-1)
    queues: list[list[Draft]] = [[] for _ in range(max(busy, workers))]
    for row in sorted(operations, key=_at_us):
        queues[row.worker].append(Draft(row.f, row.key, row.value, row.worker, row.at_us))
    due_us = tuple(queue[0].at_us if queue else FOREVER for queue in queues)
    mask = worker_mask(range(len(queues)))
    return Scheduled(tuple(map(tuple, queues)), (0,) * len(queues), due_us, len(operations), mask)


def _at_us(operation: PlannedOperation) -> int:
    return operation.at_us
