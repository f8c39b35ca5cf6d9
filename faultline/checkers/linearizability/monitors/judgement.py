"""Judging one key of a run whose objects are sets, queues, stacks, locks or counters.

Rows of a history become calls of the data type: what failed for certain did not happen and is dropped, what is
indeterminate is pending, and a read that was never answered tells nothing. A dequeue or pop that answered null, or
failed with the code `empty`, found nothing. The argument of an acquire or release is the process that asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN, Call, DataType
from faultline.checkers.linearizability.explain import Clock, describe_value, seconds
from faultline.checkers.linearizability.keys import CHECKER, KeyJudgement, core_rows, key_judgement
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.monitors.decision import Decision, decide
from faultline.checkers.linearizability.operations import INFINITY, canonical
from faultline.checkers.linearizability.undecided import undecided
from faultline.checkers.porcupine.model import PENDING, CheckResult, Operation
from faultline.checkers.porcupine.search import Budget
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Finding, Verdict

__all__ = ["ANOMALY", "EMPTY", "data_type_operations", "judge_data_type"]

ANOMALY = "non-linearizable"
"""The name of the anomaly; the sentence says more."""

EMPTY = "empty"
"""The error code of a removal that failed because there was nothing."""

SHRUNK_MAX = 400
"""Cores up to this size are made smaller."""

_REMOVALS = ("dequeue", "pop")
_VERDICTS = {
    CheckResult.OK: Verdict.PASS,
    CheckResult.ILLEGAL: Verdict.VIOLATION,
    CheckResult.UNKNOWN: Verdict.UNKNOWN,
}


class _Placed(NamedTuple):
    """An operation and the row it comes from."""

    row: int
    operation: Operation[Call, Any]


def judge_data_type(
    history: History, key: str | None, rows: Sequence[int], data_type: str, budget: Budget, clock: Clock = "seconds"
) -> KeyJudgement:
    """Judge `key`, one object of `data_type`, whose operations are in `rows`."""
    placed = data_type_operations(history, rows, MODEL_FACTORIES[data_type])
    found = decide(data_type, [item.operation for item in placed], budget)
    returns = [INFINITY if item.operation.return_ == PENDING else int(item.operation.return_) for item in placed]
    finding = None
    if found.result is CheckResult.ILLEGAL:
        finding = _finding(history, key, data_type, [placed[position] for position in found.core], found, clock)
    judged = key_judgement(key, _VERDICTS[found.result], returns, found.furthest, found.steps, finding)
    if found.result is not CheckResult.UNKNOWN:
        return judged
    known = undecided(
        history,
        key,
        [(item.row, int(item.operation.call), return_) for item, return_ in zip(placed, returns)],
        [placed[position].row for position in found.order],
        placed=max(found.furthest, 0),
        steps=found.steps,
        clock=clock,
    )
    return structs.replace(judged, undecided=known)


def data_type_operations(history: History, rows: Sequence[int], data_type: DataType) -> list[_Placed]:
    """The rows of one object as operations, with the rows they come from."""
    placed: list[_Placed] = []
    for row in rows:
        f, outcome = history.f[row], history.outcome[row]
        if f not in data_type.functions:
            raise UsageError(
                f"Row {row} of the history calls `{f}`, which the model {data_type.name} does not know.",
                f"It knows {', '.join(sorted(data_type.functions))}; choose the model that fits the workload.",
            )
        found_nothing = outcome == "fail" and f in _REMOVALS and history.error[row] == EMPTY
        if (outcome == "fail" and not found_nothing) or (outcome != "ok" and f in data_type.reads):
            continue
        answered = outcome == "ok" or found_nothing
        answer = _answer(history, row, data_type) if outcome == "ok" else None if found_nothing else UNKNOWN
        call: Call = (f, _argument(history, row, data_type))
        return_ = history.complete_index[row] if answered else PENDING
        operation = Operation(history.process[row], call, history.invoke_index[row], answer, return_)
        placed.append(_Placed(row, operation))
    return placed


def _argument(history: History, row: int, data_type: DataType) -> Hashable:
    value = history.value[row]
    if data_type.takes_process:
        return history.process[row]
    if data_type.name == "mutex" or history.f[row] in ("read", *_REMOVALS):
        return None
    if data_type.name == "counter":
        return _integer(row, value)
    return _filled(value)


def _answer(history: History, row: int, data_type: DataType) -> Any:
    f, result = history.f[row], history.result[row]
    if f in _REMOVALS:
        return None if result is None else canonical(result)
    if data_type.name == "counter" and f == "read":
        return _integer(row, result)
    if data_type.name != "set":
        return None
    if f == "read":
        if not isinstance(result, (list, tuple)):
            raise UsageError(f"Row {row} of the history: a read of a set must answer a list, not {result!r}.", _FIT)
        return frozenset(map(_filled, result))
    if f == "contains" and not isinstance(result, bool):
        raise UsageError(f"Row {row} of the history: contains must answer true or false, not {result!r}.", _FIT)
    return result if isinstance(result, bool) else None


_FIT = "Choose the model that fits the workload."


def _integer(row: int, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"Row {row} of the history: a counter works with integers, not {value!r}.", _FIT)
    return value


def _filled(value: Any) -> Hashable:
    """A value in a container; null is one like any other there."""
    return b"json:null" if value is None else canonical(value)


def _finding(
    history: History, key: str | None, data_type: str, core: Sequence[_Placed], found: Decision, clock: Clock
) -> Finding:
    shrunk, is_minimal = _shrunk(core, data_type)
    rows = sorted(item.row for item in shrunk)
    roles = {item.row: "optional" if item.operation.return_ == PENDING else "bound" for item in shrunk}
    completed = [row for row in rows if history.outcome[row] != "info"]
    time_us = max((history.complete_us[row] for row in completed), default=0)
    telling = max(completed, key=lambda row: history.complete_index[row], default=rows[0])
    moment = seconds(time_us) if clock == "seconds" else f"event {history.complete_index[telling]}"
    place = f"The {data_type}" if key is None else f"The {data_type} {key}"
    suffice = "suffice" if len(rows) > 1 else "suffices"
    enough = f"{len(rows):,} of {counted(len(history), 'operation')} {suffice} to show it"
    return Finding(
        checker=CHECKER,
        anomaly=ANOMALY,
        sentence=f"{place} did what no {data_type} does: {found.reason}; {enough}, the last of which, "
        f"{_told(history, telling)}, ended at {moment}.",
        key=key,
        operations=tuple(rows),
        time_us=time_us,
        node=history.node[telling] or None,
        detail={
            "core": core_rows(history, rows, roles),
            "reason": found.reason,
            "engine": found.engine,
            "handed_over": found.handed_over,
            "confirmed": found.is_confirmed,
            "minimal": is_minimal,
        },
    )


def _told(history: History, row: int) -> str:
    f, value, result = history.f[row], history.value[row], history.result[row]
    given = "" if value is None else f" of {describe_value(value)}"
    return f"{f}{given} by process {history.process[row]}" + (
        "" if result is None else f" answering {describe_value(result)}"
    )


def _shrunk(core: Sequence[_Placed], data_type: str) -> tuple[list[_Placed], bool]:
    """A smaller core, by sound relaxations only: leave out reads, let other operations happen later or never."""
    if len(core) > SHRUNK_MAX:
        return list(core), False
    shrinking = ShrinkBudget(Budget())
    reads = MODEL_FACTORIES[data_type].reads

    def is_illegal(some: Sequence[_Placed]) -> bool:
        found = decide(data_type, [item.operation for item in some], shrinking.next())
        return shrinking.proves_illegal(found.result, found.steps)

    def relax(item: _Placed, _all: Sequence[_Placed]) -> list[_Placed | None]:
        operation = item.operation
        if operation.input[0] in reads or (operation.output is None and operation.input[0] in _REMOVALS):
            return [None]
        if operation.return_ == PENDING or operation.input[0] in _REMOVALS:
            return []
        pending = Operation(operation.client_id, operation.input, operation.call, UNKNOWN, PENDING)
        return [_Placed(item.row, pending)]

    if not is_illegal(core):
        return list(core), False
    smaller, is_minimal = minimise(core, is_illegal, relax)
    return smaller, is_minimal and not shrinking.is_spent
