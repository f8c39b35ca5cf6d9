"""Replaying a linearization: the proof behind every "linearizable".

It shares no idea with the monitor and the search that propose linearizations, so that one mistake cannot be in both.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.checkers.linearizability.engine.problem import DEAD, INITIAL, NEVER, Problem
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE

__all__ = ["is_linearization"]


def is_linearization(problem: Problem, order: Sequence[int]) -> bool:
    """Return whether `order` is a legal sequential execution that keeps real-time order and holds all that returned."""
    state, latest_call = INITIAL, -1
    for i in order:
        kind, demand = problem.kind[i], problem.demand[i]
        # An operation must not stand behind one that was called after it had returned. The latest call so far suffices
        # to see that: the operation with that call stands before this one.
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
