"""`SingularUpdateQueue.post`: the same order and exclusion as `submit`, without a promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.systems_under_test.patterns.data_replication.singular_update_queue import (
    QueueShutDown,
    SingularUpdateQueue,
)


def test_a_posted_request_is_handled_at_once() -> None:
    handled: list[int] = []
    SingularUpdateQueue(handled.append).post(1)
    assert handled == [1]


def test_a_post_from_inside_the_handler_waits_until_it_has_finished() -> None:
    steps: list[str] = []

    def handle(request: int) -> None:
        steps.append(f"begin {request}")
        if request == 1:
            queue.post(2)
            queue.post(3)
        steps.append(f"end {request}")

    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handle)
    queue.post(1)
    assert steps == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_an_error_goes_to_the_listener_and_the_next_request_runs() -> None:
    errors: list[tuple[int, str]] = []
    handled: list[int] = []

    def handle(request: int) -> None:
        if request == 1:
            raise ArithmeticError("no")
        handled.append(request)

    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(
        handle, on_error=lambda request, error: errors.append((request, str(error)))
    )
    queue.post(1)
    queue.post(2)
    assert errors == [(1, "no")]
    assert handled == [2]


def test_a_listener_that_raises_ends_the_caller() -> None:
    def crash(_: int, error: Exception) -> None:
        raise error

    def handle(_: int) -> None:
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError):
        SingularUpdateQueue(handle, on_error=crash).post(1)


def test_a_scheduled_queue_and_one_that_was_shut_down_treat_posts_like_submissions() -> None:
    runs: list[Callable[[], None]] = []
    handled: list[int] = []
    queue: SingularUpdateQueue[int, None] = SingularUpdateQueue(handled.append, schedule=runs.append)
    queue.post(1)
    assert handled == []
    runs.pop()()
    assert handled == [1]
    queue.shutdown()
    with pytest.raises(QueueShutDown):
        queue.post(2)
