"""The two functions of every generator, and the values that pass through them.

`op(context)` asks "what next?" and answers an *offer* and the generator to go on with:

- a `Draft`: this operation, by this free worker, no earlier than `at_us`;
- a `Pending`: nothing yet; ask again at `at_us`, or when something completes (`PENDING`: only then);
- `None`: nothing ever again.

The caller goes on with the returned generator when it *performs* the draft or when the offer was pending. It drops it
when the draft lies in the future and something else happens first; so asking commits to nothing, and asking twice in
the same context gives the same answer twice.

`update(context, event)` tells a generator that an operation completed. There is no event for an invocation: the
generator that emitted it knows from its own next state, and all others see a worker missing from `context.free`.

Sets of workers are bit masks (bit 0 is the nemesis, bit w + 1 client worker w): immutable, and narrowing is one `&`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from faultline.harness.generator.chance import below, chance_of, reseeded
from faultline.harness.operation import NEMESIS, AnswerOf
from faultline.harness.outcome import OutcomeKind

__all__ = [
    "EMPTY",
    "FOREVER",
    "PENDING",
    "Context",
    "Draft",
    "Empty",
    "Event",
    "Generator",
    "Offer",
    "Pending",
    "assigned",
    "members",
    "worker_mask",
]

FOREVER = (1 << 63) - 1
"""A time that never comes."""

_WORKER_SALT = 0xC2B2_AE3D_27D4_EB4F
_UNASSIGNED = -2


@lru_cache(maxsize=4096)
def members(mask: int) -> tuple[int, ...]:
    """Return the workers in `mask`, ascending; the nemesis first when it is one of them."""
    return tuple(bit - 1 for bit in range(mask.bit_length()) if mask >> bit & 1)


def worker_mask(workers: Iterable[int]) -> int:
    """Return the bit mask of `workers` (client workers from 0 up, and `NEMESIS`)."""
    mask = 0
    for worker in workers:
        mask |= 1 << (worker + 1)
    return mask


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An operation that may start: `f` on `key` with `value`, by `worker`, no earlier than `at_us`.

    Written by hand it leaves out `worker` and `at_us`; the leaf that emits it assigns them. With `answer_of` it is
    invoked with `[value, answer]`.
    """

    f: str
    key: str | None = None
    value: Any = None
    worker: int = _UNASSIGNED
    at_us: int = 0
    answer_of: AnswerOf | None = None


class Pending(msgspec.Struct, frozen=True, gc=False):
    """Nothing to do before `at_us`, unless something completes earlier."""

    at_us: int = FOREVER


PENDING = Pending()
"""Nothing to do until something completes."""


class Context(msgspec.Struct, frozen=True, gc=False):
    """All that a generator may know: the time, which of its `workers` are `free` (masks), and the chance of this
    draw."""

    time_us: int
    chance: int
    free: int
    workers: int

    @classmethod
    def of(
        cls,
        *,
        workers: int,
        time_us: int = 0,
        seed: int = 0,
        count: int = 0,
        busy: Iterable[int] = (),
        nemesis: bool = False,
    ) -> Context:
        """Return a context for tests and small tools: `workers` client workers, all free but `busy`."""
        everyone = worker_mask(range(NEMESIS if nemesis else 0, workers))
        return cls(time_us, chance_of(seed, count), everyone & ~worker_mask(busy), everyone)

    def narrowed(self, mask: int) -> Context:
        """Return the same moment as seen by the workers in `mask` only."""
        return Context(self.time_us, self.chance, self.free & mask, self.workers & mask)

    def reseeded(self, salt: int) -> Context:
        """Return the same moment with another chance, so that a child's draws do not follow its parent's."""
        return Context(self.time_us, reseeded(self.chance, salt), self.free, self.workers)

    def below(self, bound: int, salt: int) -> int:
        """Return an integer in [0, bound); equal contexts give equal draws. `salt` is an odd constant of the caller."""
        return below(self.chance, bound, salt)

    def free_worker(self) -> int:
        """Return one of the free workers, drawn; at least one must be free."""
        free = members(self.free)
        return free[below(self.chance, len(free), _WORKER_SALT)]


class Event(msgspec.Struct, frozen=True, gc=False):
    """The completion of an operation: the worker, the operation, its end (`ok`, `fail`, `info`), the answer, the
    time."""

    kind: OutcomeKind
    worker: int
    f: str
    key: str | None
    value: Any
    result: Any
    time_us: int


class Generator(msgspec.Struct, frozen=True, gc=False):
    """Base of all generators: an immutable value. Equal generators asked in equal contexts answer equally."""

    listens: ClassVar[bool] = True
    """False when `update` never changes this generator: the engine then need not tell it anything."""

    def op(self, context: Context) -> Offer:
        """Return the next offer and the generator to go on with."""
        # A msgspec.Struct cannot be an abstract base class: its metaclass is another.
        raise NotImplementedError(type(self).__name__)

    def update(self, context: Context, event: Event) -> Generator:
        """Return the generator after `event`; itself when the event changes nothing."""
        return self


Offer = tuple[Draft | Pending | None, Generator]
"""The answer of `op`: an offer and the next generator, or None."""


class Empty(Generator, frozen=True, gc=False):
    """The generator that is exhausted from the start."""

    def op(self, context: Context) -> Offer:
        """Return None, for ever."""
        return None, self


EMPTY = Empty()
"""The generator that is exhausted."""


def assigned(draft: Draft, context: Context) -> Draft:
    """Return `draft` with a free worker of `context` and a time that is not in the past."""
    worker = draft.worker if draft.worker != _UNASSIGNED else context.free_worker()
    return Draft(draft.f, draft.key, draft.value, worker, max(draft.at_us, context.time_us), draft.answer_of)
