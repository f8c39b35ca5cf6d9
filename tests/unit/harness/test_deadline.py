"""Work that never ends comes to an end, with a verdict that says so."""

from __future__ import annotations

import dataclasses
import signal
import threading

import msgspec
import pytest

from faultline.harness import run as runs
from faultline.harness.deadline import Overdue, deadline
from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge_by
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import limit_s, run_simulated
from faultline.harness.verdict import Cause, CheckResult, Verdict
from faultline.registry import resolve

SOON_S = 0.05
LATE_S = 3_600.0
REQUEST = RunRequest(system="consistent-core", faults=(), operations=20)


def loop() -> None:
    while True:
        pass


def stubborn() -> None:
    """Catch everything that is meant to be caught, for ever."""
    while True:
        try:
            loop()
        except Exception:
            continue


@pytest.mark.parametrize("work", [loop, stubborn])
def test_a_loop_is_left_when_its_time_is_over(work) -> None:
    with pytest.raises(Overdue), deadline(SOON_S):
        work()


def test_nothing_is_left_of_a_deadline_that_was_kept() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with deadline(LATE_S):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_an_inner_deadline_never_prolongs_an_outer_one() -> None:
    with pytest.raises(Overdue), deadline(SOON_S), deadline(LATE_S):
        loop()


def test_an_outer_deadline_goes_on_after_an_inner_one() -> None:
    with deadline(LATE_S):
        with deadline(LATE_S / 2):
            pass
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= LATE_S


def test_outside_the_main_thread_there_is_no_limit_and_no_harm() -> None:
    done: list[bool] = []

    def work() -> None:
        with deadline(SOON_S):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


class Endless:
    name = "endless"

    def check(self, history, run) -> CheckResult:
        stubborn()
        raise AssertionError


class Refuses:
    name = "refuses"

    def check(self, history, run) -> CheckResult:
        return CheckResult(checker=self.name, verdict=Verdict.VIOLATION, sentence="No.")


def test_a_checker_that_never_ends_is_unknown_and_costs_no_violation_of_another() -> None:
    parts = resolve(REQUEST)
    record = run_simulated(make_plan(REQUEST, parts), parts)
    judgement = judge_by([Endless(), Refuses()], record, run_id="r", limit_s=SOON_S)
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.checks[0].verdict is Verdict.UNKNOWN
    assert judgement.checks[0].reason is not None
    assert judgement.checks[0].reason.cause is Cause.TIME


def test_a_simulated_run_that_never_ends_is_a_harness_error_that_says_where_it_stood(monkeypatch) -> None:
    parts = resolve(REQUEST)
    plan = make_plan(REQUEST, parts)
    monkeypatch.setattr(runs, "LIMIT_S", SOON_S)
    monkeypatch.setattr(runs, "LIMIT_S_PER_OPERATION", 0.0)
    heal = dataclasses.replace(parts, heal=lambda _port: loop())
    with pytest.raises(HarnessError, match=r"did not end: after 0.05 s it stood at \d+\.\d+ s of virtual time"):
        run_simulated(plan, heal)


def test_a_larger_run_may_take_longer() -> None:
    parts = resolve(REQUEST)
    large = make_plan(msgspec.structs.replace(REQUEST, operations=2_000), parts)
    assert limit_s(large) > limit_s(make_plan(REQUEST, parts))
