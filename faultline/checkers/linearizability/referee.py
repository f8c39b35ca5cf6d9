"""The port of Porcupine as a referee: its answers as `Decision`s, and its agreement with what other engines refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Model, Operation
from faultline.checkers.porcupine.search import check_single

__all__ = ["decide_by_port"]

State = TypeVar("State")
Input = TypeVar("Input")
Output = TypeVar("Output")


def decide_by_port(
    model: Model[State, Input, Output],
    operations: Sequence[Operation[Input, Output]],
    budget: Budget,
    handed_over: str = "",
    *,
    verbose: bool = False,
) -> Decision:
    """Decide `operations` with the port; `verbose` also collects the longest order of a part that is not legal."""
    found = check_single(model, operations, budget, verbose)
    order = found.linearizations[0] if found.linearizations else ()
    placed = set(order)
    completed = [position for position, operation in enumerate(operations) if operation.return_ != PENDING]
    completed.sort(key=lambda position: operations[position].return_)
    furthest = next((rank for rank, position in enumerate(completed) if position not in placed), len(completed))
    # The port looks at the whole part before it refuses, so that only the last return is known to make it illegal.
    return Decision(
        Legality(found.result),
        "port",
        order,
        furthest,
        found.steps,
        refuted=len(completed) - 1,
        handed_over=handed_over,
    )
