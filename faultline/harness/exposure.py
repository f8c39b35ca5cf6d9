"""The exposure ledger of a run: what it did to the system, whatever the verdict.

A pass is worth as much as the test behind it. The ledger counts the operations by what became of them, follows each
fault from the plan to its proof, and names the objects that hold an acknowledged write and were not read once
everything was healed: what was lost of them, no checker could have seen.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import msgspec

from faultline.harness.access import FINAL_OBJECTS_MAX, Access
from faultline.harness.history import OPEN, History
from faultline.harness.outcome import NOT_CONNECTED
from faultline.harness.run_record import FaultInterval, RunRecord

__all__ = ["UNANSWERED", "Exposure", "FaultExposure", "exposure"]

UNANSWERED = frozenset(
    (NOT_CONNECTED, "timeout", "connection-lost", "connection-loss", "client-raised", "foreign-answer", "read-failed")
)
"""The error codes of operations that the store has not answered; any other failure is an answer."""

_NAMED = 20


class FaultExposure(msgspec.Struct, frozen=True, kw_only=True):
    """One planned fault: whether it was `applied`, whether a probe `proved` it, and what it met.

    `operations_in_flight` counts those that were under way at some moment while the fault was in force.
    """

    kind: str
    start_us: int
    duration_us: int = 0
    applied: bool
    proved: bool
    operations_in_flight: int = 0


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger of one run.

    `answered` operations are those that the store answered, be it with a refusal; for `refused` ones no connection came
    about. `written` objects hold an acknowledged write, and `read_after_heal` of these were read once everything was
    healed; `unread` names some of the others. `features` counts how often each declared feature of the system was
    entered.
    """

    operations: int = 0
    ok: int = 0
    fail: int = 0
    info: int = 0
    answered: int = 0
    refused: int = 0
    faults: tuple[FaultExposure, ...] = ()
    written: int = 0
    read_after_heal: int = 0
    unread: tuple[str, ...] = ()
    features: dict[str, int] = {}

    @property
    def faults_applied(self) -> int:
        """How many faults were injected and took effect, as far as could be proved."""
        return sum(fault.proved for fault in self.faults)

    @property
    def faults_struck(self) -> int:
        """How many of these met operations in flight."""
        return sum(fault.proved and fault.operations_in_flight > 0 for fault in self.faults)

    @property
    def due(self) -> int:
        """How many of the written objects are to be read after the heal: all, or the stated sample."""
        return min(self.written, FINAL_OBJECTS_MAX)

    def figures(self) -> dict[str, int]:
        """The ledger in numbers that can be added up over runs."""
        return {
            "operations": self.operations,
            "answered": self.answered,
            "refused": self.refused,
            "faults_planned": len(self.faults),
            "faults_applied": self.faults_applied,
            "faults_struck": self.faults_struck,
            "objects_written": self.written,
            "objects_read_after_heal": self.read_after_heal,
        }


def exposure(record: RunRecord, access: Access, features: Iterable[str] = ()) -> Exposure:
    """The ledger of `record`, a run of a workload with this `access` on a system that declares these `features`."""
    history = record.history
    outcomes = history.outcome
    written, read = _written(history, access), _read_after(history, access, record.healed_us)
    unread = [each for each in written if each not in read]
    ok, fail = outcomes.count("ok"), outcomes.count("fail")
    unanswered = sum(
        outcome == "fail" and error in UNANSWERED for outcome, error in zip(outcomes, history.error, strict=True)
    )
    return Exposure(
        operations=len(history),
        ok=ok,
        fail=fail,
        info=len(history) - ok - fail,
        answered=ok + fail - unanswered,
        refused=history.error.count(NOT_CONNECTED),
        faults=_faults(record),
        written=len(written),
        read_after_heal=len(written) - len(unread),
        unread=tuple("the whole" if each is None else each for each in unread[:_NAMED]),
        features={feature: record.marks.get(feature, 0) for feature in features},
    )


def _faults(record: RunRecord) -> tuple[FaultExposure, ...]:
    """Every planned fault, those first that were recorded; the others were never begun."""
    history = record.history
    invoked = sorted(history.invoke_us)
    end_us = history.end_us()
    completed = sorted(end_us if each == OPEN else each for each in history.complete_us)
    begun = [_fault(fault, invoked, completed) for fault in record.faults]
    never = sorted(record.plan.faults, key=lambda fault: fault.at_us)[len(begun) :]
    return (
        *begun,
        *(FaultExposure(kind=each.kind, start_us=each.at_us, applied=False, proved=False) for each in never),
    )


def _fault(fault: FaultInterval, invoked: list[int], completed: list[int]) -> FaultExposure:
    """`invoked` and `completed` are the moments of all operations, each in order."""
    applied = fault.applied is None or bool(fault.nodes or fault.links)
    flying = bisect_right(invoked, fault.stop_us) - bisect_left(completed, fault.start_us) if applied else 0
    return FaultExposure(
        kind=fault.kind,
        start_us=fault.start_us,
        duration_us=fault.stop_us - fault.start_us,
        applied=applied,
        proved=fault.applied is None,
        operations_in_flight=flying,
    )


def _written(history: History, access: Access) -> dict[str | None, None]:
    columns = zip(history.f, history.key, history.value, history.outcome, strict=True)
    return dict.fromkeys(
        each for f, key, value, outcome in columns if outcome == "ok" for each in access.write_set(f, key, value)
    )


def _read_after(history: History, access: Access, healed_us: int) -> set[str | None]:
    """What was read by operations that were invoked after the heal."""
    columns = zip(history.f, history.key, history.value, history.outcome, history.invoke_us, strict=True)
    return {
        each
        for f, key, value, outcome, invoke_us in columns
        if invoke_us >= healed_us and outcome == "ok"
        for each in access.read_set(f, key, value)
    }
