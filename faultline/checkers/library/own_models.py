"""Checking a history under a model of one's own, by the fast generic engine.

The model's partition splits the history, and each part is decided apart, all of them within one limit of time. The
findings, one for each part that is not linearizable, name operations by their number in the parts laid end to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from faultline.checkers.common.words import counted
from faultline.checkers.library.operations import AnyOperation
from faultline.checkers.library.result import Result
from faultline.checkers.linearizability.data_type import NON_LINEARIZABLE
from faultline.checkers.linearizability.decision import Decision, Legality, worst
from faultline.checkers.linearizability.finding import CHECKER
from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.information import LinearizationInfo
from faultline.checkers.porcupine.model import PENDING, AnyModel, Model, NondeterministicModel
from faultline.harness.verdict import Cause, Finding, Reason, Verdict

__all__ = ["MODEL", "OwnChecked", "check_own_model"]

MODEL = "a model of one's own"
"""The name of a model without a name, in results."""

_BESIDE_MAX = 20
"""How many operations beside the one that cannot be placed are named in a finding."""

_VERDICTS = {Legality.LEGAL: Verdict.PASS, Legality.ILLEGAL: Verdict.VIOLATION, Legality.UNKNOWN: Verdict.UNKNOWN}


def check_own_model(
    model: AnyModel[Any, Any, Any],
    operations: Sequence[AnyOperation],
    steps_max: int,
    timeout_s: float | None,
    hooks: Hooks[Any, Any, Any] | None = None,
) -> Result:
    """Return the result for `operations`, in order of their calls; each part may take `steps_max` steps."""
    budget = Budget.of(steps_max, timeout_s)
    parts = [_Part.of(part, check_part(model, part, budget, hooks or NO_HOOKS)) for part in model.partition(operations)]
    plain = model.to_model() if isinstance(model, NondeterministicModel) else model
    checked = OwnChecked(plain, parts)
    findings = tuple(checked.findings())
    verdict = _VERDICTS[worst(part.decision for part in parts)] if operations else Verdict.VACUOUS
    is_over = budget.is_over()
    spent = Reason(cause=Cause.TIME) if is_over else Reason(cause=Cause.BUDGET, option="steps_max", value=steps_max)
    return Result(
        checker=CHECKER,
        verdict=verdict,
        sentence=_sentence(verdict, parts, findings, "time" if is_over else "steps"),
        findings=findings,
        detail={"parts": len(parts), "steps": sum(part.decision.steps for part in parts)},
        reason=spent if verdict is Verdict.UNKNOWN else None,
        model=MODEL,
        checked=checked,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part with its decision; `completed` are its operations that returned, in order of return."""

    operations: Sequence[AnyOperation]
    decision: Decision
    completed: Sequence[int]

    @classmethod
    def of(cls, operations: Sequence[AnyOperation], decision: Decision) -> _Part:
        completed = [position for position, operation in enumerate(operations) if operation.return_ != PENDING]
        completed.sort(key=lambda position: operations[position].return_)
        return cls(operations, decision, completed)

    def stuck(self) -> int:
        """Return the completed operation, first in order of return, that the longest order cannot place."""
        placed = set(self.decision.order)
        return next((each for each in self.completed if each not in placed), self.completed[-1])

    def telling(self) -> list[int]:
        """Return the operation that cannot be placed with those that overlap it, and the last that was placed."""
        stuck = self.operations[self.stuck()]
        shown = [
            position
            for position, operation in enumerate(self.operations)
            if operation.call <= stuck.return_ and operation.return_ >= stuck.call
        ]
        # Those that began last are the nearest to the trouble; pending ones overlap everything after their call.
        shown = sorted(shown, key=lambda position: self.operations[position].call)[-_BESIDE_MAX:]
        return sorted({*shown, self.stuck(), *self.decision.order[-1:]}, key=lambda each: self.operations[each].call)


@dataclass(frozen=True, slots=True)
class OwnChecked:
    """The parts of a history that were checked under a model of one's own."""

    model: Model[Any, Any, Any]
    parts: Sequence[_Part]

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each part that is not linearizable."""
        first = 0
        for part in self.parts:
            if part.decision.is_illegal:
                stuck = part.stuck()
                yield Finding(
                    checker=CHECKER,
                    anomaly=NON_LINEARIZABLE,
                    sentence=self._accusation(part),
                    operations=tuple(first + position for position in part.telling()),
                    detail={
                        "order": [first + position for position in part.decision.order],
                        "refused": [first + stuck],
                        "engine": part.decision.engine,
                        "confirmed": part.decision.is_confirmed,
                    },
                )
            first += len(part.operations)

    def operations(self, finding: Finding) -> tuple[AnyOperation, ...]:
        """Return the operations of a finding, in order of their calls."""
        laid_out = [operation for part in self.parts for operation in part.operations]
        return tuple(laid_out[number] for number in finding.operations)

    def explanation(self) -> Iterator[str]:
        """Yield, for each finding, the operations around the one that cannot be placed, in the words of the model."""
        for number, finding in enumerate(self.findings()):
            if number:
                yield f"  Also: {finding.sentence}"
            yield f"  {finding.anomaly}, with the operations at that moment:"
            for place, operation in enumerate(self.operations(finding), start=1):
                yield f"  {place:>4}. {_moment(operation)}: client {operation.client_id}: {self._described(operation)}"

    def page(self) -> str:
        """Return the page of all parts, each with its longest partial linearization."""
        from faultline.checkers.drawing import linearizations_page

        history = [part.operations for part in self.parts]
        orders = [[tuple(part.decision.order)] if part.decision.order else [] for part in self.parts]
        return linearizations_page(self.model, LinearizationInfo(history, orders), "A history and its linearizations")

    def _accusation(self, part: _Part) -> str:
        state, stuck = self.model.init(), part.operations[part.stuck()]
        for position in part.decision.order:
            operation = part.operations[position]
            _, state = self.model.step(state, operation.input, operation.output)
        return (
            f"{self._described(stuck)} of client {stuck.client_id}, {_moment(stuck)}, fits into no order of "
            f"{counted(len(part.operations), 'operation')}: the longest has {len(part.decision.order):,} and leads to "
            f"the state {self.model.describe_state(state)}."
        )

    def _described(self, operation: AnyOperation) -> str:
        return self.model.describe_operation(operation.input, operation.output)


def _moment(operation: AnyOperation) -> str:
    return f"from {operation.call:g}" + ("" if operation.return_ == PENDING else f" until {operation.return_:g}")


def _sentence(verdict: Verdict, parts: Sequence[_Part], findings: Sequence[Finding], spent: str) -> str:
    operations = sum(len(part.operations) for part in parts)
    if verdict is Verdict.VACUOUS:
        return "It holds no operation, so there is nothing to check."
    if findings:
        others = len(findings) - 1
        verb = "is" if others == 1 else "are"
        return findings[0].sentence + f" {counted(others, 'other part')} {verb} not linearizable either." * bool(others)
    if verdict is Verdict.UNKNOWN:
        undecided = [part for part in parts if part.decision.is_unknown]
        least = min(undecided, key=lambda part: part.decision.furthest / max(len(part.completed), 1))
        return (
            f"Whether {len(undecided)} of {counted(len(parts), 'part')} can be linearized was not decided: the {spent} "
            f"ended when {least.decision.furthest:,} of {counted(len(least.completed), 'completed operation')} had "
            "been placed."
        )
    return f"All {counted(operations, 'operation')} in {counted(len(parts), 'part')} are linearizable."
