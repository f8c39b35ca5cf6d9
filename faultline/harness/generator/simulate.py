"""Generators without a cluster: simulate their operations, or write them down as a plan.

The engine here is the interpreter's loop with imaginary clients: every operation takes the same time and ends as a
function says. (Jepsen's `generator.test/simulate` is the model: the best-loved tool for testing its generators.)
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Literal

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.generator.chance import chance_of
from faultline.harness.generator.core import FOREVER, Context, Draft, Event, Generator, worker_mask
from faultline.harness.operation import NEMESIS
from faultline.harness.outcome import OutcomeKind
from faultline.harness.plan import PlannedFault, PlannedOperation

__all__ = ["SimulatedEvent", "all_info", "mixed", "perfect", "planned_faults", "planned_operations", "simulate"]

Completion = Callable[[Draft, int], OutcomeKind]
"""The outcome of a draft with an imaginary client, given the number of operations started before it."""

Duration = Callable[[Draft], int]


class SimulatedEvent(msgspec.Struct, frozen=True):
    """An invocation or completion of a simulated run. `process` moves on by the number of workers after an `info`."""

    kind: Literal["invoke", "ok", "fail", "info"]
    time_us: int
    worker: int
    process: int
    f: str
    key: str | None
    value: object


def perfect(_draft: Draft, _count: int) -> OutcomeKind:
    """Return `ok` for every draft."""
    return "ok"


def all_info(_draft: Draft, _count: int) -> OutcomeKind:
    """Return `info` for every draft: no client learns its outcome."""
    return "info"


def mixed(_draft: Draft, count: int) -> OutcomeKind:
    """Return `fail`, `info` and `ok` in turn."""
    kinds: tuple[OutcomeKind, ...] = ("fail", "info", "ok")
    return kinds[count % 3]


Step = tuple[str, int, Draft]
"""A step (`invoke`, `ok`, `fail`, `info`), its time, and its draft."""


def _drive(
    generator: Generator, mask: int, seed: int, complete: Completion, duration: Duration, start_us: int, end_us: int
) -> list[Step]:
    """Return all steps of `generator` performed by the workers in `mask`; no invocation at or after `end_us`."""
    steps: list[Step] = []
    flying: list[tuple[int, int, OutcomeKind, Draft]] = []
    now_us, free, count = start_us, mask, 0
    chance = chance_of(seed, 0)
    while True:
        offer, following = generator.op(Context(now_us, chance, free, mask))
        next_us = flying[0][0] if flying else FOREVER
        if offer is None or min(offer.at_us, next_us) >= min(end_us, FOREVER - 1):
            break
        if type(offer) is Draft:
            if offer.at_us < next_us:
                generator, now_us = following, max(now_us, offer.at_us)
                steps.append(("invoke", now_us, offer))
                heappush(flying, (now_us + duration(offer), count, complete(offer, count), offer))
                free &= ~(1 << (offer.worker + 1))
                count += 1
                chance = chance_of(seed, count)
                continue
        else:
            generator = following
            if offer.at_us < next_us:
                now_us = offer.at_us
                continue
        now_us, _, kind, draft = heappop(flying)
        free |= 1 << (draft.worker + 1)
        steps.append((kind, now_us, draft))
        event = Event(kind, draft.worker, draft.f, draft.key, draft.value, None, now_us)
        generator = generator.update(Context(now_us, chance, free, mask), event)
    if offer is not None and offer.at_us == FOREVER and not flying:
        raise _stuck(now_us)
    steps += [(kind, at_us, draft) for at_us, _, kind, draft in sorted(flying, key=lambda flight: flight[:2])]
    return steps


def _stuck(now_us: int) -> HarnessError:
    return HarnessError(
        f"The generator waits at {now_us} us for a completion, but nothing is in flight.",
        "Look for a barrier inside `reserve` or `each_thread` whose other workers have no operations.",
    )


def simulate(
    generator: Generator,
    *,
    workers: int,
    seed: int = 0,
    complete: Completion = perfect,
    latency_us: int = 1_000,
    start_us: int = 0,
    end_us: int = FOREVER,
    nemesis: bool = False,
) -> list[SimulatedEvent]:
    """Return the events of `generator` with `workers` imaginary clients (and a nemesis, if asked) of that latency."""
    mask = worker_mask(range(NEMESIS if nemesis else 0, workers))
    process = {worker: worker for worker in range(NEMESIS, workers)}
    events = []
    for kind, time_us, draft in _drive(generator, mask, seed, complete, lambda _: latency_us, start_us, end_us):
        worker = draft.worker
        events.append(_event(kind, time_us, draft, process[worker]))
        if kind == "info" and worker != NEMESIS:
            process[worker] += workers
    return events


def _event(kind: str, time_us: int, draft: Draft, process: int) -> SimulatedEvent:
    return SimulatedEvent(kind, time_us, draft.worker, process, draft.f, draft.key, draft.value)  # type: ignore[arg-type]  # a Step holds these kinds only


def planned_operations(
    generator: Generator, *, workers: int, seed: int, latency_us: int, start_us: int = 0, end_us: int = FOREVER
) -> tuple[PlannedOperation, ...]:
    """Return the client operations of `generator` as plan rows in order of time, as if each took `latency_us` and was
    `ok`.

    No row starts at or after `end_us`. A generator without a pace of its own starts operations as fast as `latency_us`
    lets it: put it under `stagger`. Parts that only the nemesis performs are left out; see `planned_faults`.
    """
    steps = _drive(generator, worker_mask(range(workers)), seed, perfect, lambda _: latency_us, start_us, end_us)
    return tuple(
        PlannedOperation(draft.worker, time_us, draft.f, draft.key, draft.value, draft.answer_of or msgspec.UNSET)
        for kind, time_us, draft in steps
        if kind == "invoke"
    )


def planned_faults(generator: Generator, *, seed: int, start_us: int, end_us: int) -> tuple[PlannedFault, ...]:
    """Return the nemesis operations of `generator` (see `fault`) as planned faults, one after another.

    The nemesis is busy while a fault lasts. A fault that would outlast `end_us` is cut short there.
    """
    steps = _drive(generator, worker_mask([NEMESIS]), seed, perfect, _fault_duration_us, start_us, end_us)
    return tuple(_planned_fault(draft, time_us, end_us) for kind, time_us, draft in steps if kind == "invoke")


def _fault_duration_us(draft: Draft) -> int:
    return int(draft.value["duration_us"])


def _planned_fault(draft: Draft, at_us: int, end_us: int) -> PlannedFault:
    duration_us = min(_fault_duration_us(draft), end_us - at_us)
    return PlannedFault(draft.f, at_us, duration_us, draft.value["target"], draft.value["argument"])
