"""The generators that make operations (one; by a function; by a function with a state), and the one that only waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from faultline.harness.generator.core import EMPTY, PENDING, Context, Draft, Event, Generator, Offer, Pending, assigned

__all__ = ["Emit", "Function", "Sleep", "Unfold", "emit", "fault", "function", "sleep", "unfold"]

State = TypeVar("State")


class Emit(Generator, frozen=True, gc=False):
    """One operation, once, by any free worker."""

    draft: Draft

    def op(self, context: Context) -> Offer:
        """Return the operation, then nothing."""
        if not context.free:
            return PENDING, self
        return assigned(self.draft, context), EMPTY


def emit(f: str, key: str | None = None, value: Any = None) -> Generator:
    """Return the operation `f` on `key` with `value`, exactly once."""
    return Emit(Draft(f, key, value))


def fault(kind: str, duration_us: int, target: str = "one", **argument: Any) -> Generator:
    """Return one fault of `kind` against `target`, for the nemesis; `planned_faults` turns it into a row of the
    plan."""
    return Emit(Draft(kind, None, {"duration_us": duration_us, "target": target, "argument": argument}))


Made = Draft | Generator | None


class Function(Generator, frozen=True, gc=False):
    """Calls `make` for an operation, or for a generator that is exhausted before the next call."""

    make: Callable[[Context], Made]
    current: Generator = EMPTY

    def op(self, context: Context) -> Offer:
        """Return the next offer of the last call's generator, or of a new call when that is exhausted."""
        if self.current is not EMPTY:
            offer, following = self.current.op(context)
            if offer is not None:
                return offer, Function(self.make, following)
        if not context.free:
            return PENDING, self
        made = self.make(context)
        if isinstance(made, Draft):
            return assigned(made, context), self if self.current is EMPTY else Function(self.make)
        if made is None:
            return None, EMPTY
        offer, following = made.op(context)
        return offer, Function(self.make, following)

    def update(self, context: Context, event: Event) -> Generator:
        """Pass the event on to the generator of the last call."""
        current = self.current.update(context, event)
        return self if current is self.current else Function(self.make, current)


def function(make: Callable[[Context], Made]) -> Generator:
    """Call the pure function `make(context)` again and again.

    A `Draft` is emitted; a generator is exhausted before the next call; None ends it, and so does a generator that has
    nothing to offer from the start (the same call would only make it again).
    """
    return Function(make)


class Unfold(Generator, frozen=True, gc=False):
    """Calls `step` with a state that each operation moves on."""

    step: Callable[[Context, Any], tuple[Draft, Any] | None]
    state: Any

    def op(self, context: Context) -> Offer:
        """Return the draft of the next step; exhausted when the step is None."""
        if not context.free:
            return PENDING, self
        stepped = self.step(context, self.state)
        if stepped is None:
            return None, EMPTY
        return assigned(stepped[0], context), Unfold(self.step, stepped[1])


def unfold(step: Callable[[Context, State], tuple[Draft, State] | None], state: State) -> Generator:
    """Return the operations of the pure function `step(context, state) -> (draft, next state)`, until it returns
    None."""
    return Unfold(step, state)


class Sleep(Generator, frozen=True, gc=False):
    """Waits `duration_us` from the moment it is first asked while a worker is free, then is exhausted."""

    duration_us: int
    until_us: int | None = None

    def op(self, context: Context) -> Offer:
        """Return `Pending` until the time has come."""
        if self.until_us is None:
            if not context.free:
                return PENDING, self
            until_us = context.time_us + self.duration_us
            return Pending(until_us), Sleep(self.duration_us, until_us)
        return (None, EMPTY) if context.time_us >= self.until_us else (Pending(self.until_us), self)


def sleep(duration_us: int) -> Generator:
    """Return a rest between the generators of a sequence: no operation for `duration_us`.

    It begins when a worker has nothing to do, so a rest after a fault begins when the fault has ended.
    """
    return Sleep(duration_us)
