"""The checkers of memory models between linearizability and nothing, on registers that are read and written.

| checker              | promise                                                                                     |
|----------------------|---------------------------------------------------------------------------------------------|
| `sequential`         | one order of all operations explains every read (Lamport 1979)                              |
| `causal-memory`      | each client has one order of all writes and its reads, causes first (Ahamad et al. 1995)    |
| `causal-convergence` | causes come first, and all clients agree on the order of the writes of a key                |
| `weak-causal`        | each read by itself is explained by an order of its causes                                  |
| `pram`               | each client has one order of all writes and its reads, each client's in its own order       |

All but PRAM are defined in Bouajjani et al., POPL 2017 (the causal ones as CM, CCv and CC). None knows real time, so a
read may be as stale as it likes. Keys are judged together: these models are not local.

A result names the strongest models that the history holds and the weakest that it does not, linearizability included.
A value that several writes put leaves open which of them a read saw. Then a violation is certain when the other reads
show it, a pass when some choice explains all; otherwise the verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faultline.checkers.common.words import client, counted, told
from faultline.checkers.isolation.committed import Misread
from faultline.checkers.isolation.core import smallest_core
from faultline.checkers.isolation.search import SearchResult
from faultline.checkers.memory.accesses import Accesses, read_accesses
from faultline.checkers.memory.decision import MEMORY_MODELS, MemoryModel, decide, decide_orders
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.transactions.models import ruled_out
from faultline.checkers.transactions.strength import strongest
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = [
    "STEPS_MAX",
    "CausalConvergenceChecker",
    "CausalMemoryChecker",
    "PramChecker",
    "SequentialChecker",
    "WeakCausalChecker",
]

STEPS_MAX = 5_000_000
"""The default budget of one model, in steps of search: some ten seconds of one core."""

_STRENGTH_OPERATIONS_MAX = 1_000
"""The size up to which other models than the promised one are decided too."""

_STRENGTH_STEPS_MAX = 200_000
"""The steps of the search for each of them."""

_CORE_MAX = 400
"""The number of accesses up to which the evidence is made smaller."""

_TOLD_MAX = 8

_MISREADS = {"garbage-read": "which no client wrote", "aborted-read": "which only a write that failed would have put"}
_NO_ORDER: Mapping[MemoryModel, str] = {
    "sequential": "No order of all operations, in which each client's keep their own, explains what was read",
    "causal-memory": "No order of all writes and one client's reads, in which causes come first, explains these",
    "causal-convergence": "No order of the writes of each key that all clients can share, with causes first, explains",
    "weak-causal": "A read is not explained by any order of what its client knew",
    "PRAM": "No order of all writes and one client's reads, in which each client's keep their own, explains these",
}


class SequentialChecker:
    """A checker that one order of all operations explains every read.

    `steps_max` bounds the search of a model, `timeout_s` ends all of them that many seconds after the beginning.
    """

    name = "sequential"
    model: MemoryModel = "sequential"

    def __init__(self, *, steps_max: int = STEPS_MAX, timeout_s: float | None = None) -> None:
        self.steps_max = steps_max
        self.timeout_s = timeout_s

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on all keys of `history` together; of `run` nothing is needed."""
        accesses = read_accesses(self.name, history)
        budget = Budget.of(self.steps_max, self.timeout_s)
        if not any(access.reads for access in accesses.by_number):
            return self._result(Verdict.VACUOUS, "No read was answered, so there is nothing to judge.", [], [], [])
        if accesses.misreads:
            finding = self._misread(history, accesses.misreads[0])
            return self._result(Verdict.VIOLATION, finding.sentence, [finding], [], list(MEMORY_MODELS))
        decided = decide(self.model, history, accesses, budget)
        holding, refuted = self._strength(history, accesses, decided, budget)
        if decided.answer == "impossible":
            finding = self._finding(history, accesses, decided, budget)
            return self._result(Verdict.VIOLATION, finding.sentence, [finding], holding, refuted)
        operations = counted(len(accesses.committed.numbers()), "operation")
        if decided.answer == "possible":
            return self._result(Verdict.PASS, f"All {operations} are {self.model}.", [], holding, refuted)
        sentence = f"Whether {operations} are {self.model} was not decided."
        return self._result(Verdict.UNKNOWN, sentence, [], holding, refuted, self._reason(accesses, budget))

    def _reason(self, accesses: Accesses, budget: Budget) -> Reason:
        if budget.is_over():
            return Reason(cause=Cause.TIME)
        if accesses.choices and self.model != "sequential":
            return Reason(cause=Cause.REPEATED_VALUES)
        return Reason(cause=Cause.BUDGET, option="steps_max", value=self.steps_max)

    def _strength(
        self, history: History, accesses: Accesses, decided: SearchResult, budget: Budget
    ) -> tuple[list[MemoryModel], list[MemoryModel]]:
        """Return the strongest models that hold and those that do not; only small histories are asked for others."""
        kept = [self.model] if decided.answer == "possible" else []
        broken = [self.model] if decided.answer == "impossible" else []
        if len(accesses.committed.transactions) > _STRENGTH_OPERATIONS_MAX:
            return kept, broken
        steps_max = min(self.steps_max, _STRENGTH_STEPS_MAX)
        within = Budget(steps_max, budget.deadline_s)

        def keeps(model: MemoryModel) -> bool | None:
            answer = "exhausted" if model == self.model else decide(model, history, accesses, within).answer
            return None if answer == "exhausted" else answer == "possible"

        holding, refuted = strongest(MEMORY_MODELS, kept, broken, keeps)
        return holding, [*broken, *refuted]

    def _misread(self, history: History, misread: Misread) -> Finding:
        sentence = (
            f"{client(history, misread.reader).capitalize()} read {told(misread.value)}{_place(misread.key, 'from')}, "
            f"{_MISREADS[misread.anomaly]}."
        )
        rows = [misread.reader] if misread.writer is None else sorted((misread.reader, misread.writer))
        return self._told(history, misread.anomaly, sentence, rows, misread.key)

    def _finding(self, history: History, accesses: Accesses, decided: SearchResult, budget: Budget) -> Finding:
        core = self._core(history, accesses, decided, budget)
        transactions = accesses.committed.transactions
        rows = sorted({row for number in core for row in transactions[number].rows()})
        by_client = sorted(rows, key=lambda row: (history.process[row], row))
        told_rows = "; ".join(_told_access(history, row) for row in by_client[:_TOLD_MAX])
        more = f"; and {len(rows) - _TOLD_MAX} more" if len(rows) > _TOLD_MAX else ""
        sentence = f"{_NO_ORDER[self.model]}: {told_rows}{more}."
        return self._told(history, "conflicting-write-order", sentence, rows, None)

    def _told(self, history: History, anomaly: str, sentence: str, rows: Sequence[int], key: Any) -> Finding:
        return Finding(
            checker=self.name,
            anomaly=anomaly,
            sentence=sentence,
            key=key,
            operations=tuple(rows),
            time_us=max(max(history.complete_us[row], history.invoke_us[row]) for row in rows),
            detail={"model": self.model},
        )

    def _core(self, history: History, accesses: Accesses, decided: SearchResult, budget: Budget) -> Sequence[int]:
        """Return accesses that suffice to break the model, as few as the budget allows."""
        left = [self.steps_max]
        everything = list(accesses.committed.numbers())

        def is_impossible(members: Sequence[int]) -> bool:
            if left[0] <= 0:
                return False
            few = accesses.among(members)
            found = decide_orders(self.model, history, few, Budget(left[0], budget.deadline_s))
            left[0] -= found.steps + len(members)
            return found.answer == "impossible"

        members = list(decided.suspects) or everything
        if len(members) < len(everything) and not is_impossible(members):
            members = everything
        return smallest_core(members, is_impossible) if len(members) <= _CORE_MAX else members

    def _result(
        self,
        verdict: Verdict,
        sentence: str,
        findings: Sequence[Finding],
        holding: Sequence[str],
        refuted: Iterable[str],
        reason: Reason | None = None,
    ) -> CheckResult:
        impossible = ruled_out((), refuted)
        named = [model for model in impossible.weakest if model in MEMORY_MODELS]
        if holding and named:
            sentence += f" They keep {' and '.join(holding)}; the weakest ruled out: {', '.join(named)}."
        return CheckResult(
            checker=self.name,
            verdict=verdict,
            sentence=sentence,
            findings=tuple(findings),
            detail={
                "model": self.model,
                "holds": list(holding),
                "not": list(impossible.weakest),
                "also_not": list(impossible.also),
            },
            reason=reason,
        )


