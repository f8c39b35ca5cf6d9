"""The duties of a workload: plan by its seed alone, use only declared functions, and have checkers that can refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.system import NodeSystem
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.workload import Workload
from faultline.testing.problem import Check, place_of
from faultline.testing.system_subject import SystemSubject, import_path_of
from faultline.testing.two_processes import operations_digest, operations_digest_elsewhere, operations_of

__all__ = ["INVENTED", "WORKLOAD_CHECKS", "WorkloadSubject", "invented_answers"]

Found = Iterator[tuple[str, str, str]]

INVENTED = -987_654_321
"""The answer of a lying store: a value that was never written."""

_SEEDS = tuple(range(6))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSubject:
    """The subject of the kit for workloads: the workload's maker, a correct system to run it on, and a lie of a
    store."""

    make: Callable[[], Workload]
    system: Callable[[], NodeSystem]
    lie: Callable[[History], History]
    nodes: int = 3

    def place(self, attribute: str = "") -> str:
        """Return where the workload, or an attribute of it, is defined."""
        return place_of(self.make(), attribute)

    def record(self, seed: int) -> RunRecord:
        """Return a calm run of it on the system."""
        subject = SystemSubject(make=self.system, workload=self.make(), nodes=self.nodes)
        return subject.run(subject.plan(seed))


def invented_answers(history: History) -> History:
    """Return `history` with the answers of a store that makes values up; an empty answer becomes a value."""
    lines = [line for line in history.to_jsonl().splitlines() if line]
    lying = History.from_jsonl(lines)
    lying.result = [
        _invented(result) if outcome == "ok" else result
        for outcome, result in zip(history.outcome, history.result, strict=True)
    ]
    return lying


def _invented(result: Any) -> Any:
    if isinstance(result, list):
        return [*result, INVENTED]
    if isinstance(result, dict):
        return {name: _invented(value) for name, value in result.items()}
    return result if result is None else INVENTED


def _describes_itself(subject: WorkloadSubject) -> Found:
    workload = subject.make()
    for name in ("name", "promise"):
        if not (isinstance(getattr(workload, name, None), str) and getattr(workload, name)):
            yield f"`{name}` is {getattr(workload, name, None)!r}", subject.place(), "Make it a text that says it."
    if not (isinstance(getattr(workload, "functions", None), tuple) and workload.functions):
        yield (
            "`functions` is not a tuple of names",
            subject.place(),
            'Name its functions: ("read", "write").',
        )
    first, second = workload.checkers(), workload.checkers()
    if not first:
        yield "it has no checkers", subject.place("checkers"), "Give at least the one that judges the promise."
    if any(one is other for one in first for other in second):
        yield "two runs get the same checker", subject.place("checkers"), "Make new ones at every call."


def _asks_only_for_its_functions(subject: WorkloadSubject) -> Found:
    workload, seen = subject.make(), set()
    for seed in _SEEDS:
        seen |= {operation.f for operation in operations_of(workload, seed)}
    for f in sorted(seen - set(workload.functions)):
        yield f"it plans {f!r}, which `functions` does not name", subject.place("generator"), "Add it to `functions`."
    for f in sorted(set(workload.functions) - seen):
        advice = "Take it out of `functions`, or plan it: a system is refused for lacking it."
        yield f"{f!r} was planned in none of {len(_SEEDS)} seeds", subject.place("generator"), advice


def _keeps_to_its_number(subject: WorkloadSubject) -> Found:
    for operations in (1, 40, 200):
        planned = operations_of(subject.make(), 1, operations)
        before = [operation for operation in planned if operation.at_us < 4_500_000]
        if len(before) > operations or not before:
            advice = "Bound it with faultline.harness.generator.limit(operations, ...)."
            yield f"asked for {operations} operations it plans {len(before)}", subject.place("generator"), advice


def _operations_are_plain_data(subject: WorkloadSubject) -> Found:
    for operation in operations_of(subject.make(), 2):
        again = msgspec.json.decode(msgspec.json.encode(operation), type=type(operation))
        if again != operation or not isinstance(operation.key, str | None):
            advice = "Keys are texts, and values fit into JSON: lists rather than tuples, no sets."
            yield f"{operation!r} comes back from a file as {again!r}", subject.place("generator"), advice
            return


def _depends_on_its_seed(subject: WorkloadSubject) -> Found:
    here = [operations_digest(subject.make(), seed) for seed in _SEEDS]
    advice = "Draw from the seed and the context only: no `random`, no clock, no `hash`, no order of a set."
    if here != [operations_digest(subject.make(), seed) for seed in _SEEDS]:
        yield "the same seed plans other operations the second time", subject.place("generator"), advice
    elif here != operations_digest_elsewhere(import_path_of(subject.make()), _SEEDS, "4242"):
        yield "the same seed plans other operations in another process", subject.place("generator"), advice


def _accepts_a_correct_store(subject: WorkloadSubject) -> Found:
    for seed in _SEEDS:
        record = subject.record(seed)
        for result in _verdicts(subject, record.history, record):
            if result.verdict is not Verdict.PASS:
                where = f"{result.checker} of {subject.place('checkers')}, seed {seed}, calm"
                advice = "Either the system does not keep this promise, or the checker refuses a correct history."
                yield f"{result.verdict.value}: {result.sentence}", where, advice


def _refuses_a_lying_store(subject: WorkloadSubject) -> Found:
    record = subject.record(0)
    lying = subject.lie(record.history)
    results = _verdicts(subject, lying, record)
    if not any(result.verdict is Verdict.VIOLATION for result in results):
        yield (
            f"a store that answers {INVENTED} to everything breaks no promise",
            subject.place("checkers"),
            "Give it a checker that can refuse; where other lies are worse, override `lie` of the kit.",
        )


def _bears_an_empty_history(subject: WorkloadSubject) -> Found:
    record = subject.record(0)
    for checker in subject.make().checkers():
        try:
            checker.check(History(), record)
        except Exception as error:
            advice = "An interrupted run has no operations; answer pass, vacuous or unknown."
            yield f"{type(error).__name__}: {error}", f"{checker.name} ({place_of(checker, 'check')})", advice


def _verdicts(subject: WorkloadSubject, history: History, record: RunRecord) -> list[CheckResult]:
    return [checker.check(history, record) for checker in subject.make().checkers()]


WORKLOAD_CHECKS: tuple[Check[WorkloadSubject], ...] = (
    Check("a workload declares its promise, its functions and its checkers", _describes_itself),
    Check("a workload uses its functions, all of them and no other", _asks_only_for_its_functions),
    Check("a workload keeps to the number of operations", _keeps_to_its_number),
    Check("operations are plain data", _operations_are_plain_data),
    Check("the plan depends on the seed alone", _depends_on_its_seed),
    Check("its checkers accept a correct store", _accepts_a_correct_store),
    Check("its checkers refuse a store that makes answers up", _refuses_a_lying_store),
    Check("its checkers bear a history without operations", _bears_an_empty_history),
)
