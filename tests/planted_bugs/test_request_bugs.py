"""Planted bugs of waiting lists and sessions that no system can show: the component breaks its claim, its twin not.

Why they have no campaign: a server handles one event at a time, so no answer can come between a send and a registration
behind it (RWL-M8). Mixed units make each wait end at the first sweep, which clients of a server that sweeps as seldom
as its timeout cannot tell from loss (RWL-M4). Clients of `consistent-core` have one request in flight, and one saved
answer is enough for them (IDR-M4).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import (
    ClientSessions,
    LastResponses,
    Session,
)
from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.testing.fake_ports import FakePorts

MILLISECOND_US = 1_000


class MixedUnits(RequestWaitingList[int, str]):
    """Compares nanoseconds that have passed with the timeout's figure in milliseconds."""

    def __init__(self, clock: FakePorts) -> None:
        super().__init__(clock)
        self._expiration_us = 2_000 // 1_000


def write_swept_after_100_ms(waiting: RequestWaitingList[int, str], clock: FakePorts) -> list[WriteResult]:
    """Three replicas that answer 100, 101 and 102 ms after they were asked, the sweep in between."""
    replies: list[WriteResult] = []
    callback = WriteQuorumCallback(3, 1, lambda _, result: replies.append(result))
    for key in range(3):
        waiting.add(key, callback)
    clock.now_us += 100 * MILLISECOND_US
    waiting.handle_response(0, "stored")
    waiting.expire()
    for key in (1, 2):
        clock.now_us += MILLISECOND_US
        waiting.handle_response(key, "stored")
    return replies


@pytest.mark.rows("RWL-M4", "RWL-R13")
def test_with_mixed_units_a_write_that_a_quorum_stored_in_100_ms_is_called_unknown() -> None:
    clock = FakePorts()
    assert write_swept_after_100_ms(MixedUnits(clock), clock) == [WriteResult.UNKNOWN]
    assert write_swept_after_100_ms(RequestWaitingList(clock), clock) == [WriteResult.SUCCESS]


def ask_each_replica(
    waiting: RequestWaitingList[int, str], replies: list[WriteResult], *, registers_first: bool
) -> None:
    """Ask three replicas that are so near that each has answered before the sender goes on."""
    callback = WriteQuorumCallback(3, 1, lambda _, result: replies.append(result))
    for key in range(3):
        steps: list[Callable[[], None]] = [
            lambda key=key: waiting.add(key, callback),
            lambda key=key: waiting.handle_response(key, "stored"),
        ]
        for step in steps if registers_first else reversed(steps):
            step()


@pytest.mark.rows("RWL-M8", "RWL-R4")
def test_registered_after_the_send_fast_answers_find_no_callback_and_the_wait_expires() -> None:
    for registers_first, expected in ((False, [WriteResult.UNKNOWN]), (True, [WriteResult.SUCCESS])):
        clock, replies = FakePorts(), []
        waiting: RequestWaitingList[int, str] = RequestWaitingList(clock)
        ask_each_replica(waiting, replies, registers_first=registers_first)
        clock.now_us += 2_001 * MILLISECOND_US
        waiting.expire()
        assert replies == expected


class TooFewAndTooTrusting(ClientSessions[str]):
    """Keeps two answers for clients with five requests in flight, and takes what it has forgotten for new."""

    def __init__(self) -> None:
        super().__init__(LastResponses(2))

    def saved_response(self, session: Session[str], request_number: int) -> str | None:
        session.discarded_number = 0
        return super().saved_response(session, request_number)


@pytest.mark.rows("IDR-M4")
@pytest.mark.parametrize(
    ("in_flight", "lost", "executions"),
    [(5, True, 8), (5, False, 5), (1, True, 5)],
    ids=["pipelined, connection lost", "pipelined, nothing lost", "one at a time"],
)
def test_too_few_saved_answers_show_only_when_a_pipeline_loses_its_connection(
    in_flight: int, lost: bool, executions: int
) -> None:
    """Five requests, all executed; then, if the connection was lost, those in flight are sent again.

    Three of five are executed twice: two answers were still there.
    """
    counts = {}
    for sessions in (TooFewAndTooTrusting(), ClientSessions[str](LastResponses(5))):
        sessions.register(7)
        executed: list[int] = []

        def ask(number: int, sessions: ClientSessions[str] = sessions, executed: list[int] = executed) -> None:
            sessions.execute(7, number, lambda: executed.append(number) or "done")

        for first in range(1, 6, in_flight):
            window = range(first, first + in_flight)
            for _ in range(2 if lost else 1):
                for number in window:
                    ask(number)
        counts[type(sessions)] = len(executed)
    assert counts[ClientSessions] == 5
    assert counts[TooFewAndTooTrusting] == executions
