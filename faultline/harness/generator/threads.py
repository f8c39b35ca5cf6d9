"""Generators for some workers: `on_workers`, `clients`, `nemesis`, `split`, `reserve`, `each_thread`.

Narrowing is relative: a combinator sees only the workers its parent left it, so these nest in any order. (Jepsen's
`reserve` counts from worker 0 whatever surrounds it, and is wrong when nested.)
"""

from __future__ import annotations

from functools import lru_cache

from faultline.harness.generator.choice import any_of, choose
from faultline.harness.generator.core import EMPTY, Context, Event, Generator, Offer, members, worker_mask
from faultline.harness.operation import NEMESIS

__all__ = ["EachThread", "OnWorkers", "Reserve", "clients", "each_thread", "nemesis", "on_workers", "reserve", "split"]

_NEMESIS_MASK = worker_mask([NEMESIS])
_RESERVE_SALT = 0x5895_65D9_5C1B_7F45


class OnWorkers(Generator, frozen=True, gc=False):
    """`child` as if only the workers in `mask` existed."""

    child: Generator
    mask: int

    def op(self, context: Context) -> Offer:
        """Return the child's offer in the narrowed context; exhausted when there is no such worker."""
        inner = context.narrowed(self.mask)
        if not inner.workers:
            return None, EMPTY
        offer, following = self.child.op(inner)
        return offer, self if following is self.child else OnWorkers(following, self.mask)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child when it is about one of its workers."""
        if not self.mask >> (event.worker + 1) & 1:
            return self
        child = self.child.update(context.narrowed(self.mask), event)
        return self if child is self.child else OnWorkers(child, self.mask)


def on_workers(workers: tuple[int, ...], generator: Generator) -> Generator:
    """Return `generator` performed by `workers` only (`NEMESIS` is one too)."""
    return OnWorkers(generator, worker_mask(workers))


def clients(generator: Generator) -> Generator:
    """Return `generator` performed by client workers only."""
    return OnWorkers(generator, ~_NEMESIS_MASK)


def nemesis(generator: Generator) -> Generator:
    """Return `generator` performed by the nemesis only."""
    return OnWorkers(generator, _NEMESIS_MASK)


def split(client_generator: Generator, nemesis_generator: Generator) -> Generator:
    """Return two generators side by side: clients perform one and the nemesis the other."""
    return any_of(clients(client_generator), nemesis(nemesis_generator))


@lru_cache(maxsize=1024)
def _shares(workers: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the masks of the first `counts[0]` of `workers`, of the next `counts[1]` …, and of the rest."""
    everyone = members(workers)
    masks, start = [], 0
    for count in counts:
        masks.append(worker_mask(everyone[start : start + count]))
        start += count
    return (*masks, worker_mask(everyone[start:]))


class Reserve(Generator, frozen=True, gc=False):
    """`children[i]` for its share of the workers, the last child for the rest."""

    counts: tuple[int, ...]
    children: tuple[Generator, ...]

    def op(self, context: Context) -> Offer:
        """Return the offer of the share that is due soonest, asking from a drawn share on."""
        masks = _shares(context.workers, self.counts)
        count = len(masks)
        first = context.below(count, _RESERVE_SALT)
        order = (
            (position % count, context.reseeded(position % count).narrowed(masks[position % count]))
            for position in range(first, first + count)
            if masks[position % count]
        )
        offer, children, _ = choose(self.children, order)
        return (None, EMPTY) if offer is None else (offer, Reserve(self.counts, children))

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child that owns the worker."""
        bit = 1 << (event.worker + 1)
        for position, mask in enumerate(_shares(context.workers, self.counts)):
            if mask & bit:
                child = self.children[position].update(context.narrowed(mask), event)
                if child is not self.children[position]:
                    after = (*self.children[:position], child, *self.children[position + 1 :])
                    return Reserve(self.counts, after)
        return self


def reserve(*shares: tuple[int, Generator], default: Generator = EMPTY) -> Generator:
    """Return a generator that the first n workers perform by the first child, the next m by the second …, others by
    `default`.

    `shares` are pairs (number of workers, generator); counted among the workers this generator may use.
    """
    return Reserve(tuple(count for count, _ in shares), (*(generator for _, generator in shares), default))


class EachThread(Generator, frozen=True, gc=False):
    """A copy of `original` for each worker; `children` by position among the workers, empty before the first ask."""

    original: Generator
    children: tuple[Generator, ...] = ()

    def op(self, context: Context) -> Offer:
        """Return the soonest offer of a free worker's copy; pending while only busy workers have anything left."""
        workers = members(context.workers)
        children = self.children or (self.original,) * len(workers)
        order = [
            (position, context.reseeded(worker + 2).narrowed(1 << (worker + 1)))
            for position, worker in enumerate(workers)
            if children[position] is not EMPTY
        ]
        if not order:
            return None, EMPTY
        first = context.below(len(order), _RESERVE_SALT)
        offer, children, _ = choose(children, order[first:] + order[:first])
        if offer is None:
            return None, EMPTY
        return offer, EachThread(self.original, children)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the copy of the worker that completed."""
        workers = members(context.workers)
        if not self.children or event.worker not in workers:
            return self
        position = workers.index(event.worker)
        inner = context.narrowed(1 << (event.worker + 1))
        child = self.children[position].update(inner, event)
        if child is self.children[position]:
            return self
        return EachThread(self.original, (*self.children[:position], child, *self.children[position + 1 :]))


def each_thread(generator: Generator) -> Generator:
    """Return a generator of which every worker performs a copy of its own, from the beginning."""
    return EachThread(generator)
