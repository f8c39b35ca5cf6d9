"""Short histories told as text, with a fault between two operations where one is due."""

from __future__ import annotations

from typing import Any

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord

__all__ = ["FAULT", "record_of", "recorded"]

FAULT = ("fault",)
"""In a list of operations: a fault begins here."""

Told = tuple[Any, ...]


def recorded(*operations: Told) -> History:
    """Operations one after the other: (process, function, key, value, result), and an outcome where it is not ok."""
    history = History()
    for number, told in enumerate(operations):
        time_us = number * 1_000
        if told == FAULT:
            history.fault("start-kill", {"fault": number, "applied": None}, time_us)
            continue
        process, f, key, value, result, *outcome = told
        row = history.invoke(Operation(process, f, key, value), time_us, process, "athens")
        kind, error = (*outcome, None, None)[:2]
        history.complete(row, Outcome(kind or "ok", result, error), time_us + 500)
    return history


def record_of(*operations: Told, workload: str = "register", seed: int = 1, world: Any = "hosts") -> RunRecord:
    """The operations as a run."""
    history = recorded(*operations)
    plan = Plan(
        system="told",
        workload=workload,
        seed=seed,
        nodes=("athens", "byzantium"),
        workers=5,
        operations=(),
        heal_us=history.end_us(),
        end_us=history.end_us(),
    )
    return RunRecord(plan=plan, world=world, history=history)
