"""Registers on the road: read, written, and replaced by compare-and-set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from faultline.checkers.linearizability.data_type import Clock, Cut, Evidence
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.batch import check_columns
from faultline.checkers.linearizability.engine.registers import columns_of, register_columns
from faultline.checkers.linearizability.operations import WRITE, FailedCas, RegisterOperation, register_operations
from faultline.checkers.linearizability.search import search
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.verdict import Finding

if TYPE_CHECKING:
    from faultline.checkers.incremental.registers import IncrementalRegisters
    from faultline.checkers.linearizability.certificates import Certificate
    from faultline.checkers.linearizability.descriptions import ModelDescription

__all__ = ["Registers"]


class Registers:
    """The `DataType` of registers. Only a refusal imports what explains it."""

    def __init__(self, model: ModelDescription, failed_cas: FailedCas = "observe") -> None:
        self._functions, self._failed_cas = model.functions, failed_cas

    def incremental(self) -> IncrementalRegisters:
        """Return the twin that judges while a run goes on."""
        from faultline.checkers.incremental.registers import IncrementalRegisters

        return IncrementalRegisters(self._failed_cas, self._functions)

    def calls(self, history: History, rows: Sequence[int]) -> list[RegisterOperation]:
        """Return the operations in `rows` as demands on, and changes of, a register."""
        return register_operations(history, rows, self._failed_cas, self._functions)

    def decide_together(self, history: History, budget: Budget) -> list[tuple[str | None, Decision]]:
        """Decide all keys in one call of the engine."""
        columns = register_columns(history, self._failed_cas, self._functions)
        decisions = check_columns(columns, budget)
        return [
            (key, decision if decision.is_legal else decision.renamed(columns.row))
            for key, decision in zip(columns.keys, decisions)
        ]

    def decide(self, calls: Sequence[RegisterOperation], budget: Budget, known: Decision | None = None) -> Decision:
        """Decide one register; an illegal one by the first return that makes it so."""
        if known is not None:
            known = known.renamed({call.row: position for position, call in enumerate(calls)})
        return search(calls, None, budget, known)

    def certificate(
        self, calls: Sequence[RegisterOperation], decision: Decision, budget: Budget
    ) -> Certificate[Any] | None:
        """Return what the frontier made when the key was decided."""
        return decision.certificate

    def evidence(
        self,
        history: History,
        rows: Sequence[int],
        calls: Sequence[RegisterOperation],
        decision: Decision,
        budget: Budget,
    ) -> Evidence[RegisterOperation] | None:
        """Return the confirmed core with the name of its anomaly."""
        from faultline.checkers.linearizability.classify import classify
        from faultline.checkers.linearizability.evidence import register_evidence

        evidence = register_evidence(calls, decision, None, budget)
        if evidence is None:
            return None
        if evidence.cut is not None:
            return replace(evidence, cut=_as_written(history, calls, evidence.cut))
        return replace(classify(history, rows, calls, evidence), state=_state_after(history, evidence.order))

    def finding(
        self,
        history: History,
        key: str | None,
        evidence: Evidence[RegisterOperation],
        decision: Decision,
        clock: Clock,
    ) -> Finding:
        """Return the evidence as a finding, told in one sentence."""
        from faultline.checkers.linearizability.finding import anomaly_finding

        return anomaly_finding(history, key, evidence, clock)

    def undecided(
        self,
        history: History,
        key: str | None,
        calls: Sequence[RegisterOperation],
        decision: Decision,
        budget: Budget,
        clock: Clock,
    ) -> dict[str, object]:
        """Return the longest order, the value it ends with, and what the search ruled out behind its beginning."""
        from faultline.checkers.linearizability.undecided import ruled_out, undecided

        order = [calls[position] for position in decision.order]
        beginning, excluded = ruled_out(columns_of(calls), budget)
        return undecided(
            history,
            key,
            calls,
            [operation.row for operation in order],
            decision,
            state=_state_after(history, order),
            refuted=([calls[i].row for i in beginning], [calls[i].row for i in excluded]),
            clock=clock,
        )


def _as_written(history: History, calls: Sequence[RegisterOperation], cut: Cut) -> Cut:
    """Return the cut with values as the history has them; one that no operation put is that of the beginning."""
    written = {call.produce: _written(history, call) for call in calls if call.kind >= WRITE}
    return cut._replace(states=tuple(written.get(state) for state in cut.states))


def _state_after(history: History, order: Sequence[RegisterOperation]) -> Any:
    """Return the value of the register after `order`, as the history has it."""
    last = next((operation for operation in reversed(order) if operation.kind >= WRITE), None)
    return None if last is None else _written(history, last)


def _written(history: History, operation: RegisterOperation) -> Any:
    value = history.value[operation.row]
    return value[1] if history.f[operation.row] == "cas" else value
