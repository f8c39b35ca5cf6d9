"""Replaying a linearization: the proof behind every "linearizable", sharing no idea with whoever proposed it."""

from __future__ import annotations

from collections.abc import Sequence

from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, NEVER, Problem
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE

__all__ = ["is_linearization"]


def is_linearization(problem: Problem, order: Sequence[int]) -> bool:
    """Whether `order` is a legal sequential execution that keeps real-time order and holds all that returned, once."""
    state, latest_call = INITIAL, -1
    for i in order:
        kind, demand = problem.kind[i], problem.demand[i]
        latest_call = max(latest_call, problem.call_at[i])
        if problem.return_at[i] < latest_call:
            return False
        if kind in (OBSERVE, SWAP) and state != demand:
            return False
        if kind == AVOID and state == demand:
            return False
        if kind in (WRITE, SWAP):
            state = problem.produce[i]
        elif kind > SWAP:
            state = problem.edges[i].get(state, DEAD)
    placed = set(order)
    return len(placed) == len(order) and all(i in placed for i, at in enumerate(problem.return_at) if at != NEVER)
