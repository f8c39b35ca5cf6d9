"""Bugs of the update queue between threads, and of programs that use it, each beside the correct twin."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Any

import pytest
from thread_gate import SOON_S
from update_queue.threaded_update_queue import ThreadedUpdateQueue, WhenFull
from update_queue.work_queues import BoundedWorkQueue, QueueFull, UnboundedWorkQueue

AT_ONCE_S = 0.05
"""The time after which a queue with a planted bug counts as one that never answers."""


def no_update_is_lost(queue_type: type[Any]) -> bool:
    """Read, let another consumer read as well, write: with one consumer there is no other."""
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


class TwoConsumers(ThreadedUpdateQueue[Any, Any]):
    def start(self) -> None:
        super().start()
        threading.Thread(target=self._consume, daemon=True).start()


@pytest.mark.rows("SUQ-M1")
def test_two_consumers_lose_an_update_and_one_does_not() -> None:
    assert not no_update_is_lost(TwoConsumers)
    assert no_update_is_lost(ThreadedUpdateQueue)


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
