"""Replaying a linearization: the proof behind every "linearizable".

The search is clever; this is not. It walks once over the order that the search proposes and looks if each
operation is legal where it stands, if every completed operation is there exactly once, and if no operation stands
behind one that began only after it had ended.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from faultline.checkers.linearizability.operations import AVOID, INFINITY, OBSERVE, SWAP, RegisterOperation

__all__ = ["is_linearization"]


def is_linearization(
    order: Sequence[RegisterOperation], operations: Sequence[RegisterOperation], initial: Hashable = None
) -> bool:
    """Return whether `order` is a legal sequential execution of `operations` that keeps their real-time order."""
    state = initial
    latest_call = -2
    for kind, demand, produce, call, return_, _ in order:
        if call > latest_call:
            latest_call = call
        if return_ < latest_call:
            return False
        if kind == AVOID:
            if state == demand:
                return False
        elif kind in (OBSERVE, SWAP) and state != demand:
            return False
        if kind > AVOID:
            state = produce
    return _holds_each_once(order, operations)


def _holds_each_once(order: Sequence[RegisterOperation], operations: Sequence[RegisterOperation]) -> bool:
    placed = {operation[5] for operation in order}
    must = {operation[5] for operation in operations if operation[4] != INFINITY}
    may = {operation[5] for operation in operations}
    return len(placed) == len(order) and must <= placed <= may
