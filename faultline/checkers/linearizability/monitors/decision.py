"""Deciding a history of an object: by its monitor where that can, by the search where it hands over.

A monitor decides from the shape of a history instead of searching, and only for histories of a certain kind. It answers
with an order that proves the history legal, with a *core*, operations that are illegal by themselves, or with the
reason why it cannot decide. Then the history is judged as a register if it can be one (`as_registers`), or searched.

Nothing is taken on trust. An order that a monitor found is replayed on an ordinary object. The rule that it says is
broken is looked up (`contradictions`); a core without one is given to the generic search, which must refuse it too, as
far as a small budget reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.certificates import Certificate, ObjectCalls
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, Call
from faultline.checkers.linearizability.decision import Decision, hand_over
from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.generic_search import Hooks
from faultline.checkers.linearizability.monitors.as_registers import decide_as_registers
from faultline.checkers.linearizability.monitors.counters import monitor_counter
from faultline.checkers.linearizability.monitors.locks import monitor_lock
from faultline.checkers.linearizability.monitors.queues import monitor_queue
from faultline.checkers.linearizability.monitors.sets import monitor_set
from faultline.checkers.linearizability.monitors.stacks import monitor_stack
from faultline.checkers.linearizability.replay import replays
from faultline.checkers.linearizability.verifier import fault_of
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Operation
from faultline.harness.errors import HarnessError, UsageError

__all__ = ["CONFIRMATION_STEPS_MAX", "MONITORS", "decide", "hooks_for"]

CONFIRMATION_STEPS_MAX = 20_000
"""Configurations that the search may visit to confirm a monitor's core, beyond some for each of its operations."""

CONFIRMATION_STEPS_PER_OPERATION = 40
"""Enough for ten clients of a counter, whose cores hold every addition before a read."""

Monitor = Callable[[Sequence[Operation[Call, Any]]], Decision]

MONITORS: dict[str, Monitor] = {
    "queue": monitor_queue,
    "stack": monitor_stack,
    "lock": monitor_lock,
    "counter": monitor_counter,
}


def decide(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> Decision:
    """Decide `operations` on one object of `data_type` (a name of MODEL_FACTORIES)."""
    if data_type not in MODEL_FACTORIES:
        raise UsageError(f"There is no data type called `{data_type}`.", f"Choose one of {', '.join(MODEL_FACTORIES)}.")
    found = _monitored(data_type, operations, budget)
    if found.is_legal:
        return _replayed(data_type, operations, found)
    if found.is_illegal:
        return _confirmed(data_type, operations, found)
    (decided,) = _decided_apart(data_type, [operations], budget)
    if decided.is_legal and not decided.is_confirmed:
        decided = _replayed(data_type, operations, decided)
    return replace(decided, handed_over=found.reason)


def _decided_apart(data_type: str, parts: Sequence[Sequence[Operation[Call, Any]]], budget: Budget) -> list[Decision]:
    """Decide each of `parts` by the engine for registers where that can; what it refuses, the search has to refuse."""
    found = decide_as_registers(data_type, parts, budget)
    if found is None:
        return [_searched(data_type, part, budget) for part in parts]
    return [
        decision if decision.is_legal else _searched(data_type, part, budget)
        for part, decision in zip(parts, found, strict=True)
    ]


def _monitored(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> Decision:
    try:
        if data_type == "set":
            # The values of a set are independent of each other, so that only the hard ones are judged in another way.
            return monitor_set(operations, lambda parts: _decided_apart("set", parts, budget))
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


def _replayed(data_type: str, operations: Sequence[Operation[Call, Any]], found: Decision) -> Decision:
    if not replays(data_type, operations, found.order):
        raise HarnessError(
            f"The linearization that the {data_type} monitor found does not hold when it is replayed.",
            f"Report this as a bug of Faultline, with the operations: {list(operations)[:50]!r}.",
        )
    return replace(found, furthest=_completed(operations), is_confirmed=True)


def _confirmed(data_type: str, operations: Sequence[Operation[Call, Any]], found: Decision) -> Decision:
    core = [operations[position] for position in found.core]
    model = MODEL_FACTORIES[data_type].model()
    if found.contradiction is not None:
        certificate = Certificate(ObjectCalls(model, operations, data_type), contradiction=found.contradiction)
        if fault := fault_of(certificate):
            raise HarnessError(
                f"The certificate of the {data_type} monitor does not hold: {fault}.",
                f"Report this as a bug of Faultline, with the operations: {list(operations)[:50]!r}.",
            )
        return replace(found, certificate=certificate, is_confirmed=True)
    budget = Budget(CONFIRMATION_STEPS_MAX + CONFIRMATION_STEPS_PER_OPERATION * len(core))
    checked = check_part(model, core, budget, hooks_for(data_type))
    if checked.is_legal:
        raise HarnessError(
            f"The {data_type} monitor and the search disagree about a few operations, so one of them is wrong.",
            f"Report this as a bug of Faultline, with the operations: {core[:50]!r}.",
        )
    return replace(found, is_confirmed=checked.is_illegal)


def _searched(data_type: str, operations: Sequence[Operation[Call, Any]], budget: Budget) -> Decision:
    found = check_part(MODEL_FACTORIES[data_type].model(), operations, budget, hooks_for(data_type))
    if found.is_unknown:
        return replace(found, reason="the search ran out of steps")
    if found.is_legal:
        return found
    # By the return that makes it illegal, only the operations that were called until then can have mattered.
    cut = sorted(operation.return_ for operation in operations)[found.refuted]
    core = tuple(position for position, operation in enumerate(operations) if operation.call <= cut)
    reason = f"after {counted(found.furthest, 'operation')} that returned no order can place the next one"
    return replace(found, core=core, reason=reason)


def _completed(operations: Sequence[Operation[Call, Any]]) -> int:
    return sum(operation.return_ != PENDING for operation in operations)


def hooks_for(data_type: str) -> Hooks[Any, Call, Any]:
    """Return what the search may know: the calls that change nothing in any state in which they are legal."""
    reads = MODEL_FACTORIES[data_type].reads

    def readonly(given: Call, answer: Any) -> bool:
        return given[0] in reads or answer is False or (answer is None and given[0] in ("dequeue", "pop"))

    return Hooks(readonly=readonly)
