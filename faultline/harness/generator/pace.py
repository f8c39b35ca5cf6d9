"""The pace of operations: `stagger` spreads them over time."""

from __future__ import annotations

from faultline.harness.generator.chance import below
from faultline.harness.generator.core import EMPTY, Context, Draft, Event, Generator, Offer

__all__ = ["Stagger", "stagger"]

_STAGGER_SALT = 0x8EBC_6AF0_9C88_C6E3


class Stagger(Generator, frozen=True, gc=False):
    """`child`, no operation before `next_us`; the slots are drawn distances apart."""

    child: Generator
    interval_us: int
    next_us: int | None = None

    def op(self, context: Context) -> Offer:
        """Return the child's draft at the next slot, or later when the child or its workers are late."""
        offer, following = self.child.op(context)
        if offer is None:
            return None, EMPTY
        if type(offer) is not Draft:
            return offer, Stagger(following, self.interval_us, self.next_us)
        next_us = self.next_us
        if next_us is not None and next_us > offer.at_us:
            offer = Draft(offer.f, offer.key, offer.value, offer.worker, next_us, offer.answer_of)
        gap_us = below(context.chance, 2 * self.interval_us + 1, _STAGGER_SALT)
        return offer, Stagger(following, self.interval_us, offer.at_us + gap_us)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child."""
        child = self.child.update(context, event)
        return self if child is self.child else Stagger(child, self.interval_us, self.next_us)


def stagger(interval_us: int, generator: Generator) -> Generator:
    """Return the operations of `generator`, on average `interval_us` apart over all workers: uniformly 0 to twice that.

    The first one comes at once. Slots missed because no worker was free are not made up for.
    """
    return Stagger(generator, interval_us)
