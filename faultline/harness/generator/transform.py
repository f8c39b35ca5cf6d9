"""Changes of operations on their way: `map_operations`."""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.generator.core import Context, Draft, Event, Generator, Offer

__all__ = ["Map", "map_operations"]


class Map(Generator, frozen=True, gc=False):
    """`child` with every draft passed through `change`."""

    child: Generator
    change: Callable[[Draft], Draft]

    def op(self, context: Context) -> Offer:
        """Return the child's offer, changed when it is a draft."""
        offer, following = self.child.op(context)
        if type(offer) is Draft:
            offer = self.change(offer)
        return offer, Map(following, self.change)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the child, as it happened: events are not changed back."""
        child = self.child.update(context, event)
        return self if child is self.child else Map(child, self.change)


def map_operations(change: Callable[[Draft], Draft], generator: Generator) -> Generator:
    """Return the operations of `generator` after the pure function `change`, which keeps worker and time."""
    return Map(generator, change)
