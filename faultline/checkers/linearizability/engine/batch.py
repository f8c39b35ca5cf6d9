"""One call for all keys: `check_columns`.

Keys are checked apart (linearizability is local: Herlihy & Wing 1990, section 3). Those the monitor cannot judge are
searched, each with a few hundred steps at first; only when every key had its turn do the undecided ones get eight times
as many, and so on, so that a key that is easily refuted is not kept waiting by one that is hard.

Every answer that a key is legal comes with a linearization that was replayed; see `replay`.
"""

from __future__ import annotations

import time
from array import array
from typing import Any, Literal

from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import kernel
from faultline.checkers.linearizability.engine.result import FIRST_STEPS, KeyResult
from faultline.checkers.porcupine.budget import UNLIMITED, Budget, CheckResult
from faultline.harness.errors import HarnessError

__all__ = ["KeyResult", "Method", "check_columns"]

Method = Literal["auto", "search"]

_RESULTS = (CheckResult.OK, CheckResult.ILLEGAL, CheckResult.UNKNOWN)
_UNLIMITED_STEPS = 1 << 62


def check_columns(
    columns: Columns, budget: Budget = UNLIMITED, *, method: Method = "auto", engine: str | None = None
) -> list[KeyResult]:
    """Judge every key of `columns`, in the order of `columns.keys`.

    `budget` counts the steps of each key and the time of all; `method` may forbid the monitor, and `engine` (`native`,
    `python`) names one, for tests. Raises HarnessError when a linearization does not hold when it is replayed.
    """
    module = None if engine == "python" else kernel()[0]
    if engine == "native" and module is None:
        raise HarnessError(f"The native engine is not there: {kernel()[1]}.", "Leave the choice to Faultline.")
    steps_max = _UNLIMITED_STEPS if budget.steps_max is None else budget.steps_max
    if module is None:
        from faultline.checkers.linearizability.engine.dovetail import check_in_python

        return check_in_python(columns, budget, with_zones=method == "auto")
    return _check_natively(module, columns, steps_max, budget.deadline_s, method)


def _check_natively(
    module: Any, columns: Columns, steps_max: int, deadline_s: float | None, method: Method
) -> list[KeyResult]:
    keys, size, buffer = len(columns.keys), len(columns), module.ffi.from_buffer
    verdict, decided_by = array("b", bytes(keys)), array("b", bytes(keys))
    steps, begin = array("q", bytes(8 * keys)), array("q", bytes(8 * keys))
    furthest, state, length = (array("i", bytes(4 * keys)) for _ in range(3))
    certificate, order = array("i", bytes(16 * keys)), array("i", bytes(4 * size))
    timeout_s = 0.0 if deadline_s is None else max(deadline_s - time.monotonic(), 1e-6)
    failure = module.lib.faultline_check(
        size,
        keys,
        len(columns.values),
        buffer("int32_t[]", columns.key),
        buffer("int8_t[]", columns.kind),
        buffer("int32_t[]", columns.demand),
        buffer("int32_t[]", columns.produce),
        buffer("int64_t[]", columns.call),
        buffer("int64_t[]", columns.return_),
        len(columns.edge_from),
        buffer("int32_t[]", columns.edge_from),
        buffer("int32_t[]", columns.edge_to),
        2 if method == "search" else 0,
        FIRST_STEPS,
        steps_max,
        timeout_s,
        buffer("int8_t[]", verdict),
        buffer("int8_t[]", decided_by),
        buffer("int64_t[]", steps),
        buffer("int32_t[]", furthest),
        buffer("int32_t[]", state),
        buffer("int32_t[]", certificate),
        buffer("int64_t[]", begin),
        buffer("int32_t[]", length),
        buffer("int32_t[]", order),
    )
    if failure == 1:
        raise HarnessError("The search ran out of memory.", "Give it a smaller budget of steps.")
    if failure:
        raise HarnessError(
            "The linearization found for a key does not hold when it is replayed.",
            "Report this as a bug of Faultline, with the history.",
        )
    orders = memoryview(order)
    return [
        KeyResult(
            _RESULTS[verdict[key]],
            "zones" if decided_by[key] == 1 else "slots",
            steps[key],
            furthest[key],
            state[key],
            tuple(certificate[4 * key : 4 * key + 4].tolist()) if verdict[key] == 1 else (),
            orders[begin[key] : begin[key] + length[key]],
        )
        for key in range(keys)
    ]
