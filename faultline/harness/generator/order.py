"""One after another: `sequence`, `cycle`, and the barriers `synchronize` and `phases`."""

from __future__ import annotations

from faultline.harness.generator.core import EMPTY, PENDING, Context, Event, Generator, Offer

__all__ = ["Cycle", "Sequence", "Synchronize", "cycle", "phases", "sequence", "synchronize"]


class Sequence(Generator, frozen=True, gc=False):
    """The operations of `current`, then those of `children` from `position` on; no barrier between them."""

    children: tuple[Generator, ...]
    position: int
    current: Generator

    def op(self, context: Context) -> Offer:
        """Return the offer of the first generator that is not exhausted."""
        position, current = self.position, self.current
        while True:
            offer, following = current.op(context)
            if offer is not None:
                return offer, Sequence(self.children, position, following)
            if position == len(self.children):
                return None, EMPTY
            current = self.children[position]
            position += 1

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the generator whose turn it is; the later ones have not begun."""
        current = self.current.update(context, event)
        return self if current is self.current else Sequence(self.children, self.position, current)


def sequence(*generators: Generator) -> Generator:
    """Return all operations of the first generator, then all of the second, and so on."""
    return Sequence(generators, 0, EMPTY)


class Cycle(Generator, frozen=True, gc=False):
    """`original` from its beginning each time it is exhausted; `left` more times, for ever when None."""

    original: Generator
    current: Generator
    left: int | None

    def op(self, context: Context) -> Offer:
        """Return the offer of the present round, or of a fresh one. An original with nothing to offer ends the
        cycle."""
        offer, following = self.current.op(context)
        if offer is not None:
            return offer, Cycle(self.original, following, self.left)
        if self.left == 0:
            return None, EMPTY
        left = None if self.left is None else self.left - 1
        offer, following = self.original.op(context)
        return (None, EMPTY) if offer is None else (offer, Cycle(self.original, following, left))

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the present round only."""
        current = self.current.update(context, event)
        return self if current is self.current else Cycle(self.original, current, self.left)


def cycle(generator: Generator, times: int | None = None) -> Generator:
    """Return `generator` from the beginning whenever it ends: `times` rounds, or for ever."""
    return Cycle(generator, EMPTY, times)


class Synchronize(Generator, frozen=True, gc=False):
    """`child`, once every worker that can hear this generator is free."""

    child: Generator

    def op(self, context: Context) -> Offer:
        """Return `Pending` while a worker is busy; then the offer of the child, without the barrier."""
        if context.free != context.workers:
            return PENDING, self
        return self.child.op(context)


def synchronize(generator: Generator) -> Generator:
    """Wait until all workers are free, then go on as `generator`."""
    return Synchronize(generator)


def phases(*generators: Generator) -> Generator:
    """Return a sequence in which each generator starts only when every operation of the one before has completed."""
    return sequence(*map(synchronize, generators))
