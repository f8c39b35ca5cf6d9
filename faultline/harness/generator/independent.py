"""Keys that do not know of each other: groups of workers, each on a key of its own, taking a new key now and then.

Linearizability is local (Herlihy and Wing 1990, theorem 1): a history is linearizable when the history of every object
is. So one long test on a register, which no checker can decide, becomes many short tests on registers side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from faultline.harness.generator.chance import below, reseeded
from faultline.harness.generator.choice import replaced
from faultline.harness.generator.core import (
    EMPTY,
    FOREVER,
    PENDING,
    Context,
    Draft,
    Event,
    Generator,
    Offer,
    Pending,
    members,
    worker_mask,
)

__all__ = ["Independent", "independent"]

_GROUP_SALT = 0x1D8E_4E27_C47D_124F

Asked = tuple[Generator, Draft | Pending | None, Generator, int]
"""The group that was asked, its offer, the generator after the offer is taken, and the next key to hand out."""


@lru_cache(maxsize=1024)
def _groups(workers: int, groups: int) -> tuple[int, ...]:
    """Return `workers` dealt into at most `groups` masks of nearly equal size."""
    everyone = members(workers)
    count = max(1, min(groups, len(everyone)))
    return tuple(worker_mask(everyone[position::count]) for position in range(count))


class Independent(Generator, frozen=True, gc=False):
    """`children` by group; keys from `next_key` on are still to be handed out, `keys` in all (None: no end)."""

    per_key: Callable[[int], Generator]
    groups: int
    keys: int | None
    next_key: int = 0
    children: tuple[Generator, ...] = ()

    def op(self, context: Context) -> Offer:
        """Return the first draft that is due, asking from a drawn group on; a group whose key is done takes the next
        key."""
        if not context.free:
            return (PENDING, self) if context.workers else (None, EMPTY)
        masks = _groups(context.workers, self.groups)
        count = len(masks)
        children = self.children or (EMPTY,) * count
        first = below(context.chance, count, _GROUP_SALT)
        next_key, soonest, exhausted = self.next_key, FOREVER, True
        for step in range(first, first + count):
            position = step % count
            mask = masks[position]
            if not context.free & mask:
                exhausted = False
                continue
            inner = Context(context.time_us, reseeded(context.chance, position), context.free & mask, mask)
            asked, offer, following, next_key = self._ask(children[position], next_key, inner)
            if type(offer) is Draft:
                if offer.at_us <= context.time_us:
                    return offer, self._after(next_key, replaced(children, position, following))
                following = asked
            if offer is not None:
                exhausted, soonest = False, min(soonest, offer.at_us)
            children = replaced(children, position, following)
        return (None, EMPTY) if exhausted else (Pending(soonest), self._after(next_key, children))

    def _ask(self, child: Generator, next_key: int, context: Context) -> Asked:
        offer, following = child.op(context)
        while offer is None and (self.keys is None or next_key < self.keys):
            child = self.per_key(next_key)
            offer, following = child.op(context)
            next_key += 1
        return child, offer, following, next_key

    def _after(self, next_key: int, children: tuple[Generator, ...]) -> Generator:
        return Independent(self.per_key, self.groups, self.keys, next_key, children)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the group of the worker."""
        if not self.children:
            return self
        bit = 1 << (event.worker + 1)
        for position, mask in enumerate(_groups(context.workers, self.groups)):
            if mask & bit:
                child = self.children[position]
                after = child.update(Context(context.time_us, context.chance, context.free & mask, mask), event)
                return self if after is child else self._after(self.next_key, replaced(self.children, position, after))
        return self


def independent(per_key: Callable[[int], Generator], *, groups: int, keys: int | None = None) -> Generator:
    """Deal the workers into `groups`; each works on `per_key(number)` until that is exhausted, then takes the next.

    `per_key` is pure and gets 0, 1, 2 …; it names the key in its drafts. `keys` bounds how many are handed out in all.
    """
    return Independent(per_key, groups, keys)
