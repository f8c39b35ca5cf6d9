"""Histories of a register that busy clients use at once, drawn from a seed, with one read changed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome, fail, ok

__all__ = ["BusyRegister", "busy_history"]


@dataclass(frozen=True, slots=True)
class BusyRegister:
    """The shape of a history: how many operations of how many clients, over the values 0 to `values` - 1."""

    operations: int = 1000
    clients: int = 10
    values: int = 5
    compare_and_sets: float = 0.0
    has_open_write: bool = False


def busy_history(seed: int, shape: BusyRegister, changed: float | None = None) -> History:
    """Return a linearizable history of `shape` in which every client is always busy.

    With `changed`, the read at that fraction of all reads answers another value than it saw.
    """
    rng = random.Random(seed)
    history, state, time_us = History(), 0, 0
    in_flight: dict[int, tuple[int, Outcome | None]] = {}
    if shape.has_open_write:
        history.invoke(Operation(shape.clients, "write", None, 1), 0, shape.clients, "n1")
    first = history.invoke(Operation(0, "write", None, 0), time_us, 0, "n1")
    history.complete(first, ok(), time_us)
    while len(history) < shape.operations or in_flight:
        time_us += 1000
        client = rng.randrange(shape.clients)
        if client not in in_flight:
            if len(history) < shape.operations:
                row = history.invoke(_drawn(rng, client, shape), time_us, client, "n1")
                in_flight[client] = (row, None)
            continue
        row, outcome = in_flight.pop(client)
        if outcome is not None:
            history.complete(row, outcome, time_us)
            continue
        state, outcome = _taking_effect(history, row, state)
        in_flight[client] = (row, outcome)
    if changed is not None:
        reads = [row for row in range(len(history)) if history.f[row] == "read"]
        row = reads[int(len(reads) * changed)]
        history.result[row] = (history.result[row] + 1 + rng.randrange(shape.values - 1)) % shape.values
    return history


def _drawn(rng: random.Random, client: int, shape: BusyRegister) -> Operation:
    draw = rng.random()
    if draw < shape.compare_and_sets:
        return Operation(client, "cas", None, [rng.randrange(shape.values), rng.randrange(shape.values)])
    if draw < (1 + shape.compare_and_sets) / 2:
        return Operation(client, "read", None, None)
    return Operation(client, "write", None, rng.randrange(shape.values))


def _taking_effect(history: History, row: int, state: int) -> tuple[int, Outcome]:
    value = history.value[row]
    if history.f[row] == "read":
        return state, ok(state)
    if history.f[row] == "write":
        return value, ok()
    return (value[1], ok()) if state == value[0] else (state, fail(CAS_MISMATCH))
