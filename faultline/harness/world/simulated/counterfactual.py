"""One event of a simulated run undone or delayed, with nothing else changed.

A run is a sequence of numbered events, and the weather is a pure function of (seed, stream, time). So a second run of
the same plan is equal to the first up to the event that it leaves out, and what differs afterwards is the consequence.
Four kinds of events can be undone:

- a *message* that arrives, stale or not, is lost;
- a *reset* breaks no connection;
- a *timer* that rings is not heard; one that repeats rings again after its interval;
- a *flush* that ends has no effect, and the node's next one does its work.

An event that is delayed moves alone: a late message is overtaken by those that were sent after it on the same link.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from faultline.harness.world.simulated.host import SimulatedHost, SimulatedTimer
from faultline.harness.world.simulated.network import Link
from faultline.harness.world.simulated.scheduler import InterceptingScheduler, ScheduledEvent

__all__ = ["EventKind", "WorldEvent", "delaying", "described", "observing", "owner_of", "undoing"]

EventKind = Literal["message", "reset", "timer", "flush"]


class WorldEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that can be undone: the `number` it has in its run, its time, and the process (`place`) where it acts.

    `name` is the type of a message or the callback of a timer; `source`, `sent_us` and `stale` are those of a message.
    A reset acts at the `place` to which its link leads.
    """

    kind: EventKind
    number: int
    time_us: int
    place: str
    name: str = ""
    source: str = ""
    sent_us: int = 0
    summary: str = ""
    stale: bool = False


def observing(see: Callable[[WorldEvent], None]) -> InterceptingScheduler:
    """Return a scheduler for a run that shows `see` each event that takes effect, and changes none."""

    def intercept(event: ScheduledEvent) -> bool:
        effect = described(event)
        if effect is not None:
            see(effect)
        return False

    return InterceptingScheduler(intercept)


def undoing(number: int) -> InterceptingScheduler:
    """Return a scheduler for a run in which the event of this `number` is undone."""

    def intercept(event: ScheduledEvent) -> bool:
        if event[1] != number:
            return False
        owner = owner_of(event)
        if isinstance(owner, SimulatedTimer):
            owner.skip()
        elif isinstance(owner, SimulatedHost):
            owner.put_off_sync()
        return True

    return InterceptingScheduler(intercept)


def delaying(number: int, by_us: int) -> InterceptingScheduler:
    """Return a scheduler for a run in which the event of this `number` happens `by_us` later."""

    def intercept(event: ScheduledEvent) -> bool:
        time_us, its_number, action, arguments = event
        if its_number == number:
            scheduler.at(time_us + by_us, action, *arguments)
        return its_number == number

    scheduler = InterceptingScheduler(intercept)
    return scheduler


def owner_of(event: ScheduledEvent) -> object:
    """Return the object whose method the event calls."""
    return getattr(event[2], "__self__", None)


def described(event: ScheduledEvent) -> WorldEvent | None:
    """Return the event in words; None for one that cannot be undone or has no effect."""
    time_us, number, action, arguments = event
    owner = owner_of(event)
    if isinstance(owner, Link):
        if action == owner.reset:
            return WorldEvent(kind="reset", number=number, time_us=time_us, place=owner.target, source=owner.source)
        message, sent_us = arguments
        stale = action == owner.arrive_stale
        if owner.cut if stale else owner.loses(sent_us):
            return None
        return WorldEvent(
            kind="message",
            number=number,
            time_us=time_us,
            place=owner.target,
            name=type(message).__name__,
            source=owner.source,
            sent_us=sent_us,
            summary=str(message),
            stale=stale,
        )
    if isinstance(owner, SimulatedTimer) and owner.is_due:
        name = _name_of(owner.callback)
        return WorldEvent(kind="timer", number=number, time_us=time_us, place=owner.host.node_id, name=name)
    if isinstance(owner, SimulatedHost) and action == owner.end_sync and owner.syncs_now(*arguments):
        return WorldEvent(kind="flush", number=number, time_us=time_us, place=owner.node_id)
    return None


def _name_of(callback: Any) -> str:
    """Return the name of a callback as its source has it; of a lambda, its class and the last name that it uses."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    name: str = getattr(callback, "__qualname__", type(callback).__qualname__)
    outer = name.partition(".<locals>")[0]
    used: tuple[str, ...] = callback.__code__.co_names if name.endswith("<lambda>") else ()
    return f"{outer.partition('.')[0]}.{used[-1]}" if used else outer
