"""Judging one key of a string store (get, put, append).

The engine judges the texts that gets answered (see `engine.texts`), and the port of Porcupine confirms what it
refuses. The illegal prefix is found by bisection: a longer prefix than an illegal one is illegal too, since what had
not returned by its end may still happen, or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import structs

from faultline.checkers.linearizability.classify import Anomaly
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.result import KeyResult
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.explain import Clock, explain
from faultline.checkers.linearizability.keys import CHECKER, KeyJudgement, core_rows, key_judgement
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.models import KV_MODEL, KvInput
from faultline.checkers.linearizability.operations import BEGINNING, INFINITY
from faultline.checkers.linearizability.undecided import GIVEN_UP, REFUSED, ruled_out, undecided
from faultline.checkers.porcupine import PENDING, Budget, CheckResult, Model, Operation, PartResult, check_single
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Finding, Verdict

__all__ = ["KvOperation", "judge_kv", "kv_operations", "kv_relaxations", "live_model", "referee_kv"]


_PENDING_ANSWER = "pending"
"""What stands for the answer of a put or append that never returned."""


class KvOperation(NamedTuple):
    """A get (`text` is what it answered), a put or an append (`text` is what it was given)."""

    f: str
    text: str
    call: int
    return_: int
    row: int


def kv_operations(history: History, rows: Sequence[int]) -> list[KvOperation]:
    """The operations in `rows` (of one key); what failed, and gets that were never answered, are left out."""
    operations: list[KvOperation] = []
    for row in rows:
        f, outcome = history.f[row], history.outcome[row]
        text = history.result[row] if f == "get" else history.value[row]
        if f not in ("get", "put", "append") or (outcome == "ok" and not isinstance(text, str)):
            raise UsageError(
                f"Row {row} of the history, `{f}` with {text!r}, is no get, put or append of a string.",
                "The model `kv` knows only these; choose the model that fits the workload.",
            )
        if outcome == "fail" or (f == "get" and outcome != "ok"):
            continue
        return_ = history.complete_index[row] if outcome == "ok" else INFINITY
        operations.append(KvOperation(f, text, history.invoke_index[row], return_, row))
    return operations


def referee_kv(operations: Sequence[KvOperation]) -> list[Operation[KvInput, str | None]]:
    """The same for the port of Porcupine."""
    return [
        Operation(
            0, KvInput(f, "", text), call, text if f == "get" else None, PENDING if return_ == INFINITY else return_
        )
        for f, text, call, return_, _ in operations
    ]


def judge_kv(
    history: History, key: str | None, operations: Sequence[KvOperation], budget: Budget, clock: Clock = "seconds"
) -> KeyJudgement:
    """Judge one key of a string store."""
    returns = [operation.return_ for operation in operations]
    found = check_columns(text_columns([(key, operations)]), budget)[0]
    if found.result is CheckResult.OK:
        return key_judgement(key, Verdict.PASS, returns, found.furthest, found.steps)
    if found.result is CheckResult.UNKNOWN:
        return _unknown(history, key, operations, found, budget, clock)
    shrinking = ShrinkBudget(budget)
    prefix, placed = _shortest_illegal_prefix(operations, shrinking)
    core, is_minimal = minimise(prefix, lambda candidate: _is_illegal(candidate, shrinking), kv_relaxations)
    if not _is_confirmed(core, budget):
        return _unknown(history, key, operations, found, budget, clock)
    detail = {"longest_prefix": placed, "minimal": is_minimal and not shrinking.is_spent}
    finding = _finding(history, key, operations, core, ShrinkBudget(budget), clock, detail)
    return key_judgement(key, Verdict.VIOLATION, returns, placed, found.steps, finding)


def _unknown(
    history: History,
    key: str | None,
    operations: Sequence[KvOperation],
    found: KeyResult,
    budget: Budget,
    clock: Clock,
) -> KeyJudgement:
    columns = text_columns([(key, operations)])
    rows, by_row = columns.row, {operation.row: operation for operation in operations}
    spans = zip(rows, columns.call, (INFINITY if return_ < 0 else return_ for return_ in columns.return_))
    beginning, excluded = ruled_out(columns, budget)
    order = [rows[i] for i in found.order]
    known = undecided(
        history,
        key,
        spans,
        order,
        placed=max(found.furthest, 0),
        steps=found.steps,
        state=_state_after([by_row[row] for row in order]),
        refuted=([rows[i] for i in beginning], [rows[i] for i in excluded]),
        gave_up=REFUSED if found.result is CheckResult.ILLEGAL else GIVEN_UP,
        clock=clock,
    )
    returns = [operation.return_ for operation in operations]
    unknown = key_judgement(key, Verdict.UNKNOWN, returns, found.furthest, found.steps)
    return structs.replace(unknown, undecided=known)


def _is_illegal(operations: Sequence[KvOperation], shrinking: ShrinkBudget) -> bool:
    checked = check_columns(text_columns([(None, operations)]), shrinking.next())[0]
    return shrinking.proves_illegal(checked.result, checked.steps)


def _is_confirmed(core: Sequence[KvOperation], budget: Budget) -> bool:
    """Whether the port of Porcupine also refuses `core`; raises HarnessError when it accepts it."""
    result = check_single(live_model(core), referee_kv(core), budget).result
    if result is CheckResult.OK:
        raise HarnessError(
            "The engine and the port of Porcupine disagree about the same few operations, so one of them is wrong.",
            f"Report this as a bug of Faultline, with the operations: {core!r}.",
        )
    return result is CheckResult.ILLEGAL


def live_model(operations: Sequence[KvOperation]) -> Model[str | None, KvInput, str | None]:
    """The model as far as the gets of `operations` can tell, which keeps many optional operations from exploding.

    A string that is not the beginning of any answer can only be seen again after a put, so all such strings are one
    dead state, None; and a pending operation that would end there can as well stay away.
    """
    answers = [operation.text for operation in operations if operation.f == "get"]

    def step(state: str | None, given: KvInput, answer: str | None) -> tuple[bool, str | None]:
        if given.f == "get":
            return answer == state, state
        text = given.value if given.f == "put" else None if state is None else state + given.value
        after = text if text is not None and any(seen.startswith(text) for seen in answers) else None
        return answer != _PENDING_ANSWER or after is not None, after

    return Model(init=lambda: "", step=step)


def _shortest_illegal_prefix(
    operations: Sequence[KvOperation], shrinking: ShrinkBudget
) -> tuple[list[KvOperation], int]:
    """The history up to the first return that makes it illegal, and how many operations had returned before."""
    returns = sorted(operation.return_ for operation in operations if operation.return_ != INFINITY)
    legal, illegal = -1, len(returns) - 1
    while illegal - legal > 1:
        middle = (legal + illegal) // 2
        if _is_illegal(_prefix(operations, returns[middle]), shrinking):
            illegal = middle
        else:
            legal = middle
    return _prefix(operations, returns[illegal]), illegal


def _prefix(operations: Sequence[KvOperation], cut: int) -> list[KvOperation]:
    done = [operation for operation in operations if operation.return_ <= cut]
    under_way = [operation for operation in operations if operation.call < cut < operation.return_]
    return done + [operation._replace(return_=INFINITY) for operation in under_way if operation.f != "get"]


def kv_relaxations(operation: KvOperation, among: Sequence[KvOperation]) -> list[KvOperation | None]:
    """Sound ways to make `operation` constrain less, strongest first.

    A put or append whose text is in no answer may be left out: between it and the next put nobody can have looked.
    """
    if operation.f == "get":
        return [None]
    weaker: list[KvOperation | None] = []
    if operation.text and not any(other.f == "get" and operation.text in other.text for other in among):
        weaker.append(None)
    free = operation._replace(call=BEGINNING, return_=INFINITY)
    steps = (free, operation._replace(return_=INFINITY), operation._replace(call=BEGINNING))
    return weaker + [step for step in dict.fromkeys(steps) if step != operation]


def _finding(
    history: History,
    key: str | None,
    operations: Sequence[KvOperation],
    core: Sequence[KvOperation],
    shrinking: ShrinkBudget,
    clock: Clock,
    detail: dict[str, Any],
) -> Finding:
    end = _shortest_illegal_prefix(core, shrinking)[1]
    refused = sorted(core, key=lambda operation: operation.return_)[end]
    anomaly = _classify(core, refused, operations)
    rows = sorted({operation.row for operation in core})
    roles = {operation.row: "optional" if operation.return_ == INFINITY else "bound" for operation in core}
    partial = check_single(live_model(core), referee_kv(core), shrinking.next(), verbose=True)
    order = [core[position] for position in _longest(partial)]
    placed = [operation.row for operation in order]
    detail |= {
        "core": core_rows(history, rows, roles | {refused.row: "refused"}),
        "order": placed,
        "state": _state_after(order),
        "refused": [row for row in rows if row not in placed],
    }
    return Finding(
        checker=CHECKER,
        anomaly=anomaly.name,
        sentence=explain(history, key, anomaly, len(rows), clock),
        key=key,
        operations=tuple(rows),
        time_us=history.complete_us[refused.row],
        node=history.node[refused.row] or None,
        detail=detail,
    )


def _longest(result: PartResult) -> tuple[int, ...]:
    return result.linearizations[0] if result.linearizations else ()


def _state_after(order: Sequence[KvOperation]) -> str:
    state = ""
    for operation in referee_kv(order):
        _, state = KV_MODEL.step(state, operation.input, operation.output)
    return state


def _classify(core: Sequence[KvOperation], refused: KvOperation, operations: Sequence[KvOperation]) -> Anomaly:
    if not _is_made_of(refused.text, [operation.text for operation in core if operation.f != "get"]):
        return Anomaly("garbage-read", refused.row)
    missing = [
        operation
        for operation in core
        if operation.return_ < refused.call and operation.text not in refused.text and operation.row != refused.row
    ]
    if not missing:
        return Anomaly("non-linearizable", refused.row)
    latest = max(missing, key=lambda operation: operation.return_)
    return Anomaly("lost-write" if _is_lost(latest, refused, operations) else "stale-read", refused.row, latest.row)


def _is_lost(write: KvOperation, missed_by: KvOperation, operations: Sequence[KvOperation]) -> bool:
    """Whether `write` is in no get that ended after `missed_by` began, and no other put may have overwritten it."""
    if write.f == "get":
        return False
    others = [operation for operation in operations if operation.row != write.row]
    is_shown = any(get.f == "get" and get.return_ > missed_by.call and write.text in get.text for get in others)
    return not is_shown and not any(put.f == "put" and put.return_ >= write.call for put in others)


def _is_made_of(text: str, pieces: Sequence[str]) -> bool:
    """Whether `text` is, to its very end, a concatenation of some of `pieces`."""
    ends = {0}
    for start in range(len(text)):
        if start in ends:
            ends.update(start + len(piece) for piece in pieces if piece and text.startswith(piece, start))
    return len(text) in ends
