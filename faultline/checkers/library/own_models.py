"""Checking a history under a model of one's own, by the fast generic engine.

The model's partition splits the history, and each part is decided apart, all of them within one limit of time. The
findings, one for each part that is not linearizable, name operations by their number in the parts laid end to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

from faultline.checkers.common.words import counted
from faultline.checkers.library.operations import AnyOperation
from faultline.checkers.library.own_evidence import core_of
from faultline.checkers.library.result import Result
from faultline.checkers.linearizability.checker import FINDINGS_MAX
from faultline.checkers.linearizability.data_type import NON_LINEARIZABLE
from faultline.checkers.linearizability.decision import Decision, Legality, worst
from faultline.checkers.linearizability.finding import CHECKER
from faultline.checkers.linearizability.generic import check_part
from faultline.checkers.linearizability.generic_search import NO_HOOKS, Hooks
from faultline.checkers.porcupine.budget import Budget
from faultline.checkers.porcupine.information import LinearizationInfo
from faultline.checkers.porcupine.model import PENDING, AnyModel, Model, NondeterministicModel
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Cause, Finding, Reason, Verdict

__all__ = ["MODEL", "SHOWN_MAX", "OwnChecked", "check_own_model"]

MODEL = "a model of one's own"
"""The name of a model without a name, in results."""

SHOWN_MAX = 20
"""The largest number of operations that a finding names."""

_VERDICTS = {Legality.LEGAL: Verdict.PASS, Legality.ILLEGAL: Verdict.VIOLATION, Legality.UNKNOWN: Verdict.UNKNOWN}


def check_own_model(
    model: AnyModel[Any, Any, Any],
    operations: Sequence[AnyOperation],
    steps_max: int,
    timeout_s: float | None,
    hooks: Hooks[Any, Any, Any] | None = None,
) -> Result:
    """Return the result for `operations`, in order of their calls; each part may take `steps_max` steps."""
    budget, hooks = Budget.of(steps_max, timeout_s), hooks or NO_HOOKS
    parts: list[_Part] = []
    for part in model.partition(operations):
        illegal = sum(each.decision.is_illegal for each in parts)
        parts.append(_decided(model, part, budget, hooks, is_explained=illegal < FINDINGS_MAX))
    plain = model.to_model() if isinstance(model, NondeterministicModel) else model
    verdict = _VERDICTS[worst(part.decision for part in parts)] if operations else Verdict.VACUOUS
    checked = OwnChecked(plain, parts, verdict)
    findings = tuple(islice(checked.findings(), FINDINGS_MAX))
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
    """A part with its decision; `completed` are its operations that returned, in order of return.

    Of an illegal part, `core` has the operations that cannot be ordered whatever became of the others, if these are
    known and few.
    """

    operations: Sequence[AnyOperation]
    decision: Decision
    completed: Sequence[int]
    core: Sequence[int] = ()

    def stuck(self) -> int:
        """Return the completed operation, first in order of return, that the longest order leaves out."""
        placed = set(self.decision.order)
        return next((each for each in self.completed if each not in placed), self.completed[-1])

    def telling(self) -> list[int]:
        """Return the core, or else the operation that is left out, those that overlap it, and the last placed."""
        stuck = self.operations[self.stuck()]
        shown = self.core or [
            position
            for position, operation in enumerate(self.operations)
            if operation.call <= stuck.return_ and operation.return_ >= stuck.call
        ]
        # Those that began last are the nearest to the trouble; pending ones overlap everything after their call.
        shown = sorted(shown, key=lambda position: self.operations[position].call)[-SHOWN_MAX:]
        beside = () if self.core else (self.stuck(), *self.decision.order[-1:])
        return sorted({*shown, *beside}, key=lambda each: self.operations[each].call)


def _decided(
    model: AnyModel[Any, Any, Any],
    operations: Sequence[AnyOperation],
    budget: Budget,
    hooks: Hooks[Any, Any, Any],
    *,
    is_explained: bool,
) -> _Part:
    decision = check_part(model, operations, budget, hooks)
    completed = [position for position, operation in enumerate(operations) if operation.return_ != PENDING]
    completed.sort(key=lambda position: operations[position].return_)
    if not (decision.is_illegal and is_explained):
        return _Part(operations, decision, completed)
    cut = operations[completed[decision.refuted]].return_
    prefix = [
        (position, operation if operation.return_ <= cut else replace(operation, return_=PENDING))
        for position, operation in enumerate(operations)
        if operation.call <= cut
    ]
    return _Part(operations, decision, completed, core_of(model, prefix, budget, hooks))


@dataclass(frozen=True, slots=True)
class OwnChecked:
    """The parts of a history that were checked under a model of one's own."""

    model: Model[Any, Any, Any]
    parts: Sequence[_Part]
    verdict: Verdict

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each part that is not linearizable; the first few are made small."""
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
                        "core": [first + position for position in part.core],
                        "engine": part.decision.engine,
                        "confirmed": part.decision.is_confirmed,
                    },
                )
            first += len(part.operations)

    def operations(self, finding: Finding) -> tuple[AnyOperation, ...]:
        """Return the operations of a finding, in order of their calls."""
        laid_out = [operation for part in self.parts for operation in part.operations]
        return tuple(laid_out[number] for number in finding.operations)

    def certificate(self) -> NoReturn:
        """Raise UsageError: a proof names its model, so that `faultline verify` finds it."""
        raise UsageError(
            "There is no certificate for a model of your own, which a proof cannot hold.",
            "Take the verdict, or check under a model by name.",
        )

    def explanation(self) -> Iterator[str]:
        """Yield, for the first illegal parts, the operations of the finding and the longest order, in words."""
        illegal = [part for part in self.parts if part.decision.is_illegal]
        for number, (part, finding) in enumerate(zip(illegal[:FINDINGS_MAX], self.findings())):
            if number:
                yield f"  Also: {finding.sentence}"
            shown = f"shown by {len(part.core)} of {_operations(part)}" if part.core else "with those at that moment"
            yield f"  {finding.anomaly}, {shown}:"
            for place, operation in enumerate(self.operations(finding), start=1):
                yield f"  {place:>4}. {_moment(operation)}: client {operation.client_id}: {self._described(operation)}"
            yield (
                f"     The longest order that was found has {counted(len(part.decision.order), 'operation')} and leads "
                f"to the state {self._state_after(part)}. It leaves out {self._told(part, part.stuck())}."
            )

    def page(self) -> str:
        """Return the page of all parts, each with its longest partial linearization."""
        from faultline.checkers.drawing import linearizations_page

        history = [part.operations for part in self.parts]
        orders = [[tuple(part.decision.order)] if part.decision.order else [] for part in self.parts]
        return linearizations_page(self.model, LinearizationInfo(history, orders), verdict=self.verdict.value)

    def _accusation(self, part: _Part) -> str:
        if not part.core:
            longest = counted(len(part.decision.order), "operation")
            return (
                f"No order explains {_operations(part)}: the longest that was found has {longest}, and leaves out "
                f"{self._told(part, part.stuck())}."
            )
        last = max(part.core, key=lambda position: part.operations[position].return_)
        beside, others = len(part.core) - 1, len(part.operations) - len(part.core)
        together = f", with {counted(beside, 'operation')} before or beside it" * bool(beside)
        rest = "the other operation" if others == 1 else f"the {others:,} other operations"
        whatever = f", whether or not {rest} happened" * bool(others)
        return f"No order explains {self._told(part, last)}{together}{whatever}."

    def _state_after(self, part: _Part) -> str:
        state = self.model.init()
        for position in part.decision.order:
            operation = part.operations[position]
            _, state = self.model.step(state, operation.input, operation.output)
        return self.model.describe_state(state)

    def _told(self, part: _Part, position: int) -> str:
        operation = part.operations[position]
        return f"{self._described(operation)} of client {operation.client_id}, {_moment(operation)}"

    def _described(self, operation: AnyOperation) -> str:
        return self.model.describe_operation(operation.input, operation.output)


def _operations(part: _Part) -> str:
    return counted(len(part.operations), "operation")


def _moment(operation: AnyOperation) -> str:
    return f"from {operation.call:g}" + ("" if operation.return_ == PENDING else f" until {operation.return_:g}")


def _sentence(verdict: Verdict, parts: Sequence[_Part], findings: Sequence[Finding], spent: str) -> str:
    operations = sum(len(part.operations) for part in parts)
    if verdict is Verdict.VACUOUS:
        return "It holds no operation, so there is nothing to check."
    if findings:
        others = sum(part.decision.is_illegal for part in parts) - 1
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
