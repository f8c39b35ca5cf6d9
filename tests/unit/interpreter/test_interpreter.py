"""The interpreter: recording, process ids, waking, and at most one completion."""

from __future__ import annotations

import pytest

from faultline.harness.errors import HarnessError
from faultline.harness.generator import (
    PENDING,
    Context,
    Draft,
    Generator,
    emit,
    function,
    limit,
    phases,
    scheduled,
    sequence,
    sleep,
    stagger,
    until_ok,
)
from faultline.harness.generator.core import Offer
from faultline.harness.history import OPEN, History
from faultline.harness.interpreter import Interpreter
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import PlannedOperation

READS = function(lambda _: Draft("read", "k0"))


def interpreter(generator: Generator, *, workers: int = 2, seed: int = 0) -> tuple[Interpreter, History]:
    history = History()
    nodes = ("athens", "byzantium", "cyrene")
    made = Interpreter(generator, workers=workers, seed=seed, history=history, node_of=lambda worker: nodes[worker % 3])
    return made, history


def test_everything_that_may_start_is_recorded_and_dispatched() -> None:
    driver, history = interpreter(limit(3, READS))
    dispatches = driver.poll(10)
    assert sorted(dispatch.worker for dispatch in dispatches) == [0, 1]
    assert [dispatch.row for dispatch in dispatches] == [0, 1]
    assert history.invoke_us == [10, 10]
    assert history.complete_index == [OPEN, OPEN]
    assert history.node == [("athens", "byzantium")[dispatch.worker] for dispatch in dispatches]


def test_a_worker_invokes_again_only_after_its_completion() -> None:
    driver, history = interpreter(limit(5, READS), workers=1)
    assert len(driver.poll(0)) == 1
    assert driver.poll(5) == []
    assert driver.complete(0, ok(7), 9) is False
    assert [dispatch.row for dispatch in driver.poll(9)] == [1]
    assert history.row(0).result == 7
    assert history.row(0).complete_us == 9


@pytest.mark.parametrize("outcome", [ok(1), fail("cas-mismatch")])
def test_a_definite_outcome_keeps_the_process(outcome: object) -> None:
    driver, history = interpreter(limit(2, READS), workers=1)
    driver.poll(0)
    assert driver.complete(0, outcome, 1) is False
    driver.poll(1)
    assert history.process == [0, 0]


def test_an_unknown_outcome_retires_the_process_and_the_worker_goes_on_under_the_next() -> None:
    driver, history = interpreter(limit(3, READS), workers=1)
    for time_us in range(3):
        driver.poll(time_us)
        assert driver.complete(0, info("timeout"), time_us) is True
    assert history.process == [0, 1, 2]
    assert driver.process_of(0) == 3


def test_process_ids_of_different_workers_never_meet() -> None:
    driver, history = interpreter(limit(40, READS), workers=3)
    seen: dict[int, int] = {}
    for time_us in range(20):
        for dispatch in driver.poll(time_us):
            assert seen.setdefault(dispatch.operation.process, dispatch.worker) == dispatch.worker
            driver.complete(dispatch.worker, info("timeout"), time_us)
    assert len(history) == 40
    assert len(seen) == 40


def test_a_second_completion_is_refused() -> None:
    driver, _ = interpreter(limit(1, READS), workers=1)
    driver.poll(0)
    driver.complete(0, ok(), 1)
    with pytest.raises(HarnessError, match="does not have in flight"):
        driver.complete(0, ok(), 2)


def test_a_second_completion_is_refused_even_when_the_worker_is_on_its_next_operation() -> None:
    driver, history = interpreter(limit(2, READS), workers=1)
    (first,) = driver.poll(0)
    driver.complete(0, ok(), 1, row=first.row)
    driver.poll(1)
    with pytest.raises(HarnessError, match="does not have in flight"):
        driver.complete(0, ok(), 2, row=first.row)
    assert history.complete_index[1] == OPEN


def test_it_says_when_to_ask_again() -> None:
    driver, _ = interpreter(scheduled([PlannedOperation(0, 100, "read"), PlannedOperation(0, 150, "read")]))
    assert driver.poll(0) == []
    assert driver.next_wake_us() == 100
    assert len(driver.poll(100)) == 1
    assert driver.next_wake_us() is None
    driver.complete(0, ok(), 120)
    driver.poll(120)
    assert driver.next_wake_us() == 150


