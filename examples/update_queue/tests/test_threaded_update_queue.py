"""The update queue between threads: one owner, in order, bounded; no future hangs. No test waits by the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from thread_gate import SOON_S, Gate
from update_queue.threaded_update_queue import (
    NotTheOwner,
    ThreadedUpdateQueue,
    WhenFull,
    WouldDeadlock,
)
from update_queue.work_queues import BoundedWorkQueue, QueueFull, QueueShutDown, RingWorkQueue, UnboundedWorkQueue

KINDS = [BoundedWorkQueue, lambda: RingWorkQueue(128), UnboundedWorkQueue]


@contextmanager
def running(queue: ThreadedUpdateQueue[Any, Any]) -> Iterator[ThreadedUpdateQueue[Any, Any]]:
    queue.start()
    try:
        yield queue
    finally:
        queue.shutdown()
        assert queue.join(SOON_S)


def fill(queue: ThreadedUpdateQueue[Any, Any], gate: Gate, capacity: int) -> list[Future[Any]]:
    """One request that the handler holds, and as many waiting as fit."""
    futures = [queue.submit("held")]
    assert gate.entered.wait(SOON_S)
    return futures + [queue.submit(number) for number in range(capacity)]


@pytest.mark.rows("SUQ-S1", "SUQ-R1", "SUQ-R2", "SUQ-R8", "SUQ-R13", "SUQ-I1", "SUQ-I6")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "callers", "times"), [(KINDS[0], 100, 1_000), (KINDS[1], 20, 200), (KINDS[2], 20, 200)]
)
def test_many_threads_increment_a_plain_integer_and_none_is_lost(
    kind: Callable[[], Any], callers: int, times: int
) -> None:
    count, active, most, threads = 0, 0, 0, set()

    def increment(_: int) -> int:
        nonlocal count, active, most
        queue.require_owner()
        active += 1
        most = max(most, active)
        threads.add(threading.get_ident())
        count += 1
        active -= 1
        return count

    queue: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(increment, kind())
    with running(queue):
        started = [
            threading.Thread(target=lambda: [queue.submit(1) for _ in range(times)][-1].result(SOON_S))
            for _ in range(callers)
        ]
        for caller in started:
            caller.start()
        for caller in started:
            caller.join()
        assert (count, most, len(threads)) == (callers * times, 1, 1)


@pytest.mark.rows("SUQ-I6", "SUQ-R13")
def test_another_thread_that_touches_the_state_is_told_so() -> None:
    queue: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(lambda request: request)
    with running(queue), pytest.raises(NotTheOwner):
        queue.require_owner()


@pytest.mark.rows("SUQ-S2", "SUQ-R3")
def test_a_handler_that_raises_fails_its_own_future_and_the_next_runs() -> None:
    def handler(request: int) -> int:
        if request == 2:
            raise ArithmeticError("not two")
        return request

    with running(ThreadedUpdateQueue(handler)) as queue:
        futures = [queue.submit(number) for number in range(5)]
        with pytest.raises(ArithmeticError, match="not two"):
            futures[2].result(SOON_S)
        assert [future.result(SOON_S) for future in futures if future is not futures[2]] == [0, 1, 3, 4]


@pytest.mark.rows("SUQ-S3", "SUQ-R7", "SUQ-R4", "SUQ-I5", "SUQ-I2")
@pytest.mark.parametrize(("kind", "capacity"), [(lambda: BoundedWorkQueue(100), 100), (lambda: RingWorkQueue(64), 64)])
def test_a_full_queue_refuses_or_holds_its_caller_up_and_keeps_the_order(kind: Any, capacity: int) -> None:
    gate = Gate()
    refusing = ThreadedUpdateQueue(gate, kind(), when_full=WhenFull.REFUSE)
    with running(refusing):
        futures = fill(refusing, gate, capacity)
        with pytest.raises(QueueFull, match=str(capacity)):
            refusing.submit("one too many")
        assert len(refusing.work) == capacity
        gate.open.set()
        assert [future.result(SOON_S) for future in futures] == ["held", *range(capacity)]
    gate = Gate()
    waiting = ThreadedUpdateQueue(gate, kind())
    with running(waiting):
        fill(waiting, gate, capacity)
        accepted = threading.Event()
        caller = threading.Thread(target=lambda: (waiting.submit("last"), accepted.set()))
        caller.start()
        assert not accepted.is_set() and len(waiting.work) == capacity
        gate.open.set()
        assert accepted.wait(SOON_S)
        caller.join()
        waiting.submit("end").result(SOON_S)
        assert gate.handled == ["held", *range(capacity), "last", "end"]


@pytest.mark.rows("SUQ-S4", "SUQ-R5")
@pytest.mark.parametrize("poll_ms", [2, 300])
def test_an_idle_consumer_ends_within_a_poll(poll_ms: int) -> None:
    polls: list[float] = []

    class Recording(UnboundedWorkQueue[Any]):
        def get(self, timeout_s: float) -> Any:
            polls.append(timeout_s)
            return super().get(timeout_s)

    queue: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(lambda request: request, Recording(), poll_ms=poll_ms)
    queue.start()
    queue.submit(1).result(SOON_S)
    queue.shutdown()
    assert queue.join(SOON_S)
    assert set(polls) == {poll_ms / 1_000, 0}


@pytest.mark.rows("SUQ-S4", "SUQ-R6")
@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_with_fifty_queued_leaves_no_future_hanging(kind: Callable[[], Any]) -> None:
    gate = Gate()
    queue: ThreadedUpdateQueue[Any, Any] = ThreadedUpdateQueue(gate, kind())
    queue.start()
    held, *queued = fill(queue, gate, 50)
    queue.shutdown()
    gate.open.set()
    assert held.result(SOON_S) == "held"
    assert queue.join(SOON_S)
    assert {type(future.exception(SOON_S)) for future in queued} == {QueueShutDown}
    with pytest.raises(QueueShutDown):
        queue.submit("late")
    assert gate.handled == ["held"]


@pytest.mark.rows("SUQ-S4", "SUQ-R6")
def test_shutdown_before_the_start_wins() -> None:
    queue: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(lambda request: request)
    future = queue.submit(1)
    queue.shutdown()
    with pytest.raises(QueueShutDown):
        future.result(SOON_S)
    queue.start()
    assert queue.join(SOON_S)
    with pytest.raises(QueueShutDown):
        queue.submit(2)


@pytest.mark.rows("SUQ-S4", "SUQ-R6", "SUQ-I3")
@pytest.mark.parametrize("round_number", range(20))
def test_submissions_that_race_with_the_shutdown_are_executed_or_failed(round_number: int) -> None:
    queue: ThreadedUpdateQueue[int, int] = ThreadedUpdateQueue(lambda request: request, BoundedWorkQueue(2))
    queue.start()
    futures: list[Future[int]] = []
    begin = threading.Barrier(5)

    def submit() -> None:
        begin.wait()
        for number in range(20):
            try:
                futures.append(queue.submit(number))
            except QueueShutDown:
                return

    callers = [threading.Thread(target=submit) for _ in range(4)]
    for caller in callers:
        caller.start()
    begin.wait()
    queue.shutdown()
    for caller in callers:
        caller.join(SOON_S)
        assert not caller.is_alive()
    assert queue.join(SOON_S)
    for future in futures:
        assert isinstance(future.exception(SOON_S), QueueShutDown | None)


@pytest.mark.rows("SUQ-S5", "SUQ-R2", "SUQ-R15")
def test_while_a_write_is_slow_callers_get_futures_at_once_and_nothing_else_waits() -> None:
    """Heartbeats go past the queue (HB-R10): here they are simply another thread that never touches it."""
    gate = Gate()
    with running(ThreadedUpdateQueue(gate, BoundedWorkQueue(10), when_full=WhenFull.REFUSE)) as queue:
        futures = fill(queue, gate, 10)
        assert not any(future.done() for future in futures)
        with pytest.raises(QueueFull):
            queue.submit("11th")
        beats: list[int] = []
        heart = threading.Thread(target=lambda: beats.extend(range(100)))
        heart.start()
        heart.join(SOON_S)
        assert len(beats) == 100 and not any(future.done() for future in futures)
        answers: list[Any] = []
        for future in futures:
            future.add_done_callback(lambda future: answers.append(future.result()))
        gate.open.set()
        futures[-1].result(SOON_S)
    assert answers == gate.handled == ["held", *range(10)]


@pytest.mark.rows("SUQ-S6", "SUQ-R12")
def test_the_answer_of_an_external_call_changes_the_state_only_as_a_request_of_its_own() -> None:
    state = {"version": 1, "value": "old"}
    called = threading.Event()
    calls: list[Callable[[str], Future[Any]]] = []

    def handler(request: tuple[str, Any]) -> Any:
        queue.require_owner()
        kind, argument = request
        if kind == "refresh":
            asked_at = state["version"]
            calls.append(lambda answer: queue.submit(("refreshed", (asked_at, answer))))
            called.set()
        elif kind == "set":
            state["version"] += 1
            state["value"] = argument
        elif kind == "refreshed" and argument[0] == state["version"]:
            state["value"] = argument[1]
        return dict(state)

    queue: ThreadedUpdateQueue[tuple[str, Any], Any] = ThreadedUpdateQueue(handler)
    with running(queue):
        queue.submit(("refresh", None))
        assert called.wait(SOON_S)
        assert calls[0]("from afar").result(SOON_S)["value"] == "from afar"
        queue.submit(("refresh", None)).result(SOON_S)
        queue.submit(("set", "mine")).result(SOON_S)
        assert calls[1]("too late").result(SOON_S)["value"] == "mine"


@pytest.mark.rows("SUQ-S7", "SUQ-R14")
def test_chained_queues_of_capacity_one_would_wait_for_each_other_and_say_so() -> None:
    """A→B→A: the consumer that would close the circle is told, and everything else goes on."""
    refused = threading.Event()
    second_is_there = threading.Event()

    def ping(request: int) -> None:
        assert second_is_there.wait(SOON_S)
        for _ in range(3):
            pass_on(there, request)

    def pong(request: int) -> None:
        for _ in range(3):
            pass_on(here, request)

    def pass_on(queue: ThreadedUpdateQueue[int, None], request: int) -> None:
        try:
            if request:
                queue.submit(request - 1)
        except WouldDeadlock:
            refused.set()

    here: ThreadedUpdateQueue[int, None] = ThreadedUpdateQueue(ping, BoundedWorkQueue(1))
    there: ThreadedUpdateQueue[int, None] = ThreadedUpdateQueue(pong, BoundedWorkQueue(1))
    with running(here), running(there):
        here.submit(6)
        here.submit(6)
        second_is_there.set()
        assert refused.wait(SOON_S)
        assert here.submit(0).result(SOON_S) is None
        assert there.submit(0).result(SOON_S) is None


@pytest.mark.rows("SUQ-R14")
def test_a_handler_that_would_wait_for_room_in_its_own_queue_is_told_so() -> None:
    def handler(request: int) -> str:
        if request:
            queue.submit(0)
            with pytest.raises(WouldDeadlock):
                queue.submit(0)
        return "done"

    queue: ThreadedUpdateQueue[int, str] = ThreadedUpdateQueue(handler, BoundedWorkQueue(1))
    with running(queue):
        assert queue.submit(1).result(SOON_S) == "done"


@pytest.mark.rows("SUQ-R11")
def test_follow_up_work_runs_on_a_queue_of_its_own_and_holds_up_nothing() -> None:
    sender = Gate()
    with running(ThreadedUpdateQueue(sender)) as replies:

        def write(request: str) -> str:
            replies.submit(f"answer to {request}")
            return request

        with running(ThreadedUpdateQueue(write)) as writes:
            assert [writes.submit(each).result(SOON_S) for each in ("one", "two")] == ["one", "two"]
            assert sender.handled == []
            sender.open.set()
        replies.submit("end").result(SOON_S)
    assert sender.handled == ["answer to one", "answer to two", "end"]


@pytest.mark.rows("SUQ-S9")
def test_a_caller_that_stops_waiting_does_not_stop_its_request_and_its_retry_is_no_second_one() -> None:
    gate, counter = Gate(), [0]
    answers: dict[int, int] = {}

    def handler(request_number: int) -> int:
        gate(request_number)
        if request_number not in answers:
            counter[0] += 1
            answers[request_number] = counter[0]
        return answers[request_number]

    with running(ThreadedUpdateQueue(handler)) as queue:
        given_up = queue.submit(1)
        assert gate.entered.wait(SOON_S)
        with pytest.raises(TimeoutError):
            given_up.result(0)
        assert not given_up.cancel()
        never_begun = queue.submit(2)
        assert never_begun.cancel()
        retry = queue.submit(1)
        gate.open.set()
        assert (given_up.result(SOON_S), retry.result(SOON_S), counter) == (1, 1, [1])


@pytest.mark.parametrize("make", [lambda: BoundedWorkQueue(0), lambda: RingWorkQueue(100), lambda: RingWorkQueue(0)])
def test_a_queue_that_cannot_be_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"at least one|power of two"):
        make()
