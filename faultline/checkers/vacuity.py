"""Vacuity: a run that tested nothing must not pass.

A green run in which no operation was in flight while the network was cut says nothing, and looks exactly like one that
says a lot. Each warning names what was seen, why it matters and what to change. A *grave* one makes the verdict
VACUOUS; the others are told beside a pass.

| name                          | grave | trigger                                                                     |
|-------------------------------|-------|-----------------------------------------------------------------------------|
| `no-operations`               | yes   | nothing was invoked                                                         |
| `operations-answered`         | yes   | fewer operations were answered than the floor demands                       |
| `faults-applied`              | yes   | fewer of the planned faults took effect than the floor demands              |
| `faults-struck`               | yes   | fewer of these met operations in flight than the floor demands              |
| `writes-read`                 | yes   | not every object with an acknowledged write was read after the heal         |
| `no-reads-after-heal`         | yes   | faults were planned, no read succeeded that was invoked after the heal      |
| `no-concurrency`              | yes   | there were several workers, and never two operations in flight at once      |
| `one-key`                     | no    | every operation named the same key                                          |
| `one-worker`                  | no    | a single worker can never show a conflict between clients                   |
| `some-faults-not-applied`     | no    | some of the planned faults did not take effect                              |
| `fault-without-operations`    | no    | a kind of fault during which nothing was in flight                          |
| `no-changes`                  | no    | no operation that changes the state succeeded                               |
| `often-indeterminate`         | no    | more than half of the operations are indeterminate                          |

The floors are those of `faultline.harness.floors`, with the plan's own shares where it has some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from faultline.harness.access import READS, USUAL_ACCESS, Access
from faultline.harness.exposure import Exposure, exposure
from faultline.harness.floors import FLOORS, shortfalls
from faultline.harness.history import OPEN, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["VacuityChecker", "VacuityWarning", "warnings_of"]

OFTEN_INDETERMINATE = 0.5


class VacuityWarning(msgspec.Struct, frozen=True):
    """One reason why the run says less than it seems: its name, what triggered it, what to change."""

    name: str
    trigger: str
    fix: str
    is_grave: bool = False

    def text(self) -> str:
        """Return the warning as one line for a report."""
        return f"{self.name}: {self.trigger} {self.fix}"


class VacuityChecker:
    """VACUOUS when a grave warning applies. `detail["warnings"]` has all as lines, `detail["named"]` as records."""

    name = "vacuity"
    judges_the_test = True

    def __init__(self, access: Access = USUAL_ACCESS) -> None:
        self.access = access

    def check(self, history: History, run: RunRecord) -> CheckResult:
        """Look for the warnings that apply to `run`, whose workload has this `access` to objects."""
        warnings = warnings_of(history, run, self.access)
        grave = [warning for warning in warnings if warning.is_grave]
        return CheckResult(
            checker=self.name,
            verdict=Verdict.VACUOUS if grave else Verdict.PASS,
            sentence=_sentence(grave, warnings),
            detail={
                "warnings": [warning.text() for warning in warnings],
                "named": [msgspec.to_builtins(warning) for warning in warnings],
            },
        )


def warnings_of(history: History, run: RunRecord, access: Access) -> list[VacuityWarning]:
    """Return all warnings that apply, grave ones first."""
    if not len(history):
        return [_NO_OPERATIONS]
    ledger = exposure(run, access)
    found = [
        *_floors(ledger, run),
        *_final_reads(history, run, access),
        *_faults(ledger),
        *(warning for look in _LOOKS for warning in look(history, run)),
    ]
    return sorted(found, key=lambda warning: not warning.is_grave)


_NO_OPERATIONS = VacuityWarning(
    "no-operations", "Nothing was invoked.", "Give the workload operations, and the run time for them.", True
)


def _sentence(grave: list[VacuityWarning], warnings: list[VacuityWarning]) -> str:
    if grave:
        return f"The run tested too little ({grave[0].name}): {grave[0].trigger}"
    if warnings:
        return f"The run tested something, with {len(warnings)} reservation{'s' if len(warnings) > 1 else ''}."
    return "Operations were in flight during the faults, and reads followed the heal."


def _floors(ledger: Exposure, run: RunRecord) -> Iterator[VacuityWarning]:
    for shortfall in shortfalls(ledger, run.plan.floors):
        yield VacuityWarning(shortfall.name, shortfall.sentence, FLOORS[shortfall.name].fix, True)


def _faults(ledger: Exposure) -> Iterator[VacuityWarning]:
    planned, applied = ledger.faults_due, ledger.faults_applied
    if 0 < applied < planned:
        trigger = f"{planned - applied} of {planned} faults did not take effect."
        yield VacuityWarning("some-faults-not-applied", trigger, "See why, under the run's faults.")
    if not ledger.faults_struck:
        return
    in_flight: dict[str, int] = {}
    for fault in ledger.faults:
        if fault.proved:
            in_flight[fault.kind] = in_flight.get(fault.kind, 0) + fault.operations_in_flight
    for kind in sorted(kind for kind, count in in_flight.items() if not count):
        trigger = f"No operation was in flight during any `{kind}` fault."
        yield VacuityWarning("fault-without-operations", trigger, "Make the fault longer or the operations denser.")


def _final_reads(history: History, run: RunRecord, access: Access) -> Iterator[VacuityWarning]:
    if not run.plan.faults and not run.faults:
        return
    heal_us = run.healed_us
    for row in range(len(history) - 1, -1, -1):
        if history.invoke_us[row] < heal_us:
            break
        if history.f[row] in access.reads and history.outcome[row] == "ok":
            return
    trigger = "No read that was invoked after the heal succeeded, so lost writes could not be seen."
    yield VacuityWarning(
        "no-reads-after-heal", trigger, "End the workload with reads of every key after the heal.", True
    )


def _indeterminate(history: History, _run: RunRecord) -> Iterator[VacuityWarning]:
    share = history.outcome.count("info") / len(history)
    if share > OFTEN_INDETERMINATE:
        trigger = f"{share:.0%} of {len(history):,} operations are indeterminate."
        yield VacuityWarning("often-indeterminate", trigger, "Raise the client's timeout, or use fewer faults.")


def _concurrency(history: History, run: RunRecord) -> Iterator[VacuityWarning]:
    if run.plan.workers < 2:
        trigger = "A single worker ran the workload."
        yield VacuityWarning("one-worker", trigger, "Use several workers; conflicts between clients need clients.")
    elif not _had_two_in_flight(history):
        trigger = "There were never two operations in flight at once."
        yield VacuityWarning("no-concurrency", trigger, "Give the workers less time between operations.", True)


def _had_two_in_flight(history: History) -> bool:
    """Return whether some operation was invoked before an earlier one had completed."""
    latest = -1
    for invoked, completed in zip(history.invoke_index, history.complete_index, strict=True):
        if invoked < latest:
            return True
        latest = max(latest, completed)
        if completed == OPEN:
            latest = history.next_index
    return False


def _keys(history: History, _run: RunRecord) -> Iterator[VacuityWarning]:
    keys = set(history.key)
    if len(keys) == 1 and keys != {None}:  # without keys of their own, operations name in their values what they touch
        trigger = f"All {len(history):,} operations were on the same key."
        yield VacuityWarning("one-key", trigger, "Use several keys, unless the workload is about one object.")


def _changes(history: History, _run: RunRecord) -> Iterator[VacuityWarning]:
    if not any(outcome == "ok" and f not in READS for f, outcome in zip(history.f, history.outcome, strict=True)):
        trigger = "No operation that changes the state succeeded."
        yield VacuityWarning(
            "no-changes", trigger, "Let the workload write; readers of an unchanging store see no anomaly."
        )


_LOOKS: tuple[Callable[[History, RunRecord], Iterator[VacuityWarning]], ...] = (
    _indeterminate,
    _concurrency,
    _keys,
    _changes,
)
