"""Judging one key of a history: search, proof, core, name and sentence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from msgspec import structs

from faultline.checkers.linearizability.classify import classify
from faultline.checkers.linearizability.engine.registers import columns_of
from faultline.checkers.linearizability.evidence import RegisterEvidence, register_evidence
from faultline.checkers.linearizability.explain import Clock, explain
from faultline.checkers.linearizability.keys import CHECKER, KeyJudgement, Undecided, core_rows, key_judgement
from faultline.checkers.linearizability.operations import INFINITY, RegisterOperation
from faultline.checkers.linearizability.search import SearchResult, search
from faultline.checkers.linearizability.undecided import GIVEN_UP, REFUSED, ruled_out, undecided
from faultline.checkers.porcupine import Budget, CheckResult
from faultline.harness.history import History
from faultline.harness.verdict import Finding, Verdict

__all__ = ["judge_register"]


def judge_register(
    history: History,
    key: str | None,
    rows: Sequence[int],
    operations: Sequence[RegisterOperation],
    budget: Budget,
    clock: Clock = "seconds",
    initial: Hashable = None,
) -> KeyJudgement:
    """Judge the register `key`, whose `operations` come from `rows`. Every answer has been verified independently:
    by the engine, which replays linearizations, or by the referee, which confirms cores."""
    returns = [operation[4] for operation in operations]
    found = search(operations, initial, budget)
    if found.result is CheckResult.OK:
        return key_judgement(key, Verdict.PASS, returns, found.furthest, found.steps)
    evidence = register_evidence(operations, found, initial, budget)
    if evidence is None:
        unknown = key_judgement(key, Verdict.UNKNOWN, returns, found.furthest, found.steps)
        return structs.replace(unknown, undecided=_undecided(history, key, operations, found, budget, initial, clock))
    finding = _finding(history, key, rows, operations, evidence, clock)
    return key_judgement(key, Verdict.VIOLATION, returns, found.furthest, found.steps, finding)


def _undecided(
    history: History,
    key: str | None,
    operations: Sequence[RegisterOperation],
    found: SearchResult,
    budget: Budget,
    initial: Hashable,
    clock: Clock,
) -> Undecided:
    beginning, excluded = ruled_out(columns_of(operations, initial), budget)
    return undecided(
        history,
        key,
        [(operation.row, operation.call, operation.return_) for operation in operations],
        [operation.row for operation in found.order],
        placed=max(found.furthest, 0),
        steps=found.steps,
        state=_plain(history, found.order, found.state),
        refuted=([operations[i].row for i in beginning], [operations[i].row for i in excluded]),
        gave_up=REFUSED if found.result is CheckResult.ILLEGAL else GIVEN_UP,
        clock=clock,
    )


def _finding(
    history: History,
    key: str | None,
    rows: Sequence[int],
    operations: Sequence[RegisterOperation],
    evidence: RegisterEvidence,
    clock: Clock,
) -> Finding:
    anomaly = classify(history, rows, operations, evidence)
    shown = {operation.row for operation in evidence.core} | {anomaly.accused}
    if anomaly.against is not None:
        shown.add(anomaly.against)
    return Finding(
        checker=CHECKER,
        anomaly=anomaly.name,
        sentence=explain(history, key, anomaly, len(shown), clock),
        key=key,
        operations=tuple(sorted(shown)),
        time_us=history.complete_us[anomaly.accused],
        node=history.node[anomaly.accused] or None,
        detail=_detail(history, evidence, sorted(shown)),
    )


def _detail(history: History, evidence: RegisterEvidence, rows: Sequence[int]) -> dict[str, Any]:
    placed = [operation.row for operation in evidence.order]
    roles = {operation.row: "optional" if operation.return_ == INFINITY else "bound" for operation in evidence.core}
    roles[evidence.refused.row] = "refused"
    return {
        "core": core_rows(history, rows, roles),
        "order": placed,
        "state": _plain(history, evidence.order, evidence.state),
        "refused": [operation.row for operation in evidence.core if operation.row not in placed],
        "longest_prefix": evidence.longest_prefix,
        "minimal": evidence.is_minimal,
    }


def _plain(history: History, order: Sequence[RegisterOperation], state: Hashable) -> Any:
    """The register's value at the dead end, as it stands in the history."""
    for operation in reversed(order):
        if operation.produce is not None and operation.produce == state:
            value = history.value[operation.row]
            return value[1] if history.f[operation.row] == "cas" else value
    return state
