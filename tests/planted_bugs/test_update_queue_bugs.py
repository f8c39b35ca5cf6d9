"""SUQ-M1 to SUQ-M9: bugs of the singular update queue, each breaking a claim that the correct queue keeps.

None of them can be switched on in a campaign. A node of the simulated world has one thread of control, and its queue is
drained before the next event: there is no second consumer, no full queue and no item left at a shutdown to be seen from
outside. So each bug is a variant of the queue itself, and the claim is the test that the correct queue passes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.promise import Promise
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import (
    QueueFull,
    SingularUpdateQueue,
)
from faultline.systems_under_test.threads.threaded_update_queue import ThreadedUpdateQueue, WhenFull
from faultline.systems_under_test.threads.work_queues import BoundedWorkQueue, UnboundedWorkQueue

SOON_S = 20.0
AT_ONCE_S = 0.05
"""How long a planted bug is given to show that it never answers."""

Scheduled = list[Callable[[], None]]


# -- claims: each returns whether it held -----------------------------------------------------------------------------


def no_update_is_lost(queue_type: type[Any]) -> bool:
    """Read, let anybody else read as well, write: with one consumer nobody else is there."""
    both_have_read = threading.Barrier(2)
    state = {"index": 0}

    def append(_: Any) -> int:
        index = state["index"]
        with contextlib.suppress(threading.BrokenBarrierError):
            both_have_read.wait(AT_ONCE_S)
        state["index"] = index + 1
        return index + 1

    queue = queue_type(append)
    queue.start()
    futures = [queue.submit(None) for _ in range(4)]
    indexes = [future.result(SOON_S) for future in futures]
    queue.shutdown()
    return sorted(indexes) == [1, 2, 3, 4]


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


class TwoConsumers(ThreadedUpdateQueue[Any, Any]):
    def start(self) -> None:
        super().start()
        threading.Thread(target=self._consume, daemon=True).start()


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
            no_update_is_lost, TwoConsumers, ThreadedUpdateQueue, id="SUQ-M1", marks=pytest.mark.rows("SUQ-M1")
        ),
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


# -- bugs of whoever uses the queue -----------------------------------------------------------------------------------


@pytest.mark.rows("SUQ-M6")
@pytest.mark.parametrize(("reenters", "total"), [(True, 111), (False, 110)])
def test_a_callback_that_changes_the_state_itself_loses_an_update(reenters: bool, total: int) -> None:
    """SUQ-M6: the answer of an external call comes while another request is between its read and its write."""
    state = {"total": 0}
    read, answered = threading.Event(), threading.Event()

    def handler(request: tuple[str, int]) -> None:
        kind, amount = request
        before = state["total"]
        if kind == "slow":
            read.set()
            assert answered.wait(SOON_S)
        state["total"] = before + amount

    queue: ThreadedUpdateQueue[tuple[str, int], None] = ThreadedUpdateQueue(handler)
    queue.start()
    slow = queue.submit(("slow", 10))
    assert read.wait(SOON_S)
    if reenters:
        answer: Future[None] | None = queue.submit(("answer", 1))
    else:
        answer = None
        state["total"] += 1
    answered.set()
    slow.result(SOON_S)
    if answer is not None:
        answer.result(SOON_S)
    queue.submit(("more", 100)).result(SOON_S)
    queue.shutdown()
    assert state["total"] == total


@pytest.mark.rows("SUQ-M7")
@pytest.mark.parametrize("blocks", [True, False])
def test_a_handler_that_waits_for_a_remote_answer_lets_heartbeats_wait_too(blocks: bool) -> None:
    """SUQ-M7: the follower's timer would run out although its leader speaks; asked asynchronously, heartbeats pass."""
    remote = threading.Event()
    asked = threading.Event()

    def handler(request: str) -> str:
        if request == "ask":
            asked.set()
            if blocks:
                assert remote.wait(SOON_S)
        return request

    queue: ThreadedUpdateQueue[str, str] = ThreadedUpdateQueue(handler)
    queue.start()
    queue.submit("ask")
    assert asked.wait(SOON_S)
    heartbeat = queue.submit("heartbeat")
    try:
        heard = heartbeat.result(AT_ONCE_S if blocks else SOON_S) == "heartbeat"
    except TimeoutError:
        heard = False
    remote.set()
    queue.shutdown()
    assert heard is not blocks


@pytest.mark.rows("SUQ-I3")
def test_a_second_result_for_one_future_is_refused() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    with pytest.raises(InvalidStateError):
        future.set_result(2)


@pytest.mark.rows("SUQ-M4", "SUQ-I5")
def test_an_unbounded_work_queue_grows_while_its_consumer_stands_still_and_a_bounded_one_does_not() -> None:
    bounded: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(
        lambda request: request, BoundedWorkQueue(100), when_full=WhenFull.REFUSE
    )
    unbounded: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(lambda request: request, UnboundedWorkQueue())
    for number in range(1_000):
        unbounded.submit(number)
        if number < 100:
            bounded.submit(number)
        else:
            with pytest.raises(QueueFull):
                bounded.submit(number)
    assert (len(bounded.work), len(unbounded.work)) == (100, 1_000)
