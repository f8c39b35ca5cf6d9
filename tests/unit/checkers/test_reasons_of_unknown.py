"""Each *unknown* result gives its reason as data: no reader has to guess it from the sentence."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.availability import AvailabilityChecker
from faultline.checkers.classic.causal_reverse import CausalReverseChecker
from faultline.checkers.classic.compose import compose
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.log_patterns import LogPatternChecker
from faultline.checkers.classic.queues import QueueChecker, TotalQueueChecker
from faultline.checkers.convergence import ConvergenceChecker
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.merging import merged
from faultline.checkers.siblings import SiblingsChecker
from faultline.harness.history import History
from faultline.harness.judge import judge_by
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult, Reason, Verdict
from faultline.harness.workload import Checker

Step = tuple[str, object, Outcome | None]


def history_of(*steps: Step, together: bool = False) -> History:
    """Operations of one process each: one after the other, or all at once."""
    history = History()
    rows: list[tuple[int, Outcome | None]] = []
    for number, (f, value, outcome) in enumerate(steps):
        row = history.invoke(Operation(number, f, "k", value), 10 * number, number, "athens")
        rows.append((row, outcome))
        if not together and outcome is not None:
            history.complete(row, outcome, 10 * number + 5)
    for row, outcome in rows if together else ():
        if outcome is not None:
            history.complete(row, outcome, 1_000 + row)
    return history


def run_of(history: History, heal_us: int = 0, errors: list[str] | None = None) -> RunRecord:
    plan = Plan(
        system="s",
        workload="w",
        seed=0,
        nodes=("athens",),
        workers=2,
        operations=(),
        heal_us=heal_us,
        end_us=heal_us + 1,
    )
    return RunRecord(plan=plan, world="simulated", history=history, errors=errors or [])


MANY_WRITES = history_of(*[("write", n % 3, ok(None)) for n in range(20)], together=True)


class Fails:
    """A checker that does."""

    name = "fails"

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        raise ZeroDivisionError


UNKNOWN: dict[str, tuple[Checker, History, Reason]] = {
    "a search that spent its steps": (
        LinearizabilityChecker(steps_max=3),
        MANY_WRITES,
        Reason(cause=Cause.BUDGET, option="steps_max", value=3),
    ),
    "a search that spent its time": (
        LinearizabilityChecker(timeout_s=0.0, steps_max=3),
        MANY_WRITES,
        Reason(cause=Cause.TIME),
    ),
    "additions that were never read": (
        CounterChecker(),
        history_of(("add", 1, ok(None))),
        Reason(cause=Cause.NOT_READ_OUT),
    ),
    "a queue that was not emptied": (
        TotalQueueChecker(),
        history_of(("enqueue", 1, ok(None))),
        Reason(cause=Cause.NOT_READ_OUT),
    ),
    "an element that a lost dequeue may have taken": (
        TotalQueueChecker(),
        history_of(("enqueue", 1, ok(None)), ("dequeue", None, info("timeout")), ("dequeue", None, ok(None))),
        Reason(cause=Cause.INDEFINITE),
    ),
    "a value that was written twice": (
        SiblingsChecker(),
        history_of(("write", 1, ok(None)), ("write", 1, ok(None)), ("read", None, ok([1]))),
        Reason(cause=Cause.REPEATED_VALUES),
    ),
    "no replica that was asked twice after the heal": (
        ConvergenceChecker(),
        history_of(("write", 1, ok(None))),
        Reason(cause=Cause.ENDED_EARLY),
    ),
    "a run that ended right after the heal": (
        AvailabilityChecker(),
        history_of(("read", None, info("timeout"))),
        Reason(cause=Cause.ENDED_EARLY),
    ),
    "no logs": (LogPatternChecker(), history_of(("read", None, ok(1))), Reason(cause=Cause.NO_LOGS)),
    "a part of several that is unknown": (
        compose(CounterChecker(), name="both"),
        history_of(("add", 1, ok(None))),
        Reason(cause=Cause.NOT_READ_OUT),
    ),
    "a part that failed": (compose(Fails()), history_of(("add", 1, ok(None))), Reason(cause=Cause.CHECKER)),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_unknown_says_why(case: str) -> None:
    checker, history, reason = UNKNOWN[case]
    result = checker.check(history, run_of(history))
    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, reason)


@pytest.mark.parametrize(
    ("checker", "call"),
    [(CounterChecker(), ("add", 1, info("timeout"))), (CausalReverseChecker(), ("write", 1, ok(None)))],
    ids=["no read succeeded", "no read saw a write"],
)
def test_a_history_that_shows_the_checker_nothing_is_vacuous(checker: Checker, call: Any) -> None:
    history = history_of(call)
    result = checker.check(history, run_of(history))
    assert (result.verdict, result.reason) == (Verdict.VACUOUS, Reason(cause=Cause.NOTHING_SEEN))


def test_a_silence_that_the_harness_explains_is_unknown_for_that() -> None:
    history = history_of(("read", None, None), ("read", None, info("timeout")))
    history.complete(0, info("timeout"), 900_000)
    found = AvailabilityChecker().check(history, run_of(history, errors=["Healing failed."]))
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, Reason(cause=Cause.HARNESS))


def test_a_checker_that_fails_says_that_it_did() -> None:
    history = history_of(("add", 1, ok(None)))
    (check,) = judge_by([Fails()], run_of(history), run_id="r").checks
    assert (check.verdict, check.reason) == (Verdict.UNKNOWN, Reason(cause=Cause.CHECKER))


def test_parts_keep_the_reason_of_the_worst() -> None:
    result = LinearizabilityChecker(steps_max=3).check(MANY_WRITES)
    assert merged([result, result], 16).reason == result.reason


@pytest.mark.parametrize("checker", [LinearizabilityChecker(), CounterChecker(), QueueChecker()])
def test_what_is_decided_has_no_reason(checker: Checker) -> None:
    steps: dict[str, list[Step]] = {
        "linearizability": [("write", 1, ok(None))],
        "counter": [("add", 1, ok(None)), ("read", None, ok(1))],
        "queue": [("enqueue", 1, ok(None)), ("dequeue", None, ok(1))],
    }
    history = history_of(*steps[checker.name])
    result = checker.check(history, run_of(history))
    assert (result.verdict, result.reason) == (Verdict.PASS, None)
