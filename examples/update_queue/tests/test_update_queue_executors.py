"""Update queues without a thread of their own: a mailbox that an executor runs, and a channel of requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from thread_gate import SOON_S, Gate
from update_queue.threaded_update_queue import Mailbox, RequestChannel
from update_queue.work_queues import QueueFull, QueueShutDown


@pytest.mark.rows("SUQ-R8", "SUQ-R1")
def test_a_mailbox_is_run_when_there_is_work_and_never_twice_at_once() -> None:
    active, most, handled = 0, 0, []

    def handler(request: int) -> int:
        nonlocal active, most
        active += 1
        most = max(most, active)
        handled.append(request)
        active -= 1
        return request

    with ThreadPoolExecutor(4) as executor:
        mailbox = Mailbox(handler, executor, capacity=10_000)
        futures = [mailbox.submit(number) for number in range(2_000)]
        assert [future.result(SOON_S) for future in futures] == handled == list(range(2_000))
    assert most == 1


@pytest.mark.rows("SUQ-R7", "SUQ-R6")
def test_a_full_mailbox_refuses_and_one_that_is_shut_down_fails_what_waits() -> None:
    gate = Gate()
    with ThreadPoolExecutor(1) as executor:
        mailbox = Mailbox(gate, executor, capacity=2)
        held = mailbox.submit("held")
        assert gate.entered.wait(SOON_S)
        waiting = [mailbox.submit(number) for number in range(2)]
        with pytest.raises(QueueFull, match="2 requests"):
            mailbox.submit(2)
        mailbox.shutdown()
        gate.open.set()
        assert held.result(SOON_S) == "held"
        assert {type(future.exception(SOON_S)) for future in waiting} == {QueueShutDown}
        with pytest.raises(QueueShutDown):
            mailbox.submit(3)


@pytest.mark.rows("SUQ-R9")
def test_each_request_of_a_channel_is_answered_on_its_own_response_channel() -> None:
    store: dict[str, int] = {}

    def put_kv(request: tuple[str, int]) -> int:
        key, value = request
        if value < 0:
            raise ArithmeticError("below zero")
        store[key] = store.get(key, 0) + value
        return store[key]

    channel: RequestChannel[tuple[str, int], int] = RequestChannel(put_kv)
    channel.start()
    responses = [channel.put(("title", value)) for value in (1, 2, -1, 3)]
    answers = [response.get(timeout=SOON_S) for response in responses]
    assert [answers[number].result() for number in (0, 1, 3)] == [1, 3, 6]
    assert isinstance(answers[2].exception(), ArithmeticError)
    channel.close()
