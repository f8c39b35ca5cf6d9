"""Deciding a history of a data type: by its monitor where that can, by the search where it hands over.

Nothing is taken on trust. An order that a monitor found is replayed on an ordinary object; its core is given to the
generic search, and through it to the port, which must refuse it too, as far as a small budget reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, Call
from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.generic_search import Hooks
from faultline.checkers.linearizability.monitors.counters import monitor_counter
from faultline.checkers.linearizability.monitors.locks import monitor_lock
from faultline.checkers.linearizability.monitors.queues import monitor_queue
from faultline.checkers.linearizability.monitors.result import MonitorResult, hand_over, replays
from faultline.checkers.linearizability.monitors.sets import monitor_set
from faultline.checkers.linearizability.monitors.stacks import monitor_stack
from faultline.checkers.porcupine.model import PENDING, CheckResult, Operation
from faultline.checkers.porcupine.search import Budget
from faultline.harness.errors import HarnessError, UsageError

__all__ = ["CONFIRMATION_STEPS_MAX", "MONITORS", "Decision", "decide", "hooks_for"]

CONFIRMATION_STEPS_MAX = 20_000
"""Configurations the search may visit to confirm a monitor's core, beyond a few for each of its operations."""

Monitor = Callable[[Sequence[Operation[Call, Any]]], MonitorResult]

MONITORS: dict[str, Monitor] = {
    "queue": monitor_queue,
    "stack": monitor_stack,
    "lock": monitor_lock,
    "counter": monitor_counter,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """`order` (positions) when OK, or the longest found when UNKNOWN; `core` when ILLEGAL, with the `reason` in words.

    `engine` is who decided: the monitor, the generic search or the port. `handed_over` says why the monitor did not.
    `furthest` counts the completed operations that can be placed, in order of return; `steps` what the search cost.
    `is_confirmed`: the order was replayed, or the core was refused by another engine as well.
    """

    result: CheckResult
    engine: Literal["monitor", "generic", "port"]
    order: tuple[int, ...] = ()
    core: tuple[int, ...] = ()
    reason: str = ""
    handed_over: str = ""
    furthest: int = 0
    steps: int = 0
    is_confirmed: bool = False


def decide(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> Decision:
    """Decide `operations` on one object of `data_type` (a name of MODEL_FACTORIES)."""
    if data_type not in MODEL_FACTORIES:
        raise UsageError(f"There is no data type called `{data_type}`.", f"Choose one of {', '.join(MODEL_FACTORIES)}.")
    found = _monitored(data_type, operations, budget)
    if found.result is CheckResult.OK:
        return _replayed(data_type, operations, found)
    if found.result is CheckResult.ILLEGAL:
        return _confirmed(data_type, operations, found)
    return replace(_searched(data_type, operations, budget), handed_over=found.reason)


def _monitored(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> MonitorResult:
    try:
        if data_type == "set":
            return monitor_set(operations, lambda some: _value_by_search(some, budget))
        monitor = MONITORS.get(data_type)
        return monitor(operations) if monitor else hand_over(f"there is no monitor for {data_type}")
    except TypeError:
        if all(map(_is_hashable, operations)):
            raise
        return hand_over("some values cannot be hashed")


def _is_hashable(operation: Operation[Call, Any]) -> bool:
    try:
        hash((operation.input, operation.output))  # only to see whether it can be done
    except TypeError:
        return False
    return True


def _value_by_search(operations: Sequence[Operation[Call, Any]], budget: Budget) -> MonitorResult:
    """One hard value of a set."""
    searched = _searched("set", operations, budget)
    core = searched.core if searched.result is CheckResult.ILLEGAL else ()
    return MonitorResult(searched.result, searched.order, core, searched.reason or "the search ran out of steps")


def _replayed(data_type: str, operations: Sequence[Operation[Call, Any]], found: MonitorResult) -> Decision:
    if not replays(data_type, operations, found.order):
        raise HarnessError(
            f"The linearization that the {data_type} monitor found does not hold when it is replayed.",
            f"Report this as a bug of Faultline, with the operations: {list(operations)[:50]!r}.",
        )
    return Decision(CheckResult.OK, "monitor", found.order, furthest=_completed(operations), is_confirmed=True)


def _confirmed(data_type: str, operations: Sequence[Operation[Call, Any]], found: MonitorResult) -> Decision:
    core = [operations[position] for position in found.core]
    model = MODEL_FACTORIES[data_type].model()
    checked = check_part(model, core, Budget(CONFIRMATION_STEPS_MAX + 4 * len(core)), hooks_for(data_type))
    if checked.result is CheckResult.OK:
        raise HarnessError(
            f"The {data_type} monitor and the search disagree about a few operations, so one of them is wrong.",
            f"Report this as a bug of Faultline, with the operations: {core[:50]!r}.",
        )
    return Decision(
        CheckResult.ILLEGAL,
        "monitor",
        core=found.core,
        reason=found.reason,
        is_confirmed=checked.result is CheckResult.ILLEGAL,
    )


def _searched(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> Decision:
    model, hooks = MODEL_FACTORIES[data_type].model(), hooks_for(data_type)
    found = check_part(model, operations, budget, hooks)
    core: tuple[int, ...] = ()
    reason = ""
    if found.result is CheckResult.ILLEGAL:
        returns = sorted(operation.return_ for operation in operations)
        cut = returns[found.refuted]
        core = tuple(position for position, operation in enumerate(operations) if operation.call <= cut)
        reason = f"after {counted(found.furthest, 'operation')} that returned no order can place the next one"
    return Decision(
        found.result,
        found.engine,
        found.order,
        core,
        reason,
        furthest=found.furthest,
        steps=found.steps,
        is_confirmed=found.is_confirmed,
    )


def _completed(operations: Sequence[Operation[Call, Any]]) -> int:
    return sum(operation.return_ != PENDING for operation in operations)


def hooks_for(data_type: str) -> Hooks[Any, Call, Any]:
    """What the search may know: which calls change nothing, in any state in which they are legal."""
    reads = MODEL_FACTORIES[data_type].reads

    def readonly(given: Call, answer: Any) -> bool:
        return given[0] in reads or answer is False or (answer is None and given[0] in ("dequeue", "pop"))

    return Hooks(readonly=readonly)
