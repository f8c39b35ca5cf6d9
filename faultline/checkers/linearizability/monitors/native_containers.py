"""Queues and stacks in the native kernel: lifetimes go in as columns, an order or a contradiction comes out."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from faultline.checkers.linearizability.data_types import Call
from faultline.checkers.linearizability.engine.native import kernel
from faultline.checkers.linearizability.monitors.lifetimes import Container, Lifetime, Lifetimes
from faultline.checkers.porcupine.model import Operation
from faultline.harness.errors import HarnessError

__all__ = ["arrange_natively"]

_OUT_OF_MEMORY = -(1 << 31)
_TYPES = (*["int64_t[]"] * 4, "int32_t[]", "int32_t[]")


def arrange_natively(
    lifetimes: Lifetimes,
    container: Container,
    operations: Sequence[Operation[Call, Any]],
    moments: Mapping[int, float],
    *,
    is_stack: bool,
) -> tuple[list[int], list[Lifetime]] | None:
    """Return an order of the operations, or, when there is none, lifetimes that have none.

    `moments` are those of the removals that found nothing. Of a queue, the second of the two lifetimes returned
    overtook the first. Return None where there is no kernel, or times that do not fit it.
    """
    module, _ = kernel()
    try:
        columns = _columns(lifetimes, container.end) if module is not None else None
        empties = (
            array("q", moments.values()),
            array("q", [operations[position].call for position in moments]),
            array("i", moments),
        )
    except (TypeError, OverflowError):
        return None
    if columns is None:
        return None
    buffer = module.ffi.from_buffer
    order, illegal = array("i", bytes(4 * (len(operations) + 1))), array("i", bytes(4 * (len(lifetimes) + 2)))
    length = module.lib.faultline_container(
        is_stack,
        len(lifetimes),
        *map(buffer, _TYPES, columns),
        len(moments),
        *map(buffer, ("int64_t[]", "int64_t[]", "int32_t[]"), empties),
        *map(buffer, ("int32_t[]", "int32_t[]"), (order, illegal)),
    )
    if length == _OUT_OF_MEMORY:
        raise HarnessError("The monitor ran out of memory.", "Check a shorter history.")
    return order[: max(length, 0)].tolist(), [lifetimes[number] for number in illegal[: max(-length, 0)]]


def _columns(lifetimes: Lifetimes, end: float) -> tuple[array[Any], ...]:
    """Return calls and returns of puts and takes, and their positions; a value that stays is taken after the end."""
    after = end + 1
    ends = (lifetimes.take_call, lifetimes.take_return)
    taken = [array("q", [time if time < after else after for time in column]) for column in ends]
    put = [array("q", column) for column in (lifetimes.put_call, lifetimes.put_return)]
    return (*put, *taken, array("i", lifetimes.put), array("i", lifetimes.take))
