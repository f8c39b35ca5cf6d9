"""Sets, queues, stacks, locks and counters on the road.

Rows of a history become calls of the object: an operation that failed for certain did not happen and is dropped, one
that is indeterminate is pending, and a read that was never answered tells nothing. A dequeue or pop that answered null,
or failed with the code `empty`, found nothing. The argument of an acquire or release is the process that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.certificates import Certificate, ObjectCalls
from faultline.checkers.linearizability.data_type import Clock, Evidence
from faultline.checkers.linearizability.data_types import MODEL_FACTORIES, UNKNOWN, Call, Specification
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.explain import describe_value, seconds
from faultline.checkers.linearizability.finding import CHECKER, core_rows, roles_of
from faultline.checkers.linearizability.minimise import ShrinkBudget, minimise
from faultline.checkers.linearizability.monitors.decision import decide, hooks_for
from faultline.checkers.linearizability.object_certificates import refute_object
from faultline.checkers.linearizability.operations import INFINITY, canonical
from faultline.checkers.linearizability.undecided import undecided
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.checkers.porcupine.model import PENDING, Operation
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.verdict import Finding

if TYPE_CHECKING:
    from faultline.checkers.linearizability.descriptions import ModelDescription

__all__ = ["EMPTY", "REMOVALS", "ObjectCall", "Objects", "filled", "object_calls"]

EMPTY = "empty"
"""The error code of a removal that failed because the object was empty."""

SHRUNK_MAX = 400
"""Cores up to this size are made smaller."""

REMOVALS = ("dequeue", "pop")
"""The functions that take a value out of a container."""

_FIT = "Choose the model that fits the workload."


class ObjectCall(NamedTuple):
    """An operation on an object, and the row it comes from."""

    row: int
    operation: Operation[Call, Any]

    @property
    def call(self) -> int:
        """The moment of the call."""
        return int(self.operation.call)

    @property
    def return_(self) -> int:
        """The moment of the return; INFINITY when it never returned."""
        return INFINITY if self.operation.return_ == PENDING else int(self.operation.return_)


class Objects:
    """The `DataType` of objects that have a monitor, or only a sequential specification."""

    def __init__(self, model: ModelDescription, _failed_cas: str = "") -> None:
        self.name = model.name
        self._specification = MODEL_FACTORIES[model.name]

    def calls(self, history: History, rows: Sequence[int]) -> list[ObjectCall]:
        """Return the rows of one object as calls."""
        return object_calls(history, rows, self._specification)

    def decide_together(self, history: History, budget: Budget) -> None:
        """Decide nothing: monitors take one object at a time."""

    def certificate(self, calls: Sequence[ObjectCall], decision: Decision, budget: Budget) -> Certificate[Any] | None:
        """Return what a monitor made, or a search over the core makes."""
        if decision.certificate is not None or not decision.is_illegal:
            return decision.certificate
        operations = [call.operation for call in calls]
        subject = ObjectCalls(self._specification.model(), operations, self.name)
        return refute_object(subject, decision.core, budget, hooks_for(self.name))

    def decide(self, calls: Sequence[ObjectCall], budget: Budget, known: Decision | None = None) -> Decision:
        """Decide one object: by its monitor where that can, by the search where it hands over."""
        return decide(self.name, [call.operation for call in calls], budget)

    def evidence(
        self,
        history: History,
        rows: Sequence[int],
        calls: Sequence[ObjectCall],
        decision: Decision,
        budget: Budget,
    ) -> Evidence[ObjectCall] | None:
        """Return the core of an illegal object, made smaller. `decide` has had it refused by a second engine."""
        if not decision.is_illegal:
            return None
        core, is_minimal = self._shrunk([calls[position] for position in decision.core])
        completed = [call for call in core if history.outcome[call.row] != "info"]
        latest = max(completed, key=lambda call: history.complete_index[call.row], default=min(core, key=_row))
        return Evidence(tuple(core), latest, decision.furthest, is_minimal, accused=latest.row)

    def _shrunk(self, core: list[ObjectCall]) -> tuple[list[ObjectCall], bool]:
        """Return a smaller core, by sound relaxations only: leave out reads, let other calls happen later or never."""
        if len(core) > SHRUNK_MAX:
            return core, False
        shrinking = ShrinkBudget(UNLIMITED)

        def is_illegal(some: Sequence[ObjectCall]) -> bool:
            return shrinking.proves_illegal(self.decide(some, shrinking.next()))

        # A core that the search cannot refuse within the small budget of a check must stay as it is.
        if not is_illegal(core):
            return core, False
        smaller, is_minimal = minimise(core, is_illegal, self._relaxations)
        return smaller, is_minimal and not shrinking.is_spent

    def _relaxations(self, call: ObjectCall, _among: Sequence[ObjectCall]) -> list[ObjectCall | None]:
        """Return sound ways to make `call` constrain less."""
        operation, f = call.operation, call.operation.input[0]
        if f in self._specification.reads or (operation.output is None and f in REMOVALS):
            return [None]
        # A removal that found a value tells which one: without its answer it would be another operation.
        if operation.return_ == PENDING or f in REMOVALS:
            return []
        pending = Operation(operation.client_id, operation.input, operation.call, UNKNOWN, PENDING)
        return [ObjectCall(call.row, pending)]

    def finding(
        self, history: History, key: str | None, evidence: Evidence[ObjectCall], decision: Decision, clock: Clock
    ) -> Finding:
        """Return the evidence as a finding, told by the reason of the engine that refused."""
        rows, latest = sorted(call.row for call in evidence.core), evidence.accused
        time_us = max((history.complete_us[row] for row in rows if history.outcome[row] != "info"), default=0)
        moment = seconds(time_us) if clock == "seconds" else f"event {history.complete_index[latest]}"
        place = f"The {self.name}" if key is None else f"The {self.name} {key}"
        suffice = "suffice" if len(rows) > 1 else "suffices"
        enough = f"{len(rows):,} of {counted(len(history), 'operation')} {suffice} to show it"
        return Finding(
            checker=CHECKER,
            anomaly=evidence.anomaly,
            sentence=f"{place} did what no {self.name} does: {decision.reason}; {enough}, the last of which, "
            f"{_told(history, latest)}, ended at {moment}.",
            key=key,
            operations=tuple(rows),
            time_us=time_us,
            node=history.node[latest] or None,
            detail={
                "core": core_rows(history, rows, roles_of(evidence)),
                "reason": decision.reason,
                "engine": decision.engine,
                "handed_over": decision.handed_over,
                "confirmed": decision.is_confirmed,
                "rule": decision.contradiction.rule if decision.contradiction is not None else "",
                "minimal": evidence.is_minimal,
            },
        )

    def undecided(
        self,
        history: History,
        key: str | None,
        calls: Sequence[ObjectCall],
        decision: Decision,
        budget: Budget,
        clock: Clock,
    ) -> dict[str, object]:
        """Return the longest order that the search found."""
        order = [calls[position].row for position in decision.order]
        return undecided(history, key, calls, order, decision, clock=clock)


def _row(call: ObjectCall) -> int:
    return call.row


def object_calls(history: History, rows: Sequence[int], specification: Specification) -> list[ObjectCall]:
    """Return the rows of one object as calls, with the rows they come from."""
    calls: list[ObjectCall] = []
    for row in rows:
        f, outcome = history.f[row], history.outcome[row]
        if f not in specification.functions:
            raise UsageError(
                f"Row {row} of the history calls `{f}`, which the model {specification.name} does not know.",
                f"It knows {', '.join(sorted(specification.functions))}; choose the model that fits the workload.",
            )
        found_nothing = outcome == "fail" and f in REMOVALS and history.error[row] == EMPTY
        if (outcome == "fail" and not found_nothing) or (outcome != "ok" and f in specification.reads):
            continue
        answered = outcome == "ok" or found_nothing
        argument_of, answer_of = _READERS[specification.name]
        answer = answer_of(history, row) if outcome == "ok" else None if found_nothing else UNKNOWN
        call: Call = (f, argument_of(history, row))
        return_ = history.complete_index[row] if answered else PENDING
        operation = Operation(history.process[row], call, history.invoke_index[row], answer, return_)
        calls.append(ObjectCall(row, operation))
    return calls


Reader = Callable[[History, int], Any]
"""The reader of the argument, or of the answer, of the operation in a row."""


def _value(history: History, row: int) -> Hashable:
    """Return the value that is put in, or looked for."""
    return None if history.f[row] in ("read", *REMOVALS) else filled(history.value[row])


def _process(history: History, row: int) -> int:
    return history.process[row]


def _amount(history: History, row: int) -> int | None:
    return None if history.f[row] == "read" else _integer(row, history.value[row])


def _nothing(_history: History, _row: int) -> None:
    return None


def _removed(history: History, row: int) -> Hashable:
    """Return the value that a removal took out; None when it found nothing, as insertions answer nothing too."""
    result = history.result[row]
    return None if history.f[row] not in REMOVALS or result is None else canonical(result)


def _sum(history: History, row: int) -> int | None:
    return _integer(row, history.result[row]) if history.f[row] == "read" else None


def _seen_in_set(history: History, row: int) -> Hashable:
    """Return all values, or if a value was in, or if a change changed anything; None when that was not told."""
    f, result = history.f[row], history.result[row]
    if f == "read":
        if not isinstance(result, (list, tuple)):
            raise UsageError(f"Row {row} of the history: a read of a set must answer a list, not {result!r}.", _FIT)
        return frozenset(map(filled, result))
    if f == "contains" and not isinstance(result, bool):
        raise UsageError(f"Row {row} of the history: contains must answer true or false, not {result!r}.", _FIT)
    return result if isinstance(result, bool) else None


_READERS: Mapping[str, tuple[Reader, Reader]] = {
    "set": (_value, _seen_in_set),
    "queue": (_value, _removed),
    "stack": (_value, _removed),
    "lock": (_process, _nothing),
    "mutex": (_nothing, _nothing),
    "counter": (_amount, _sum),
}
"""For each data type the readers of arguments and of answers."""


def _integer(row: int, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"Row {row} of the history: a counter works with integers, not {value!r}.", _FIT)
    return value


def filled(value: Any) -> Hashable:
    """Return a value in a container; null is one like any other there."""
    return b"json:null" if value is None else canonical(value)


def _told(history: History, row: int) -> str:
    f, value, result = history.f[row], history.value[row], history.result[row]
    given = "" if value is None else f" of {describe_value(value)}"
    return f"{f}{given} by process {history.process[row]}" + (
        "" if result is None else f" answering {describe_value(result)}"
    )
