"""Strings on the road: one for each key, put or appended to, and read (get).

The engine judges the texts that gets answered (see `engine.texts`), and its refusals get certificates (see
`refutation`). Where a certificate does not tell the illegal prefix it is found by bisection: a longer prefix than an
illegal one is illegal too, since operations that had not returned by its end may still happen, or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from faultline.checkers.linearizability.certificates import Certificate
from faultline.checkers.linearizability.cuts import CORE_MAX, cut_of, evidence_of_cut
from faultline.checkers.linearizability.data_type import NON_LINEARIZABLE, Clock, Cut, Evidence
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import PENDING
from faultline.checkers.linearizability.engine.texts import text_columns
from faultline.checkers.linearizability.finding import anomaly_finding
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.models import KV_MODEL, KvInput
from faultline.checkers.linearizability.operations import BEGINNING, INFINITY
from faultline.checkers.linearizability.refutation import certify
from faultline.checkers.linearizability.undecided import ruled_out, undecided
from faultline.checkers.porcupine import model as porcupine
from faultline.checkers.porcupine.budget import Budget
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
        decisions = check_columns(columns, budget)
        return [
            (key, decision if decision.is_legal else decision.renamed(columns.row))
            for key, decision in zip(columns.keys, decisions)
        ]

    def decide(self, calls: Sequence[KvOperation], budget: Budget, known: Decision | None = None) -> Decision:
        """Decide one string; an illegal one by the first return that makes it so, if its certificate tells that."""
        columns = text_columns([(None, calls)])
        if known is None:
            decision = check_columns(columns, budget)[0]
        else:
            decision = known.renamed({row: i for i, row in enumerate(columns.row)})
        decision, furthest = certify(columns, decision, budget)
        # The columns leave out appends of nothing, so positions there are translated by way of the rows.
        place = {operation.row: position for position, operation in enumerate(calls)}
        if furthest is not None:
            returns = sorted(return_ for return_ in columns.return_ if return_ != PENDING)
            ended = sum(operation.return_ < returns[furthest] for operation in calls)
            decision = replace(decision, furthest=ended)
        return decision.renamed([place[row] for row in columns.row])

    def certificate(self, calls: Sequence[KvOperation], decision: Decision, budget: Budget) -> Certificate[Any] | None:
        """Return what the frontier made when the key was decided."""
        return decision.certificate

    def evidence(
        self,
        history: History,
        rows: Sequence[int],
        calls: Sequence[KvOperation],
        decision: Decision,
        budget: Budget,
    ) -> Evidence[KvOperation] | None:
        """Return the core of an illegal string with the name of its anomaly, or the cut where it becomes illegal."""
        if not decision.is_illegal:
            return None
        shrinking, cut = ShrinkBudget(budget), cut_of(decision)
        if cut is None:
            prefix, longest = _shortest_illegal_prefix(calls, shrinking, _last_return(calls, decision))
        else:
            longest = decision.furthest
            prefix = _prefix(calls, sorted(operation.return_ for operation in calls)[longest])
        if cut is not None and len(prefix) > _SMALL:
            return _told_by_cut(calls, cut)
        likely = next((guess for guess in _likely_cores(prefix, decision) if _is_illegal(guess, shrinking)), prefix)
        core, is_minimal = minimise(likely, lambda candidate: _is_illegal(candidate, shrinking), kv_relaxations)
        if cut is not None and len(core) > CORE_MAX:
            return _told_by_cut(calls, cut)
        if decision.certificate is None and not _is_certified(core, budget):
            return None
        telling = ShrinkBudget(budget)
        end = _shortest_illegal_prefix(core, telling)[1]
        by_return = sorted(core, key=lambda operation: operation.return_)
        refused = by_return[end]
        order = _order(_prefix(core, by_return[end - 1].return_), telling) if end else ()
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
        is_left_out = outcome == "fail" or (f == "get" and outcome != "ok")
        if f not in ("get", "put", "append") or not (is_left_out or isinstance(text, str)):
            raise UsageError(
                f"Row {row} of the history, `{f}` with {text!r}, is no get, put or append of a string.",
                "The model `kv` knows only these; choose the model that fits the workload.",
            )
        if is_left_out:
            continue
        return_ = history.complete_index[row] if outcome == "ok" else INFINITY
        operations.append(KvOperation(f, text, history.invoke_index[row], return_, row))
    return operations


def referee_kv(operations: Sequence[KvOperation]) -> list[porcupine.Operation[KvInput, str | None]]:
    """Return the operations in the form that the port of Porcupine takes."""
    return [
        porcupine.Operation(
            0,
            KvInput(f, "", text),
            call,
            text if f == "get" else None,
            porcupine.PENDING if return_ == INFINITY else return_,
        )
        for f, text, call, return_, _ in operations
    ]


def live_model(operations: Sequence[KvOperation]) -> porcupine.Model[str | None, KvInput, str | None]:
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

    return porcupine.Model(init=lambda: "", step=step)


_SMALL = 64
"""The longest prefix that is made smaller where there is a cut to tell."""


def _told_by_cut(calls: Sequence[KvOperation], cut: Cut) -> Evidence[KvOperation]:
    refused = sorted(calls, key=lambda operation: operation.return_)[cut.ended]
    return evidence_of_cut(calls, refused, cut)


def _kept(decision: Decision) -> set[int]:
    """Return the rows of the operations that the certificate keeps; none when it keeps all, or there is none."""
    certificate = decision.certificate
    if certificate is None or certificate.relaxed is None:
        return set()
    return {certificate.subject.row[each.operation] for each in certificate.relaxed}


def _last_return(calls: Sequence[KvOperation], decision: Decision) -> int | None:
    """Return the last return of those that the certificate keeps: the string is illegal by then; None for none."""
    kept = _kept(decision)
    return max((call.return_ for call in calls if call.row in kept and call.return_ != INFINITY), default=None)


def _likely_cores(prefix: Sequence[KvOperation], decision: Decision) -> Iterator[list[KvOperation]]:
    """Yield strong relaxations of an illegal prefix that may still be illegal; none when the certificate keeps all.

    First what the certificate keeps, then with it a get for each text that was appended: an append that no get shows
    may have made any text.
    """
    kept = _kept(decision)
    if kept:
        yield _with_what_is_seen(prefix, kept)
        yield _with_what_is_seen(prefix, kept | _shown(prefix, kept))


def _shown(prefix: Sequence[KvOperation], kept: set[int]) -> set[int]:
    """Return for each append in the rows `kept` the row of the get of the shortest text with what it appended."""
    gets = sorted((each for each in prefix if each.f == "get"), key=lambda each: (len(each.text), each.row))
    appended = (each.text for each in prefix if each.row in kept and each.f == "append")
    shown = (next((get.row for get in gets if text in get.text), None) for text in appended)
    return {row for row in shown if row is not None}


def _with_what_is_seen(prefix: Sequence[KvOperation], kept: set[int]) -> list[KvOperation]:
    """Return the operations of `prefix` in the rows `kept`, and made free what else their gets may have seen."""
    answers = [operation.text for operation in prefix if operation.f == "get" and operation.row in kept]
    return [
        operation if operation.row in kept else operation._replace(call=BEGINNING, return_=INFINITY)
        for operation in prefix
        if operation.row in kept or (operation.f != "get" and any(operation.text in answer for answer in answers))
    ]


def _is_certified(core: Sequence[KvOperation], budget: Budget) -> bool:
    """Return whether `core`, which was made by relaxations, has a certificate."""
    columns = text_columns([(None, core)])
    decision, _ = certify(columns, check_columns(columns, budget)[0], budget)
    return decision.certificate is not None


def _order(operations: Sequence[KvOperation], within: ShrinkBudget) -> tuple[KvOperation, ...]:
    """Return a linearization of `operations`, which have one, or the longest part of it that was found."""
    columns = text_columns([(None, operations)])
    by_row = {operation.row: operation for operation in operations}
    return tuple(by_row[columns.row[i]] for i in check_columns(columns, within.next())[0].order)


def _is_illegal(operations: Sequence[KvOperation], shrinking: ShrinkBudget) -> bool:
    return shrinking.proves_illegal(check_columns(text_columns([(None, operations)]), shrinking.next())[0])


def _shortest_illegal_prefix(
    operations: Sequence[KvOperation], shrinking: ShrinkBudget, last: int | None = None
) -> tuple[list[KvOperation], int]:
    """Return the history up to the first return that makes it illegal, and how many operations had returned before.

    It is illegal by the return at `last`, where that is known, and mostly no earlier: two tries decide that.
    """
    returns = sorted(operation.return_ for operation in operations if operation.return_ != INFINITY)
    legal, illegal = -1, len(returns) - 1 if last is None else returns.index(last)
    tries = [] if last is None else [illegal - 1]
    while illegal - legal > 1:
        middle = tries.pop() if tries else (legal + illegal) // 2
        if _is_illegal(_prefix(operations, returns[middle]), shrinking):
            illegal = middle
        else:
            legal = middle
    return _prefix(operations, returns[illegal]), illegal


def _prefix(operations: Sequence[KvOperation], cut: int) -> list[KvOperation]:
    done = [operation for operation in operations if operation.return_ <= cut]
    under_way = [operation for operation in operations if operation.call < cut < operation.return_]
    return done + [operation._replace(return_=INFINITY) for operation in under_way if operation.f != "get"]


def kv_relaxations(operation: KvOperation, among: Sequence[KvOperation]) -> Iterator[KvOperation | None]:
    """Yield sound ways to make `operation` constrain less, strongest first.

    A put or append whose text is in no answer may be left out: no get can have looked between it and the next put.
    """
    if operation.f == "get":
        yield None
        return
    if operation.text and not any(other.f == "get" and operation.text in other.text for other in among):
        yield None
    if (operation.call, operation.return_) != (BEGINNING, INFINITY):
        yield operation._replace(call=BEGINNING, return_=INFINITY)
        # What is open at one end already is free with the other one.
        if operation.call != BEGINNING and operation.return_ != INFINITY:
            yield operation._replace(return_=INFINITY)
            yield operation._replace(call=BEGINNING)


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
