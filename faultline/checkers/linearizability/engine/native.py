"""The native kernel: where it is, why there is none, and a call of it.

The kernel is optional: `build_kernel` compiles it when the package is installed, and where that was not possible the
same algorithms run in plain Python. Set FAULTLINE_ENGINE=python to do without it.
"""

from __future__ import annotations

import functools
import importlib
import os
from array import array
from typing import Any, NamedTuple

from faultline.checkers.linearizability.decision import Decision, EngineName, Legality
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.errors import HarnessError

__all__ = ["KERNEL_VERSION", "Engine", "check_natively", "engine_in_use", "kernel"]

KERNEL_VERSION = 4
"""The version that `native/kernel.c` must answer; it counts up with every change of the interface or of a verdict."""

_LEGALITIES = (Legality.LEGAL, Legality.ILLEGAL, Legality.UNKNOWN)
_ENGINES: tuple[EngineName, ...] = ("slots", "zones", "slots")
_BY_ANY_METHOD, _BY_SEARCH = 0, 2
_UNLIMITED_STEPS = 1 << 62


_BYTES, _INTS, _LONGS = "int8_t[]", "int32_t[]", "int64_t[]"
_C_TYPES = (
    *(_INTS, _BYTES, _INTS, _INTS, _LONGS, _LONGS),
    *(_INTS, _INTS),
    *(_BYTES, _BYTES, _LONGS, _INTS, _INTS, _LONGS, _INTS, _INTS),
)
"""The types of the arrays in `native/kernel.h`: six columns of operations, two of edges, and the answers."""


class Engine(NamedTuple):
    """The engine that judges: `native` or `python`, and in the latter case why not the other."""

    name: str
    reason: str


@functools.cache
def kernel() -> tuple[Any, str]:
    """Return the extension module, or None with the reason why there is none."""
    if os.environ.get("FAULTLINE_ENGINE") == "python":
        return None, "FAULTLINE_ENGINE asks for plain Python"
    try:
        module = importlib.import_module("faultline.checkers.linearizability.engine._kernel")
    except ImportError as error:
        return None, f"the kernel is not built ({error}); install Faultline again where there is a C compiler"
    built = module.lib.faultline_kernel_version()
    if built != KERNEL_VERSION:
        return None, f"the kernel that was built is version {built}, not {KERNEL_VERSION}; install Faultline again"
    return module, ""


def engine_in_use() -> Engine:
    """Return the engine that judges in this process, for reports and `faultline doctor`."""
    module, reason = kernel()
    return Engine("python", reason) if module is None else Engine("native", "")


class _Answers:
    """The arrays that the kernel fills: one entry for each key, and one order after the other in `order`."""

    def __init__(self, keys: int, operations: int) -> None:
        self.legality, self.engine = array("b", bytes(keys)), array("b", bytes(keys))
        self.steps, self.begin = array("q", bytes(8 * keys)), array("q", bytes(8 * keys))
        self.furthest, self.length = array("i", bytes(4 * keys)), array("i", bytes(4 * keys))
        state, self.order = array("i", bytes(4 * keys)), array("i", bytes(4 * operations))
        before_order = (self.legality, self.engine, self.steps, self.furthest, state)
        self.arrays = (*before_order, self.begin, self.length, self.order)

    def decisions(self) -> list[Decision]:
        """Return the decisions on the keys; each order is a view into the array of all."""
        orders = memoryview(self.order)
        decisions: list[Decision] = []
        columns = (self.legality, self.engine, self.begin, self.length, self.furthest, self.steps)
        for legality, engine, begin, length, furthest, steps in zip(*columns):
            named = orders[begin : begin + length]
            # Where the monitor refused, the operations named are those that contradict each other.
            order, core = ((), tuple(named)) if (legality, engine) == (1, 1) else (named, ())
            decisions.append(Decision(_LEGALITIES[legality], _ENGINES[engine], order, furthest, steps, core))
        return decisions


def check_natively(
    module: Any, columns: Columns, budget: Budget, first_steps: int, *, with_zones: bool
) -> list[Decision]:
    """Judge every key of `columns` with the kernel `module`; the arguments are those of `batch.check_columns`."""
    answers = _Answers(len(columns.keys), len(columns))
    operations = (columns.key, columns.kind, columns.demand, columns.produce, columns.call, columns.return_)
    arrays = (*operations, columns.edge_from, columns.edge_to, *answers.arrays)
    buffers = list(map(module.ffi.from_buffer, _C_TYPES, arrays))
    steps_max = _UNLIMITED_STEPS if budget.steps_max is None else budget.steps_max
    # A deadline that is over is a tiny time limit: zero means none to the kernel.
    timeout_s = budget.kernel_timeout_s()
    # The order of arguments, and that of `_Answers.arrays`, is that of `native/kernel.h`.
    failure = module.lib.faultline_check(
        len(columns),
        len(columns.keys),
        len(columns.values),
        *buffers[:6],
        len(columns.edge_from),
        *buffers[6:8],
        _BY_ANY_METHOD if with_zones else _BY_SEARCH,
        first_steps,
        steps_max,
        timeout_s,
        *buffers[8:],
    )
    if failure == 1:
        raise HarnessError("The search ran out of memory.", "Give it a smaller budget of steps.")
    if failure:
        raise HarnessError(
            "The linearization found for a key does not hold when it is replayed.",
            "Report this as a bug of Faultline, with the history.",
        )
    return answers.decisions()
