"""Sets of configurations that refute a key: made and verified by the kernel, or in plain Python without it."""

from __future__ import annotations

from array import array
from typing import Any

from faultline.checkers.linearizability.certificates import Configurations
from faultline.checkers.linearizability.decision import Legality
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.frontier import Frontier, advance
from faultline.checkers.linearizability.engine.native import kernel
from faultline.checkers.linearizability.value_rules import ValueRules
from faultline.checkers.linearizability.verify import fault_of_set
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.harness.errors import HarnessError

__all__ = ["LOOKS_MAX", "fault_of_refutation", "fault_of_set_natively", "frontier"]

LOOKS_MAX = 1_000_000
"""The work that making one set may cost, whatever the budget of the search was: configurations that are made, and
comparisons of what two of them used. A tenth of a second for the kernel, and a hundred megabytes at the worst."""

_NATIVE_FAULTS = {
    0: "",
    1: "member {} of its set is no configuration of these operations",
    2: "a step leads from member {} of its set out of the set",
    3: "a step leads from member {} of its set to the end of the history",
}


def frontier(
    columns: Columns, budget: Budget = UNLIMITED, *, looks_max: int = LOOKS_MAX, engine: str | None = None
) -> Frontier:
    """Return the frontier of the one key in `columns`, given up after `looks_max` looks or when the time is over.

    The steps of `budget` are another measure and do not count. `engine` names one, for tests.
    """
    module = None if engine == "python" else kernel()[0]
    if module is not None:
        return _advance_natively(module, columns, looks_max, budget)
    return advance(columns, looks_max, budget)


def _arguments(module: Any, columns: Columns) -> list[Any]:
    buffer = module.ffi.from_buffer
    return [
        len(columns),
        len(columns.values),
        buffer("int8_t[]", columns.kind),
        buffer("int32_t[]", columns.demand),
        buffer("int32_t[]", columns.produce),
        buffer("int64_t[]", columns.call),
        buffer("int64_t[]", columns.return_),
        len(columns.edge_from),
        buffer("int32_t[]", columns.edge_from),
        buffer("int32_t[]", columns.edge_to),
    ]


def _advance_natively(module: Any, columns: Columns, looks_max: int, budget: Budget) -> Frontier:
    told = array("q", bytes(8 * 6))
    timeout_s = budget.kernel_timeout_s()
    made = module.lib.faultline_refute(
        *_arguments(module, columns), looks_max, timeout_s, module.ffi.from_buffer("int64_t[]", told)
    )
    if not made:
        raise HarnessError("The frontier of a key ran out of memory.", "Give it a smaller budget of steps.")
    try:
        verdict, furthest, looks, count, ahead, used = told
        lengths = (count, count, count + 1, ahead, count + 1, used)
        found = Configurations(*(array("i", bytes(4 * length)) for length in lengths))
        module.lib.faultline_take_refutation(made, *_buffers(module, found))
    finally:
        module.lib.faultline_forget(made)
    legality = (Legality.LEGAL, Legality.ILLEGAL, Legality.UNKNOWN)[verdict]
    return Frontier(legality, furthest, looks, found)


def _buffers(module: Any, found: Configurations) -> list[Any]:
    columns = (found.rank, found.state, found.ahead_begin, found.ahead, found.used_begin, found.used)
    return [module.ffi.from_buffer("int32_t[]", column) for column in columns]


def fault_of_set_natively(columns: Columns, configurations: Configurations) -> str:
    """Return what `verify.fault_of_set` does, from the kernel's verifier; the kernel must be there."""
    module = kernel()[0]
    at = array("q", [0])
    fault = module.lib.faultline_verify(
        *_arguments(module, columns),
        len(configurations),
        *_buffers(module, configurations),
        module.ffi.from_buffer("int64_t[]", at),
    )
    if fault not in _NATIVE_FAULTS:
        raise HarnessError("Verifying a certificate ran out of memory.", "Give the check a smaller budget of steps.")
    return _NATIVE_FAULTS[fault].format(at[0])


def fault_of_refutation(columns: Columns, configurations: Configurations) -> str:
    """Return why `configurations` do not refute `columns`, in words, from the kernel's verifier or the plain one."""
    if kernel()[0] is not None:
        return fault_of_set_natively(columns, configurations)
    return fault_of_set(ValueRules(columns), configurations)
