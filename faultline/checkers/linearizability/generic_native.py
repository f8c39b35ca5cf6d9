"""The generic search in the native kernel: the walk is C over integers, and only the model's steps are Python.

The kernel is a coroutine (`native/generic.c`): it returns when it needs steps that the model was not asked for yet,
which are answered here, and is then run on. So an exception of the model is raised where any other call would raise it,
and the clock can be read after every answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.decision import Decision, Legality
from faultline.checkers.linearizability.generic_part import Part, Walked
from faultline.checkers.linearizability.model_rules import Refutation
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Operation
from faultline.harness.errors import HarnessError

__all__ = ["walk_natively"]

_LEGALITIES = (Legality.LEGAL, Legality.ILLEGAL, Legality.UNKNOWN)
_ASKS_STEPS, _ASKS_HOPE = 1, 2
_UNLIMITED_STEPS = 1 << 62
_TIME_MAX = 1 << 62
_RECORD = 4
"""The numbers that a configuration's record begins with: rank, state, hopeless, how many operations are ahead."""


def walk_natively(module: Any, part: Part[Any, Any, Any], budget: Budget) -> Walked:
    """Look for a linearization of `part` with the kernel `module`."""
    size = len(part.operations)
    request, answer = array("i", bytes(8 * (size + 3))), array("q", bytes(8 * 7))
    search = _opened(module, part, budget, request, answer)
    run, ask = module.lib.faultline_generic_run, part.machine.ask_all
    while asked := run(search):
        if asked == _ASKS_STEPS:
            ask(request)
        elif asked == _ASKS_HOPE:
            request[1] = _has_hope(part, request)
        else:
            raise HarnessError("The search ran out of memory.", "Give it a smaller budget of steps.")
        # The kernel reads the clock as well, but not while the model is slow.
        if budget.deadline_s is not None and budget.is_over():
            module.lib.faultline_generic_give_up(search)
            break
    verdict, furthest, refuted, steps, length, is_proved, configurations = answer
    order = array("i", bytes(4 * size))
    module.lib.faultline_generic_order(search, module.ffi.from_buffer("int32_t[]", order))
    decision = Decision(_LEGALITIES[verdict], "generic", tuple(order[:length]), furthest, steps, refuted=refuted)
    return Walked(decision, bool(is_proved), partial(_refutation, module, search, part, configurations))


def _opened(module: Any, part: Part[Any, Any, Any], budget: Budget, request: array[int], answer: array[int]) -> Any:
    """Return the search, which is freed with the object; it writes to `request` and `answer` as long as it lives."""
    told = array("b", part.told)
    columns = (array("i", part.class_of), *_times(part.operations), told)
    numbers = list(map(module.ffi.from_buffer, ("int32_t[]", "int64_t[]", "int64_t[]", "int8_t[]"), columns))
    buffers = module.ffi.from_buffer("int32_t[]", request), module.ffi.from_buffer("int64_t[]", answer)
    search = module.lib.faultline_generic_open(
        len(part.operations),
        len(part.told),
        *numbers,
        part.can_reach is not None,
        part.machine.initial,
        _UNLIMITED_STEPS if budget.steps_max is None else budget.steps_max,
        budget.kernel_timeout_s(),
        *buffers,
    )
    if search == module.ffi.NULL:
        raise HarnessError("The search ran out of memory.", "Check a shorter history.")
    return module.ffi.gc(search, module.lib.faultline_generic_close)


def _times(operations: Sequence[Operation[Any, Any]]) -> tuple[array[int], array[int]]:
    """Return the calls and the returns, -1 for pending ones; times that do not fit are replaced by their ranks."""
    calls: list[Any] = [operation.call for operation in operations]
    returns: list[Any] = [-1 if operation.return_ == PENDING else operation.return_ for operation in operations]
    if all(type(time) is int and 0 <= time < _TIME_MAX for time in calls) and all(
        type(time) is int and -1 <= time < _TIME_MAX for time in returns
    ):
        return array("q", calls), array("q", returns)
    completed = [operation.return_ for operation in operations if operation.return_ != PENDING]
    rank_of: dict[Any, int] = {time: rank for rank, time in enumerate(sorted({*calls, *completed}))}
    rank_of[PENDING] = -1
    return array("q", map(rank_of.__getitem__, calls)), array("q", [rank_of[each.return_] for each in operations])


def _has_hope(part: Part[Any, Any, Any], request: array[int]) -> bool:
    """Return whether the hook sees a way for an operation to become legal."""
    assert part.can_reach is not None
    state, position, count = request[0], request[1], request[2]
    available = [part.operations[other] for other in request[3 : 3 + count]]
    return part.can_reach(part.machine.value(state), part.operations[position], available)


def _refutation(module: Any, search: Any, part: Part[Any, Any, Any], count: int) -> Refutation:
    """Return the configurations that were visited, as a proof."""
    record = array("i", bytes(4 * (len(part.operations) + _RECORD)))
    buffer = module.ffi.from_buffer("int32_t[]", record)
    configurations: list[Configuration] = []
    hopeless: set[int] = set()
    for number in range(count):
        end = module.lib.faultline_generic_configuration(search, number, buffer)
        rank, state, is_hopeless, ahead = record[:_RECORD]
        begun = tuple(record[_RECORD : _RECORD + ahead]), tuple(record[_RECORD + ahead : end])
        configurations.append(Configuration(rank, state, *begun))
        hopeless.update({number} if is_hopeless else ())
    still = {each for each in range(len(part.told)) if module.lib.faultline_generic_is_still(search, each)}
    return part.refutation(still, configurations, hopeless)
