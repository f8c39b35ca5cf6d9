"""Singular update queue: one at a time, in order, bounded, no caller left hanging (SUQ-S2 to S4, S6, S7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.systems_under_test.patterns.data_replication.singular_update_queue import (
    QueueFull,
    QueueShutDown,
    SingularUpdateQueue,
)
from faultline.systems_under_test.patterns.promise import Promise


class _Stalled:
    """A scheduler that runs the consumer only when told to."""

    def __init__(self) -> None:
        self.runs: list[Callable[[], None]] = []

    def __call__(self, run: Callable[[], None]) -> None:
        self.runs.append(run)

    def go(self) -> None:
        self.runs.pop(0)()


def _double(request: int) -> int:
    return 2 * request


def _failing_at(k: int) -> Callable[[int], int]:
    def handler(request: int) -> int:
        if request == k:
            raise ArithmeticError(f"cannot handle {k}")
        return request

    return handler


def test_a_request_is_handled_at_once_when_nothing_else_is() -> None:
    promise = SingularUpdateQueue(_double).submit(21)
    assert promise.result() == 42


@pytest.mark.rows("SUQ-I1")
def test_a_submission_from_inside_the_handler_is_only_queued() -> None:
    log: list[str] = []

    def handler(request: int) -> None:
        log.append(f"begin {request}")
        if request < 3:
            promise = queue.submit(request + 1)
            assert not promise.done
        log.append(f"end {request}")

    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handler)
    assert queue.submit(1).done
    assert log == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_a_submission_from_a_promise_callback_waits_its_turn() -> None:
    handled: list[int] = []
    stalled = _Stalled()
    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handled.append, schedule=stalled)
    queue.submit(1).then(lambda _: queue.submit(3) and None)
    queue.submit(2)
    stalled.go()
    assert handled == [1, 2, 3]


@pytest.mark.rows("SUQ-S2", "SUQ-R3")
@pytest.mark.parametrize("k", range(4))
def test_an_exception_fails_its_own_promise_and_no_other(k: int) -> None:
    stalled = _Stalled()
    heard: list[tuple[int, Exception]] = []
    queue = SingularUpdateQueue(
        _failing_at(k), schedule=stalled, on_error=lambda request, error: heard.append((request, error))
    )
    promises = [queue.submit(request) for request in range(4)]
    stalled.go()
    for request, promise in enumerate(promises):
        if request == k:
            with pytest.raises(ArithmeticError, match=str(k)):
                promise.result()
        else:
            assert promise.result() == request
    assert [request for request, _ in heard] == [k]


def test_without_a_listener_for_errors_the_promise_alone_tells() -> None:
    promise = SingularUpdateQueue(_failing_at(1)).submit(1)
    with pytest.raises(ArithmeticError):
        promise.result()


@pytest.mark.rows("SUQ-S3", "SUQ-R7", "SUQ-R4", "SUQ-I2", "SUQ-I5")
def test_a_full_queue_refuses_and_loses_nothing() -> None:
    stalled = _Stalled()
    handled: list[int] = []
    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handled.append, schedule=stalled)
    for request in range(100):
        queue.submit(request)
    with pytest.raises(QueueFull, match="100"):
        queue.submit(100)
    assert len(queue) == 100
    assert not queue.has_room
    stalled.go()
    assert handled == list(range(100))
    assert queue.has_room
    assert len(stalled.runs) == 0


@pytest.mark.rows("SUQ-S3", "SUQ-R7")
def test_waiting_callers_get_room_in_the_order_of_waiting() -> None:
    stalled = _Stalled()
    handled: list[int] = []
    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handled.append, 2, schedule=stalled)
    for request in range(6):
        queue.when_room(lambda request=request: queue.submit(request) and None)
    assert len(queue) == 2
    stalled.go()
    assert handled == list(range(6))


def test_there_is_no_waiting_when_there_is_room() -> None:
    called: list[str] = []
    SingularUpdateQueue(_double).when_room(lambda: called.append("now"))
    assert called == ["now"]


@pytest.mark.rows("SUQ-S4", "SUQ-R6")
def test_shutdown_fails_everything_that_waits_and_accepts_nothing_more() -> None:
    stalled = _Stalled()
    handled: list[int] = []
    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handled.append, 50, schedule=stalled)
    promises = [queue.submit(request) for request in range(50)]
    waiters: list[str] = []
    queue.when_room(lambda: waiters.append("told"))
    queue.shutdown()
    stalled.go()
    assert handled == []
    assert waiters == ["told"]
    for promise in promises:
        with pytest.raises(QueueShutDown, match="before the request ran"):
            promise.result()
    with pytest.raises(QueueShutDown):
        queue.submit(51)
    assert not queue.has_room
    queue.when_room(lambda: waiters.append("told at once"))
    assert waiters == ["told", "told at once"]


def test_shutdown_inside_a_handler_lets_it_finish_and_runs_no_other() -> None:
    handled: list[str] = []
    stalled = _Stalled()

    def handler(request: str) -> str:
        handled.append(request)
        queue.shutdown()
        return "finished"

    queue: SingularUpdateQueue[str, str] = SingularUpdateQueue(handler, schedule=stalled)
    first, second = queue.submit("first"), queue.submit("second")
    stalled.go()
    assert (handled, first.result()) == (["first"], "finished")
    with pytest.raises(QueueShutDown):
        second.result()


def test_shutdown_before_the_first_request_wins() -> None:
    queue = SingularUpdateQueue(_double)
    queue.shutdown()
    with pytest.raises(QueueShutDown):
        queue.submit(1)


@pytest.mark.rows("SUQ-R8")
def test_the_consumer_is_scheduled_once_for_all_that_waits_and_again_for_what_comes_later() -> None:
    stalled = _Stalled()
    queue = SingularUpdateQueue(_double, schedule=stalled)
    queue.submit(1)
    queue.submit(2)
    assert len(stalled.runs) == 1
    stalled.go()
    promise = queue.submit(3)
    stalled.go()
    assert promise.result() == 6


@pytest.mark.rows("SUQ-S6", "SUQ-R12")
def test_the_answer_of_an_external_call_comes_back_as_a_request_of_its_own() -> None:
    answers: list[Callable[[], Promise[None]]] = []
    state: list[str] = []

    def handler(request: str) -> None:
        state.append(request)
        if request == "ask":
            answers.append(lambda: queue.submit("answer"))

    queue: SingularUpdateQueue[str, None] = SingularUpdateQueue(handler)
    queue.submit("ask")
    queue.submit("other work")
    answers.pop()()
    assert state == ["ask", "other work", "answer"]


@pytest.mark.rows("SUQ-S7", "SUQ-R14")
def test_queues_that_feed_each_other_in_a_circle_refuse_instead_of_waiting_for_ever() -> None:
    refusals: list[Exception] = []

    def ping(request: int) -> None:
        for _ in range(3):
            there.submit(request + 1)

    def pong(request: int) -> None:
        if request < 8:
            here.submit(request + 1)

    def keep(_: int, error: Exception) -> None:
        refusals.append(error)

    here: SingularUpdateQueue[int, None] = SingularUpdateQueue(ping, 1, on_error=keep)
    there: SingularUpdateQueue[int, None] = SingularUpdateQueue(pong, 1, on_error=keep)
    here.submit(0)
    assert len(here) == len(there) == 0
    assert {type(refusal) for refusal in refusals} == {QueueFull}


def test_an_exception_of_a_callback_does_not_stop_the_queue() -> None:
    def broken(_: int) -> None:
        raise LookupError("the caller's own mistake")

    stalled = _Stalled()
    queue = SingularUpdateQueue(_double, schedule=stalled)
    queue.submit(1).then(broken)
    second = queue.submit(2)
    with pytest.raises(LookupError):
        stalled.go()
    assert not second.done
    third = queue.submit(3)
    stalled.go()
    assert (second.result(), third.result()) == (4, 6)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_queue_that_can_hold_nothing_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        SingularUpdateQueue(_double, capacity)
