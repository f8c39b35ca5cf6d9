"""Bugs of the singular update queue, each breaking a claim that the correct queue keeps.

None of them can be switched on in a campaign. A node of the simulated world has one thread of control, and its queue is
drained before the next event: there is no second consumer, no full queue and no item left at a shutdown to be seen from
outside. So each bug is a variant of the queue itself, and the claim is the test that the correct queue passes. Those
that need threads, SUQ-M1, SUQ-M6 and SUQ-M7, are in examples/update_queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.singular_update_queue import (
    QueueFull,
    SingularUpdateQueue,
)
from faultline.systems_under_test.patterns.promise import Promise

Scheduled = list[Callable[[], None]]


# -- claims: each returns whether it held -----------------------------------------------------------------------------


def an_exception_ends_only_its_own_request(queue_type: type[Any]) -> bool:
    scheduled: Scheduled = []
    queue = queue_type(lambda request: 1 // request, schedule=scheduled.append)
    first, second = queue.submit(0), queue.submit(1)
    while scheduled:
        try:
            scheduled.pop(0)()
        except ZeroDivisionError:
            break
    return bool(first.done and second.done)


def a_promise_is_completed_after_its_handler(queue_type: type[Any]) -> bool:
    durable: list[str] = []
    answered: list[list[str]] = []
    scheduled: Scheduled = []
    queue = queue_type(durable.append, schedule=scheduled.append)
    queue.submit("entry").then(lambda _: answered.append(list(durable)))
    scheduled.pop()()
    return answered == [["entry"]]


def a_slow_disk_pushes_back(queue_type: type[Any]) -> bool:
    """With the consumer standing still, the queue refuses at some point."""
    queue = queue_type(lambda request: request, schedule=lambda run: None)
    try:
        for number in range(10_000):
            queue.submit(number)
    except QueueFull:
        return True
    return False


def what_is_not_refused_is_executed(queue_type: type[Any]) -> bool:
    scheduled: Scheduled = []
    handled: list[int] = []
    queue = queue_type(handled.append, 2, schedule=scheduled.append)
    accepted = []
    for number in range(4):
        try:
            accepted.append(queue.submit(number))
        except QueueFull:
            break
    scheduled.pop()()
    return all(promise.done for promise in accepted) and len(handled) == len(accepted)


def no_promise_hangs_after_a_shutdown(queue_type: type[Any]) -> bool:
    queue = queue_type(lambda request: request, schedule=lambda run: None)
    promises = [queue.submit(number) for number in range(3)]
    queue.shutdown()
    return all(promise.done for promise in promises)


def requests_run_in_their_order(queue_type: type[Any]) -> bool:
    scheduled: Scheduled = []
    handled: list[int] = []
    queue = queue_type(handled.append, schedule=scheduled.append)
    for number in range(5):
        queue.submit(number)
    scheduled.pop()()
    return handled == [0, 1, 2, 3, 4]


# -- the bugs ---------------------------------------------------------------------------------------------------------


class ConsumerDiesOfAnException(SingularUpdateQueue[Any, Any]):
    def _handle(self, request: Any, promise: Promise[Any]) -> None:
        promise.complete(self._handler(request))


class CompletedBeforeTheHandler(SingularUpdateQueue[Any, Any]):
    def _handle(self, request: Any, promise: Promise[Any]) -> None:
        promise.complete(None)
        self._handler(request)


class Unbounded(SingularUpdateQueue[Any, Any]):
    def submit(self, request: Any) -> Promise[Any]:
        self._capacity = len(self._queue) + 1
        return super().submit(request)


class RefusalIgnored(SingularUpdateQueue[Any, Any]):
    def submit(self, request: Any) -> Promise[Any]:
        try:
            return super().submit(request)
        except QueueFull:
            return Promise()


class FuturesAbandoned(SingularUpdateQueue[Any, Any]):
    def shutdown(self) -> None:
        self._shut_down = True
        self._queue.clear()


class NewestFirst(SingularUpdateQueue[Any, Any]):
    def _drain(self) -> None:
        self._queue.reverse()
        super()._drain()


@pytest.mark.parametrize(
    ("claim", "bug", "correct"),
    [
        pytest.param(
            an_exception_ends_only_its_own_request,
            ConsumerDiesOfAnException,
            SingularUpdateQueue,
            id="SUQ-M2",
            marks=pytest.mark.rows("SUQ-M2"),
        ),
        pytest.param(
            a_promise_is_completed_after_its_handler,
            CompletedBeforeTheHandler,
            SingularUpdateQueue,
            id="SUQ-M3",
            marks=pytest.mark.rows("SUQ-M3"),
        ),
        pytest.param(
            a_slow_disk_pushes_back, Unbounded, SingularUpdateQueue, id="SUQ-M4", marks=pytest.mark.rows("SUQ-M4")
        ),
        pytest.param(
            what_is_not_refused_is_executed,
            RefusalIgnored,
            SingularUpdateQueue,
            id="SUQ-M5",
            marks=pytest.mark.rows("SUQ-M5"),
        ),
        pytest.param(
            no_promise_hangs_after_a_shutdown,
            FuturesAbandoned,
            SingularUpdateQueue,
            id="SUQ-M8",
            marks=pytest.mark.rows("SUQ-M8"),
        ),
        pytest.param(
            requests_run_in_their_order, NewestFirst, SingularUpdateQueue, id="SUQ-M9", marks=pytest.mark.rows("SUQ-M9")
        ),
    ],
)
def test_a_bug_of_the_update_queue_breaks_its_claim_and_the_correct_queue_keeps_it(
    claim: Callable[[type[Any]], bool], bug: type[Any], correct: type[Any]
) -> None:
    assert not claim(bug)
    assert claim(correct)
