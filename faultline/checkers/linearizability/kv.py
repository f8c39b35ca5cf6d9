"""Strings on the road: one for each key, put or appended to, and read (get).

The engine judges the texts that gets answered (see `engine.texts`), and the port of Porcupine confirms its refusals.
The illegal prefix is found by bisection: a longer prefix than an illegal one is illegal too, since operations that had
not returned by its end may still happen, or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from faultline.checkers.linearizability.data_type import NON_LINEARIZABLE, Clock, Evidence
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.finding import anomaly_finding
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.models import KV_MODEL, KvInput
from faultline.checkers.linearizability.operations import BEGINNING, INFINITY
from faultline.checkers.linearizability.referee import confirms, decide_by_port
from faultline.checkers.linearizability.undecided import ruled_out, undecided
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.model import PENDING, Model, Operation
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Finding

if TYPE_CHECKING:
    from faultline.checkers.linearizability.descriptions import ModelDescription

__all__ = ["KvOperation", "Strings", "kv_operations", "kv_relaxations", "live_model", "referee_kv"]


class KvOperation(NamedTuple):
    """A get (`text` is what it answered), a put or an append (`text` is what it was given)."""

    f: str
    text: str
    call: int
    return_: int
    row: int


class Strings:
    """The `DataType` of strings."""

    def __init__(self, model: ModelDescription, _failed_cas: str = "") -> None:
        self.name = model.name

    def calls(self, history: History, rows: Sequence[int]) -> list[KvOperation]:
        """Return the operations in `rows` but those that failed, and gets that were never answered."""
        return kv_operations(history, rows)

    def decide_together(self, history: History, budget: Budget) -> list[tuple[str | None, Decision]]:
        """Decide all keys in one call of the engine."""
        by_key = history.rows_by_key().items()
        columns = text_columns((key, kv_operations(history, rows)) for key, rows in by_key)
        return list(zip(columns.keys, check_columns(columns, budget)))

    def decide(self, calls: Sequence[KvOperation], budget: Budget) -> Decision:
        """Decide one string."""
        columns = text_columns([(None, calls)])
        decision = check_columns(columns, budget)[0]
        # The columns leave out appends of nothing, so positions there are translated by way of the rows.
        place = {operation.row: position for position, operation in enumerate(calls)}
        in_calls = [place[row] for row in columns.row]
        core = tuple(in_calls[i] for i in decision.core)
        return replace(decision, order=[in_calls[i] for i in decision.order], core=core)

    def evidence(
        self,
        history: History,
        rows: Sequence[int],
        calls: Sequence[KvOperation],
        decision: Decision,
        budget: Budget,
    ) -> Evidence[KvOperation] | None:
        """Return the confirmed core of an illegal string, with the name of its anomaly."""
        if not decision.is_illegal:
            return None
        shrinking = ShrinkBudget(budget)
        prefix, longest = _shortest_illegal_prefix(calls, shrinking)
        core, is_minimal = minimise(prefix, lambda candidate: _is_illegal(candidate, shrinking), kv_relaxations)
        if not confirms(live_model(core), referee_kv(core), budget):
            return None
        telling = ShrinkBudget(budget)
        end = _shortest_illegal_prefix(core, telling)[1]
        refused = sorted(core, key=lambda operation: operation.return_)[end]
        partial = decide_by_port(live_model(core), referee_kv(core), telling.next(), verbose=True)
        order = tuple(core[position] for position in partial.order)
        anomaly, against = _classify(core, refused, calls)
        return Evidence(
            core=tuple(core),
            refused=refused,
            longest_prefix=longest,
            is_minimal=is_minimal and not shrinking.is_spent,
            order=order,
            state=_state_after(order),
            anomaly=anomaly,
            accused=refused.row,
            against=against,
        )

    def finding(
        self, history: History, key: str | None, evidence: Evidence[KvOperation], decision: Decision, clock: Clock
    ) -> Finding:
        """Return the evidence as a finding, told in one sentence."""
        return anomaly_finding(history, key, evidence, clock)

    def undecided(
        self,
        history: History,
        key: str | None,
        calls: Sequence[KvOperation],
        decision: Decision,
        budget: Budget,
        clock: Clock,
    ) -> dict[str, object]:
        """Return the longest order, the text it ends with, and what the search ruled out behind its beginning."""
        columns = text_columns([(key, calls)])
        known, order = set(columns.row), [calls[position] for position in decision.order]
        beginning, excluded = ruled_out(columns, budget)
        return undecided(
            history,
            key,
            [operation for operation in calls if operation.row in known],
            [operation.row for operation in order],
            decision,
            state=_state_after(order),
            refuted=([columns.row[i] for i in beginning], [columns.row[i] for i in excluded]),
            clock=clock,
        )


def kv_operations(history: History, rows: Sequence[int]) -> list[KvOperation]:
    """Return the operations in `rows` (of one key) but those that failed, and gets that were never answered."""
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
    """Return the operations in the form that the port of Porcupine takes."""
    return [
        Operation(
            0, KvInput(f, "", text), call, text if f == "get" else None, PENDING if return_ == INFINITY else return_
        )
        for f, text, call, return_, _ in operations
    ]


def live_model(operations: Sequence[KvOperation]) -> Model[str | None, KvInput, str | None]:
    """Return the model as far as the gets of `operations` can tell, so that optional operations do not explode.

    A string that is not the beginning of any answer can only be seen again after a put, so all such strings are one
    dead state, None.
    """
    answers = [operation.text for operation in operations if operation.f == "get"]

    def step(state: str | None, given: KvInput, answer: str | None) -> tuple[bool, str | None]:
        if given.f == "get":
            return answer == state, state
        text = given.value if given.f == "put" else None if state is None else state + given.value
        after = text if text is not None and any(seen.startswith(text) for seen in answers) else None
        return True, after

    return Model(init=lambda: "", step=step)


def _is_illegal(operations: Sequence[KvOperation], shrinking: ShrinkBudget) -> bool:
    return shrinking.proves_illegal(check_columns(text_columns([(None, operations)]), shrinking.next())[0])


def _shortest_illegal_prefix(
    operations: Sequence[KvOperation], shrinking: ShrinkBudget
) -> tuple[list[KvOperation], int]:
    """Return the history up to the first return that makes it illegal, and how many operations had returned before."""
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
    """Return sound ways to make `operation` constrain less, strongest first.

    A put or append whose text is in no answer may be left out: no get can have looked between it and the next put.
    """
    if operation.f == "get":
        return [None]
    weaker: list[KvOperation | None] = []
    if operation.text and not any(other.f == "get" and operation.text in other.text for other in among):
        weaker.append(None)
    free = operation._replace(call=BEGINNING, return_=INFINITY)
    steps = (free, operation._replace(return_=INFINITY), operation._replace(call=BEGINNING))
    return weaker + [step for step in dict.fromkeys(steps) if step != operation]


def _state_after(order: Sequence[KvOperation]) -> str:
    state = ""
    for operation in referee_kv(order):
        _, state = KV_MODEL.step(state, operation.input, operation.output)
    return state


def _classify(
    core: Sequence[KvOperation], refused: KvOperation, operations: Sequence[KvOperation]
) -> tuple[str, int | None]:
    """Return the name of the anomaly that `refused` shows, and the row of the operation it contradicts, if one does."""
    if not _is_made_of(refused.text, [operation.text for operation in core if operation.f != "get"]):
        return "garbage-read", None
    missing = [
        operation
        for operation in core
        if operation.return_ < refused.call and operation.text not in refused.text and operation.row != refused.row
    ]
    if not missing:
        return NON_LINEARIZABLE, None
    latest = max(missing, key=lambda operation: operation.return_)
    return "lost-write" if _is_lost(latest, refused, operations) else "stale-read", latest.row


def _is_lost(write: KvOperation, missed_by: KvOperation, operations: Sequence[KvOperation]) -> bool:
    """Return whether no get that ended after `missed_by` began has `write`, and no put may have overwritten it."""
    if write.f == "get":
        return False
    others = [operation for operation in operations if operation.row != write.row]
    is_shown = any(get.f == "get" and get.return_ > missed_by.call and write.text in get.text for get in others)
    return not is_shown and not any(put.f == "put" and put.return_ >= write.call for put in others)


def _is_made_of(text: str, pieces: Sequence[str]) -> bool:
    """Return whether `text` is, to its very end, a concatenation of some of `pieces`."""
    ends = {0}
    for start in range(len(text)):
        if start in ends:
            ends.update(start + len(piece) for piece in pieces if piece and text.startswith(piece, start))
    return len(text) in ends
