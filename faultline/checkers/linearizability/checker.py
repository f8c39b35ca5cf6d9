"""The linearizability checker: every key of a run must behave like one object that does one thing at a time.

Keys are checked one by one (linearizability is local: Herlihy & Wing 1990, section 3), each with its own budget of
steps, so that the verdict does not depend on the machine. A key whose budget ends is *unknown*, and the result says how
far the search came.

Most keys are legal and most histories hold registers, so what explains a refusal, and what other models need, is
imported when it is first used: this module is ready in a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from faultline.checkers.anomalies import gravity
from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.data_type import Clock
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.descriptions import model_named
from faultline.checkers.linearizability.engine.native import engine_in_use
from faultline.checkers.linearizability.judgement import KeyJudgement, judge_key, legal_key
from faultline.checkers.linearizability.operations import INFINITY, FailedCas
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict, merge

if TYPE_CHECKING:
    from faultline.harness.incremental import IncrementalChecker
    from faultline.harness.run_record import RunRecord

__all__ = ["FINDINGS_MAX", "STEPS_MAX", "LinearizabilityChecker"]

STEPS_MAX = 200_000
"""The default budget of one key, in steps of search: a second or so of one core at the worst."""

FINDINGS_MAX = 5
"""The number of illegal keys that are reported one by one, the gravest first; the rest is counted."""


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
        self._data_type = self.model.data_type(failed_cas)

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on `history`. Nothing of `run` is needed."""
        budget = self._budget()
        judgements = self.judge_keys(history, budget)
        return self._result(history, judgements, self._reason(budget))

    def refutes(self, history: History, run: RunRecord | None = None) -> bool:
        """Return whether `check` finds a violation, without the explanation, which takes most of its time."""
        return any(decision.is_illegal for decision in self._decisions(history))

    def incremental(self) -> IncrementalChecker | None:
        """Return the twin that judges while a run goes on; None for models that have none."""
        from faultline.harness.incremental import HasIncremental

        return self._data_type.incremental() if isinstance(self._data_type, HasIncremental) else None

    def _decisions(self, history: History) -> Iterable[Decision]:
        budget = self._budget()
        together = self._data_type.decide_together(history, budget)
        if together is not None:
            return (decision for _, decision in together)
        calls = (self._data_type.calls(history, rows) for rows in history.rows_by_key().values())
        return (self._data_type.decide(each, budget) for each in calls)

    def judge_keys(self, history: History, budget: Budget) -> list[KeyJudgement]:
        """Return the judgements on all keys, in order of first use: all at once, then those not legal one by one."""
        together = self._data_type.decide_together(history, budget) or []
        legal = {key: legal_key(key, decision) for key, decision in together if decision.is_legal}
        if together and len(legal) == len(together):
            return list(legal.values())
        known = dict(together)
        return [
            legal.get(key) or judge_key(self._data_type, history, key, rows, budget, self.clock, known.get(key))
            for key, rows in history.rows_by_key().items()
        ]

    def judge_key(
        self, history: History, key: str | None, rows: Sequence[int], budget: Budget | None = None
    ) -> KeyJudgement:
        """Return the judgement on one key, whose operations are in `rows`."""
        return judge_key(self._data_type, history, key, rows, budget or self._budget(), self.clock)

    def _budget(self) -> Budget:
        return Budget.of(self.steps_max, self.timeout_s)

    def _reason(self, budget: Budget) -> Reason:
        """Return why undecided keys, if there are any, were not decided."""
        if budget.is_over():
            return Reason(cause=Cause.TIME)
        return Reason(cause=Cause.BUDGET, option="steps_max", value=self.steps_max)

    def _result(self, history: History, judgements: Sequence[KeyJudgement], undecided: Reason) -> CheckResult:
        found = [judgement.finding for judgement in judgements if judgement.finding is not None]
        findings = tuple(sorted(found, key=lambda finding: gravity(finding.anomaly)))
        unknown = [judgement for judgement in judgements if judgement.verdict is Verdict.UNKNOWN]
        verdict = merge(judgement.verdict for judgement in judgements)
        sentence = _sentence(len(history), len(judgements), [finding.sentence for finding in findings], unknown)
        if verdict is Verdict.PASS and not self._has_answers(history):
            verdict = Verdict.VACUOUS
            sentence = f"None of {counted(len(history), 'operation')} tells anything: no answer was seen."
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=sentence,
            findings=findings[:FINDINGS_MAX],
            detail=self._detail(judgements, unknown),
            reason=undecided if verdict is Verdict.UNKNOWN else None,
        )

    def _has_answers(self, history: History) -> bool:
        """Return whether some operation returned with an outcome that says something about its object."""
        if "ok" in history.outcome:
            return True
        # A refusal may be an answer too: a compare-and-set that met another value, a dequeue from an empty queue.
        calls = self._data_type.calls(history, range(len(history)))
        return any(call.return_ != INFINITY for call in calls)

    def _detail(self, judgements: Sequence[KeyJudgement], unknown: Sequence[KeyJudgement]) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "failed_cas": self.failed_cas,
            "keys": len(judgements),
            "illegal_keys": sum(judgement.verdict is Verdict.VIOLATION for judgement in judgements),
            "unknown_keys": {str(judgement.key): [judgement.placed, judgement.completed] for judgement in unknown},
            "undecided": [judgement.undecided for judgement in unknown[:FINDINGS_MAX]],
            "steps": sum(judgement.steps for judgement in judgements),
            "engine": engine_in_use().name,
        }


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
    told = f" {least.undecided['sentence']}" if least.undecided is not None else ""
    return f"Whether {undecided} can be linearized was not decided.{told}{others}"
