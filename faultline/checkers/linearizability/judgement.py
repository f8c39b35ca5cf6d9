"""One key of a history, from its rows to what is told of it: the walk along the road of `data_type`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from faultline.checkers.linearizability.data_type import AnyCall, Clock, DataType, TimedCall
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.operations import INFINITY
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.verdict import Finding, Verdict

__all__ = ["KeyJudgement", "judge_key", "legal_key"]


class KeyJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one key: `placed` of `completed` operations could be put in order, in `steps` steps of search.

    A violation comes with its `finding`, an unknown key with the record of `undecided.undecided`.
    """

    key: str | None
    verdict: Verdict
    completed: int
    placed: int
    steps: int
    finding: Finding | None = None
    undecided: dict[str, object] | None = None


def legal_key(key: str | None, decision: Decision) -> KeyJudgement:
    """Return the judgement on a key that was decided to be legal: all that completed is placed."""
    placed = decision.furthest
    return KeyJudgement(key=key, verdict=Verdict.PASS, completed=placed, placed=placed, steps=decision.steps)


def judge_key(
    data_type: DataType[AnyCall],
    history: History,
    key: str | None,
    rows: Sequence[int],
    budget: Budget,
    clock: Clock = "seconds",
    known: Decision | None = None,
) -> KeyJudgement:
    """Judge `key`, an object of `data_type` whose operations are in `rows`; `known` is the engine's decision, if it has
    made one.

    Each verdict was verified independently: a linearization was replayed, a certificate of illegality was verified, or
    evidence was confirmed by another engine.
    """
    calls = data_type.calls(history, rows)
    decision = data_type.decide(calls, budget, known)
    if decision.is_legal:
        return legal_key(key, decision)
    evidence = data_type.evidence(history, rows, calls, decision, budget)
    if evidence is None:
        return KeyJudgement(
            key=key,
            verdict=Verdict.UNKNOWN,
            completed=_completed(calls),
            placed=decision.furthest,
            steps=decision.steps,
            undecided=data_type.undecided(history, key, calls, decision, budget, clock),
        )
    return KeyJudgement(
        key=key,
        verdict=Verdict.VIOLATION,
        completed=_completed(calls),
        placed=evidence.longest_prefix,
        steps=decision.steps,
        finding=data_type.finding(history, key, evidence, decision, clock),
    )


def _completed(calls: Iterable[TimedCall]) -> int:
    return sum(call.return_ != INFINITY for call in calls)
