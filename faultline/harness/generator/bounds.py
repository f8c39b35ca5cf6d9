"""Ends of generators: `limit`, `once`, `time_limit`, `until_ok`."""

from __future__ import annotations

from faultline.harness.generator.core import EMPTY, Context, Draft, Event, Generator, Offer, Pending

__all__ = ["Limit", "TimeLimit", "UntilOk", "limit", "once", "time_limit", "until_ok"]


class Limit(Generator, frozen=True, gc=False):
    """At most `left` more operations of `child`."""

    child: Generator
    left: int

    def op(self, context: Context) -> Offer:
        """Return the child's offer while there are operations left."""
        if self.left <= 0:
            return None, EMPTY
        offer, following = self.child.op(context)
        return offer, Limit(following, self.left - 1 if type(offer) is Draft else self.left)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child."""
        child = self.child.update(context, event)
        return self if child is self.child else Limit(child, self.left)


def limit(operations: int, generator: Generator) -> Generator:
    """Return `generator`, cut after `operations` operations."""
    return Limit(generator, operations)


def once(generator: Generator) -> Generator:
    """Return `generator`, cut after one operation."""
    return Limit(generator, 1)


class TimeLimit(Generator, frozen=True, gc=False):
    """`child` until `deadline_us`, which is set by its first operation."""

    child: Generator
    duration_us: int
    deadline_us: int | None = None

    def op(self, context: Context) -> Offer:
        """Return the child's offer, unless it would start at or after the deadline."""
        offer, following = self.child.op(context)
        if offer is None:
            return None, EMPTY
        deadline_us = self.deadline_us
        if type(offer) is Draft:
            if deadline_us is None:
                deadline_us = offer.at_us + self.duration_us
            if offer.at_us >= deadline_us:
                return None, EMPTY
        elif deadline_us is not None:
            if context.time_us >= deadline_us:
                return None, EMPTY
            offer = Pending(min(offer.at_us, deadline_us))
        return offer, TimeLimit(following, self.duration_us, deadline_us)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child."""
        child = self.child.update(context, event)
        return self if child is self.child else TimeLimit(child, self.duration_us, self.deadline_us)


def time_limit(duration_us: int, generator: Generator) -> Generator:
    """Return the operations of `generator` that start less than `duration_us` after its first one.

    Operations in flight at the deadline are not cut off. A generator that waits at the deadline has ended.
    """
    return TimeLimit(generator, duration_us)


class UntilOk(Generator, frozen=True, gc=False):
    """`child` until an operation of its own completes `ok`; `mine` is the mask of workers performing them."""

    child: Generator
    mine: int = 0

    def op(self, context: Context) -> Offer:
        """Return the child's offer, and remember its worker."""
        offer, following = self.child.op(context)
        mine = self.mine | 1 << (offer.worker + 1) if type(offer) is Draft else self.mine
        return offer, UntilOk(following, mine)

    def update(self, context: Context, event: Event) -> Generator:
        """End on the first `ok` of an operation of its own, and ignore the completions of other generators."""
        bit = 1 << (event.worker + 1)
        if self.mine & bit and event.kind == "ok":
            return EMPTY
        child, mine = self.child.update(context, event), self.mine & ~bit
        return self if child is self.child and mine == self.mine else UntilOk(child, mine)


def until_ok(generator: Generator) -> Generator:
    """Return the operations of `generator` until one of them completes `ok`, or until it is exhausted."""
    return UntilOk(generator)
