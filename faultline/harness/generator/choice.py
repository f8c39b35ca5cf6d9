"""Several generators at once: `mix`, `flip_flop` and `any_of`, over one way of choosing among offers.

Jepsen's `mix` and `flip-flop` keep events from their children, and wait for the child they happened to draw although
another could go on. Here every child gets every event, and a child that has nothing due is passed over.

**Choosing.** The children are asked in an order. The first draft that is due now wins. When none is due, the answer is
the soonest time at which one may be, as a draft or as `Pending`. A child that answered pending may have moved on (a
sleep has begun), so its next state is kept in any case. The caller may drop a winner that lies in the future; then the
answer becomes `Pending` until that time, so that the next states of the children are not dropped with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from faultline.harness.generator.chance import below, reseeded
from faultline.harness.generator.core import EMPTY, PENDING, Context, Draft, Event, Generator, Offer, Pending

__all__ = ["AnyOf", "Children", "FlipFlop", "Mix", "any_of", "choose", "flip_flop", "mix", "replaced", "updated"]

_MIX_SALT = 0xA076_1D64_78BD_642F
_ANY_SALT = 0xE703_7ED1_A0B4_28DB

Children = tuple[Generator, ...]
Choice = tuple[Draft | Pending | None, Children, int]


def choose(children: Children, contexts: Iterable[tuple[int, Context]]) -> Choice:
    """Return the best offer, the children after it, and the position of the one that made it (-1 when it is no draft).

    `contexts` says in which order the children are asked, each in its own context.
    """
    best: Draft | Pending | None = None
    after_best: Generator = EMPTY
    best_position, moved = -1, False
    for position, context in contexts:
        child = children[position]
        offer, following = child.op(context)
        if offer is None:
            continue
        if type(offer) is Draft:
            if offer.at_us <= context.time_us:
                return offer, replaced(children, position, following), position
            if best is None or offer.at_us < best.at_us or (type(best) is Pending and offer.at_us == best.at_us):
                best, best_position, after_best = offer, position, following
            continue
        if following is not child:
            children, moved = replaced(children, position, following), True
        if best is None or offer.at_us < best.at_us:
            best, best_position = offer, -1
    if type(best) is not Draft:
        return best, children, -1
    # The caller may drop a draft of the future, and with it the states of children that have moved on. A pending answer
    # is kept, so those states are safe, and the same draft is offered again when its time has come.
    if moved:
        return Pending(best.at_us), children, -1
    return best, replaced(children, best_position, after_best), best_position


def replaced(children: Children, position: int, child: Generator) -> Children:
    """Return `children` with another one at `position`."""
    if children[position] is child:
        return children
    return (*children[:position], child, *children[position + 1 :])


def updated(children: Children, context: Context, event: Event) -> Children:
    """Return `children` after each got `event`; the same tuple when none of them changed."""
    for position, child in enumerate(children):
        told = child.update(context, event)
        if told is not child:
            return (*children[:position], told, *updated(children[position + 1 :], context, event))
    return children


class Mix(Generator, frozen=True, gc=False):
    """Operations drawn from `children`, each equally likely, while they last."""

    children: Children

    def op(self, context: Context) -> Offer:
        """Return the draft of a drawn child, or of the next child when that one has nothing due."""
        children = self.children
        count = len(children)
        if not context.free:
            return PENDING, self
        first = below(context.chance, count, _MIX_SALT)
        inner = Context(context.time_us, reseeded(context.chance, _MIX_SALT), context.free, context.workers)
        offer, following = children[first].op(inner)
        if type(offer) is Draft and offer.at_us <= context.time_us:
            return offer, Mix(replaced(children, first, following))
        if offer is None:
            rest = (*children[:first], *children[first + 1 :])
            return Mix(rest).op(context) if rest else (None, EMPTY)
        order = [(position % count, inner) for position in range(first, first + count)]
        offer, children, _ = choose(children, order)
        return offer, Mix(children)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to every child."""
        children = updated(self.children, context, event)
        return self if children is self.children else Mix(children)


def mix(*generators: Generator) -> Generator:
    """Return a mix: each operation is of a uniformly drawn generator; one that is named twice is twice as likely.

    A child that is exhausted leaves; a child that is pending is passed over. The mix ends when all children have ended.
    """
    return Mix(generators) if generators else EMPTY


class FlipFlop(Generator, frozen=True, gc=False):
    """`children` in turn, one operation each."""

    children: Children
    turn: int

    def op(self, context: Context) -> Offer:
        """Return the draft of the child whose turn it is, or of the next one in turn that has something due."""
        count = len(self.children)
        if self.children[self.turn].op(context)[0] is None:
            return None, EMPTY
        order = ((position % count, context) for position in range(self.turn, self.turn + count))
        offer, children, position = choose(self.children, order)
        return offer, FlipFlop(children, self.turn if position < 0 else (position + 1) % count)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to every child."""
        children = updated(self.children, context, event)
        return self if children is self.children else FlipFlop(children, self.turn)


def flip_flop(*generators: Generator) -> Generator:
    """Return a generator that takes one operation of each in turn; it ends when the one whose turn it is has ended."""
    return FlipFlop(generators, 0) if generators else EMPTY


class AnyOf(Generator, frozen=True, gc=False):
    """All `children` side by side: the one that is due first goes first."""

    children: Children

    def op(self, context: Context) -> Offer:
        """Return the soonest offer; among those that are due, from a drawn child on."""
        count = len(self.children)
        first = context.below(count, _ANY_SALT)
        order = ((position % count, context.reseeded(position % count)) for position in range(first, first + count))
        offer, children, _ = choose(self.children, order)
        return (None, EMPTY) if offer is None else (offer, AnyOf(children))

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to every child."""
        children = updated(self.children, context, event)
        return self if children is self.children else AnyOf(children)


def any_of(*generators: Generator) -> Generator:
    """Return the generators side by side: each operation is of the one due soonest. It ends when all have ended."""
    return AnyOf(generators) if generators else EMPTY