def test_a_sleep_is_waited_for_without_a_completion() -> None:
    driver, _ = interpreter(sequence(sleep(500), emit("late")))
    assert driver.poll(100) == []
    assert driver.next_wake_us() == 600
    assert [dispatch.operation.f for dispatch in driver.poll(600)] == ["late"]


def test_it_is_finished_when_nothing_is_left_and_nothing_in_flight() -> None:
    driver, _ = interpreter(emit("read"))
    assert not driver.finished
    (dispatch,) = driver.poll(0)
    assert not driver.finished
    driver.complete(dispatch.worker, ok(), 5)
    assert driver.finished


def test_completions_reach_the_generator() -> None:
    driver, history = interpreter(until_ok(READS), workers=1)
    for time_us, outcome in enumerate([fail("busy"), info("timeout"), ok()]):
        driver.poll(time_us)
        driver.complete(0, outcome, time_us)
    assert driver.poll(9) == []
    assert driver.finished
    assert history.outcome == ["fail", "info", "ok"]


def test_barriers_hold_until_the_last_completion() -> None:
    driver, _ = interpreter(phases(limit(2, READS), emit("check")))
    driver.poll(0)
    driver.complete(0, ok(), 5)
    assert driver.poll(5) == []
    driver.complete(1, ok(), 8)
    assert [dispatch.operation.f for dispatch in driver.poll(8)] == ["check"]


def test_abandoned_operations_stay_open() -> None:
    driver, history = interpreter(limit(9, READS))
    driver.poll(0)
    driver.complete(0, ok(), 3)
    driver.poll(3)
    assert driver.in_flight() == [2, history.worker.index(1)]
    driver.abandon(10)
    assert driver.finished
    assert driver.poll(11) == []
    assert driver.next_wake_us() is None
    assert driver.complete(1, ok(), 12) is False
    assert history.outcome.count("info") == 2
    assert history.complete_us.count(OPEN) == 2


class ToWorker(Generator, frozen=True):
    worker: int

    def op(self, context: Context) -> Offer:
        return Draft("read", None, None, self.worker, context.time_us), self


@pytest.mark.parametrize("worker", [-1, 0, 7])
def test_an_operation_for_a_busy_worker_or_no_client_is_a_harness_error(worker: int) -> None:
    driver, _ = interpreter(ToWorker(worker))
    with pytest.raises(HarnessError, match=f"gave worker {worker} an operation"):
        driver.poll(0)


class Stuck(Generator, frozen=True):
    def op(self, context: Context) -> Offer:
        return PENDING, self


def test_a_generator_that_waits_for_nothing_is_a_harness_error() -> None:
    driver, _ = interpreter(Stuck())
    with pytest.raises(HarnessError, match="no operation is in flight"):
        driver.poll(0)


def test_the_same_seed_gives_the_same_history() -> None:
    def digest(seed: int) -> str:
        driver, history = interpreter(stagger(100, limit(50, READS)), workers=3, seed=seed)
        now_us = 0
        while not driver.finished:
            for dispatch in driver.poll(now_us):
                driver.complete(dispatch.worker, ok(), now_us + 40)
            now_us = max(now_us + 40, driver.next_wake_us() or 0)
        return history.digest()

    assert digest(1) == digest(1) != digest(2)


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        "ok",
        Outcome("OK", 3),  # type: ignore[arg-type]
        ok(object()),
        ok("\ud800"),
        ok(float("nan")),
        ok([1, [float("inf")]]),
        ok({1: 2}),
        ok(1 << 70),
        Outcome("fail", None, 7),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_recorded_is_indefinite_and_the_clients_error(outcome: object) -> None:
    driver, history = interpreter(limit(1, READS), workers=1)
    driver.poll(0)
    assert driver.complete(0, outcome, 5) is True  # type: ignore[arg-type]
    assert (history.row(0).outcome, history.row(0).result) == ("info", None)
    assert len(history.problems) == 1
    assert "client of the system gave an outcome that cannot be recorded" in history.problems[0]
    history.to_jsonl()


@pytest.mark.parametrize("value", [None, True, 7, "é", 1.5, [1, "a", None], {"a": [1]}, (1, 2), -(1 << 63)])
def test_what_json_holds_is_recorded_as_it_is(value: object) -> None:
    driver, history = interpreter(limit(1, READS), workers=1)
    driver.poll(0)
    driver.complete(0, ok(value), 5)
    assert (history.row(0).outcome, history.row(0).result, history.problems) == ("ok", value, ())