class CausalMemoryChecker(SequentialChecker):
    """A checker of causal memory: for each client, all writes and its own reads have an order that respects causes."""

    name = "causal-memory"
    model: MemoryModel = "causal-memory"


class CausalConvergenceChecker(SequentialChecker):
    """A checker of causal convergence: all clients see the writes of a key in one order, causes before effects."""

    name = "causal-convergence"
    model: MemoryModel = "causal-convergence"


class WeakCausalChecker(SequentialChecker):
    """A checker of weak causal consistency: an order of the operations that its client knew explains each read."""

    name = "weak-causal"
    model: MemoryModel = "weak-causal"


class PramChecker(SequentialChecker):
    """A checker of PRAM: for each client, one order of all writes and its own reads keeps the order of each client."""

    name = "pram"
    model: MemoryModel = "PRAM"


def _told_access(history: History, row: int) -> str:
    f, value, place = history.f[row], history.value[row], history.key[row]
    if f in ("read", "get"):
        return f"{client(history, row)} read {told(history.result[row])}{_place(place, 'from')}"
    if f == "cas":
        return f"{client(history, row)} replaced {told(value[0])} by {told(value[1])}{_place(place, 'in')}"
    return f"{client(history, row)} wrote {told(value)}{_place(place, 'to')}"


def _place(key: Any, preposition: str) -> str:
    return "" if key is None else f" {preposition} {key}"
