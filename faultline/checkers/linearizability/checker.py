"""The linearizability checker: every key of a run must behave like one register that does one thing at a time.

Keys are checked one by one (linearizability is local: Herlihy & Wing 1990, section 3), each with its own budget of
steps, so that the verdict does not depend on the machine. A key whose budget ends is *unknown*, and the result says how
far the search came.

Most keys are legal and most histories hold registers, so what explains a refusal, and what other models need, is
imported when it is first used: this module is ready in a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from faultline.checkers.anomalies import gravity
from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.descriptions import DATA_TYPES, model_named
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.engine.registers import register_columns
from faultline.checkers.linearizability.engine.result import KeyResult
from faultline.checkers.linearizability.keys import KeyJudgement
from faultline.checkers.linearizability.operations import FailedCas, register_operations
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.budget import CheckResult as Decision
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict, merge

if TYPE_CHECKING:
    from faultline.checkers.linearizability.explain import Clock
    from faultline.harness.run_record import RunRecord

__all__ = ["FINDINGS_MAX", "STEPS_MAX", "LinearizabilityChecker"]

STEPS_MAX = 200_000
"""The default budget of one key, in steps of search: a second or so of one core at the worst."""

FINDINGS_MAX = 5
"""How many illegal keys are reported one by one, those with the gravest anomalies; the rest is counted."""


class LinearizabilityChecker:
    """Judges whether each key of a history is linearizable under `model`.

    `steps_max` is the budget of each key; `failed_cas` says whether a compare-and-set that was refused is an
    observation (`observe`) or nothing at all (`ignore`). `timeout_s`, for interactive use, ends the search of all keys
    together after so many seconds; `clock` says whether sentences tell seconds or, for histories without times, events.
    """

    name = "linearizability"

    def __init__(
        self,
        model: str = "cas-register",
        *,
        steps_max: int = STEPS_MAX,
        failed_cas: FailedCas = "observe",
        timeout_s: float | None = None,
        clock: Clock = "seconds",
    ) -> None:
        self.model = model_named(model)
        self.steps_max = steps_max
        self.timeout_s = timeout_s
        self.clock = clock
        self.failed_cas = failed_cas

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """The verdict on `history`. Of `run` nothing is needed."""
        budget = Budget.of(self.steps_max, self.timeout_s)
        judgements = self.judge_keys(history, budget)
        return self._result(history, judgements, self._reason(budget))

    def refutes(self, history: History, run: RunRecord | None = None) -> bool:
        """Whether `check` finds a violation, without the explanation, which takes most of its time."""
        if self.model.name in DATA_TYPES:
            return self.check(history, run).verdict is Verdict.VIOLATION
        results = check_columns(self._columns(history), Budget.of(self.steps_max, self.timeout_s))
        return any(result.result is Decision.ILLEGAL for result in results)

    def judge_keys(self, history: History, budget: Budget) -> list[KeyJudgement]:
        """The verdicts on all keys, in order of first use: all at once, and one by one those that are not legal."""
        if self.model.name in DATA_TYPES:
            return [self.judge_key(history, key, rows, budget) for key, rows in history.rows_by_key().items()]
        columns = self._columns(history)
        results = check_columns(columns, budget)
        if all(result.result is Decision.OK for result in results):
            return list(map(_legal, columns.keys, results))
        by_key = history.rows_by_key()
        return [
            _legal(key, result) if result.result is Decision.OK else self.judge_key(history, key, by_key[key], budget)
            for key, result in zip(columns.keys, results)
        ]

    def _columns(self, history: History) -> Columns:
        if self.model.name == "kv":
            from faultline.checkers.linearizability.engine.texts import text_columns
            from faultline.checkers.linearizability.kv import kv_operations

            return text_columns((key, kv_operations(history, rows)) for key, rows in history.rows_by_key().items())
        return register_columns(history, self.failed_cas, self.model.functions)

    def judge_key(
        self, history: History, key: str | None, rows: Sequence[int], budget: Budget | None = None
    ) -> KeyJudgement:
        """The verdict on one key, whose operations are in `rows`."""
        budget = budget or Budget.of(self.steps_max, self.timeout_s)
        if self.model.name in DATA_TYPES:
            from faultline.checkers.linearizability.monitors.judgement import judge_data_type

            return judge_data_type(history, key, rows, self.model.name, budget, self.clock)
        if self.model.name == "kv":
            from faultline.checkers.linearizability.kv import judge_kv, kv_operations

            return judge_kv(history, key, kv_operations(history, rows), budget, self.clock)
        from faultline.checkers.linearizability.judgement import judge_register

        operations = register_operations(history, rows, self.failed_cas, self.model.functions)
        return judge_register(history, key, rows, operations, budget, self.clock)

    def _reason(self, budget: Budget) -> Reason:
        """Why keys that were not decided were not."""
        if budget.is_over():
            return Reason(cause=Cause.TIME)
        return Reason(cause=Cause.BUDGET, option="steps_max", value=self.steps_max)

    def _result(self, history: History, judgements: Sequence[KeyJudgement], undecided: Reason) -> CheckResult:
        found = [judgement.finding for judgement in judgements if judgement.finding is not None]
        findings = tuple(sorted(found, key=lambda finding: gravity(finding.anomaly)))
        unknown = [judgement for judgement in judgements if judgement.verdict is Verdict.UNKNOWN]
        verdict = merge(judgement.verdict for judgement in judgements)
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=_sentence(len(history), len(judgements), [finding.sentence for finding in findings], unknown),
            findings=findings[:FINDINGS_MAX],
            detail=self._detail(judgements, unknown),
            reason=undecided if verdict is Verdict.UNKNOWN else None,
        )

    def _detail(self, judgements: Sequence[KeyJudgement], unknown: Sequence[KeyJudgement]) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "failed_cas": self.failed_cas,
            "keys": len(judgements),
            "illegal_keys": sum(judgement.verdict is Verdict.VIOLATION for judgement in judgements),
            "unknown_keys": {str(judgement.key): [judgement.placed, judgement.completed] for judgement in unknown},
            "undecided": [to_builtins(judgement.undecided) for judgement in unknown[:FINDINGS_MAX]],
            "steps": sum(judgement.steps for judgement in judgements),
            "engine": engine_in_use().name,
        }


def _legal(key: str | None, result: KeyResult) -> KeyJudgement:
    return KeyJudgement(
        key=key, verdict=Verdict.PASS, completed=result.furthest, placed=result.furthest, steps=result.steps
    )


def _sentence(operations: int, keys: int, sentences: Sequence[str], unknown: Sequence[KeyJudgement]) -> str:
    if sentences:
        others = len(sentences) - 1
        more = f" {others} more of {keys} keys {'is' if others == 1 else 'are'} illegal too." if others else ""
        return sentences[0] + more
    if unknown:
        return _unknown_sentence(keys, unknown)
    return f"All {counted(operations, 'operation')} on {counted(keys, 'key')} are linearizable."


def _unknown_sentence(keys: int, unknown: Sequence[KeyJudgement]) -> str:
    least = min(unknown, key=lambda judgement: judgement.placed / max(judgement.completed, 1))
    decided = keys - len(unknown)
    others = f" {counted(decided, 'other key')} {'is' if decided == 1 else 'are'} linearizable." if decided else ""
    undecided = f"{len(unknown):,} of {counted(keys, 'key')}" if keys > 1 else "the history"
    told = f" {least.undecided.sentence}" if least.undecided is not None else ""
    return f"Whether {undecided} can be linearized was not decided.{told}{others}"
