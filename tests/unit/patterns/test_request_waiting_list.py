"""Request waiting list: RWL-S1 to S9, as far as one node can show them."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_replication.request_waiting_list import (
    EXPIRATION_US,
    CorrelationIds,
    RequestExpired,
    RequestWaitingList,
    WriteQuorumCallback,
    WriteResult,
)
from faultline.testing.fake_ports import FakePorts


class _Recorder:
    """A callback that writes down what happened to it."""

    def __init__(self, events: list[tuple[str, object]] | None = None) -> None:
        self.events: list[tuple[str, object]] = [] if events is None else events

    def on_response(self, response: object) -> None:
        self.events.append(("response", response))

    def on_error(self, error: Exception) -> None:
        self.events.append(("error", type(error)))


class _Write:
    """One client write sent to `n` replicas, with the replies the client gets."""

    def __init__(self, n: int) -> None:
        self.clock = FakePorts()
        self.waiting: RequestWaitingList[int, str] = RequestWaitingList(self.clock)
        self.replies: list[tuple[int, WriteResult]] = []
        callback = WriteQuorumCallback(n, 4711, lambda id_, result: self.replies.append((id_, result)))
        for key in range(n):
            self.waiting.add(key, callback)


SUCCESS = [(4711, WriteResult.SUCCESS)]
UNKNOWN = [(4711, WriteResult.UNKNOWN)]


@pytest.mark.rows("RWL-R3", "RWL-R6", "RWL-R8", "RWL-R11", "RWL-S1")
def test_the_quorum_th_answer_makes_a_success_and_later_ones_change_nothing() -> None:
    write = _Write(3)
    write.waiting.handle_response(0, "stored")
    assert write.replies == []
    write.waiting.handle_response(1, "stored")
    assert write.replies == SUCCESS
    write.waiting.handle_response(2, "stored")
    assert write.replies == SUCCESS
    assert len(write.waiting) == 0


@pytest.mark.rows("RWL-R11", "RWL-R12", "RWL-S2")
def test_a_replica_that_never_answers_expires_without_a_second_reply() -> None:
    write = _Write(3)
    write.waiting.handle_response(0, "stored")
    write.waiting.handle_response(1, "stored")
    write.clock.now_us += EXPIRATION_US + 1
    write.waiting.expire()
    assert write.replies == SUCCESS
    assert len(write.waiting) == 0


@pytest.mark.rows("RWL-R6", "RWL-R9", "RWL-R12", "RWL-R15", "RWL-S3")
def test_silent_replicas_end_in_one_unknown_reply_and_their_late_answers_are_ignored() -> None:
    write = _Write(3)
    write.waiting.handle_response(0, "stored")
    write.clock.now_us += EXPIRATION_US + 1
    write.waiting.expire()
    assert write.replies == UNKNOWN
    write.waiting.handle_response(1, "stored")
    write.waiting.handle_response(2, "stored")
    assert write.replies == UNKNOWN


@pytest.mark.rows("RWL-R7", "RWL-R9", "RWL-S4")
def test_refused_connections_are_answered_without_waiting_for_the_timeout() -> None:
    write = _Write(3)
    write.waiting.handle_error(1, ConnectionRefusedError())
    assert write.replies == []
    write.waiting.handle_error(2, ConnectionRefusedError())
    assert write.replies == UNKNOWN


@pytest.mark.rows("RWL-R14", "RWL-S5")
def test_an_answer_in_the_instant_of_the_sweep_has_one_outcome() -> None:
    for answer_first in (True, False):
        clock, recorder = FakePorts(), _Recorder()
        waiting: RequestWaitingList[int, str] = RequestWaitingList(clock)
        waiting.add(1, recorder)
        clock.now_us += EXPIRATION_US + 1
        steps = [lambda w=waiting: w.handle_response(1, "answer"), waiting.expire]
        for step in steps if answer_first else reversed(steps):
            step()
        assert recorder.events == [("response", "answer") if answer_first else ("error", RequestExpired)]


@pytest.mark.rows("RWL-R6", "RWL-S6")
def test_an_answer_delivered_twice_counts_once() -> None:
    write = _Write(3)
    write.waiting.handle_response(1, "stored")
    write.waiting.handle_response(1, "stored")
    assert write.replies == []


@pytest.mark.rows("RWL-R10", "RWL-S7")
def test_two_answers_and_two_errors_of_four_are_answered() -> None:
    write = _Write(4)
    write.waiting.handle_response(0, "stored")
    write.waiting.handle_error(1, ConnectionRefusedError())
    write.waiting.handle_response(2, "stored")
    assert write.replies == []
    write.waiting.handle_error(3, ConnectionRefusedError())
    assert write.replies == UNKNOWN


@pytest.mark.rows("RWL-R11")
def test_errors_after_a_success_are_not_told() -> None:
    write = _Write(5)
    for key in range(3):
        write.waiting.handle_response(key, "stored")
    for key in (3, 4):
        write.waiting.handle_error(key, ConnectionRefusedError())
    assert write.replies == SUCCESS


def test_another_quorum_size_can_be_asked_for() -> None:
    replies: list[WriteResult] = []
    callback = WriteQuorumCallback(3, 1, lambda _, result: replies.append(result), quorum=3)
    callback.on_error(ConnectionRefusedError())
    assert replies == [WriteResult.UNKNOWN]


@pytest.mark.rows("RWL-R3", "RWL-R16")
def test_answers_for_an_earlier_incarnation_find_no_waiting_request() -> None:
    before, after = CorrelationIds(1), CorrelationIds(2)
    old = [before.next() for _ in range(1000)]
    new = [after.next() for _ in range(1000)]
    assert len({*old, *new}) == 2000
    recorder = _Recorder()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    for key in new:
        waiting.add(key, recorder)
    for key in old:
        waiting.handle_response(key, "for the earlier incarnation")
    assert recorder.events == []


@pytest.mark.rows("RWL-R2", "RWL-R17", "RWL-R18", "RWL-S9")
def test_the_high_water_mark_completes_all_up_to_it_in_index_order() -> None:
    events: list[tuple[str, object]] = []
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    for index in (7, 5, 8, 6):
        waiting.add(index, _Recorder(events))
    waiting.complete_up_to(4, str)
    assert events == []
    waiting.complete_up_to(7, str)
    assert events == [("response", "5"), ("response", "6"), ("response", "7")]
    waiting.fail_all(PermissionError("not the leader any more"))
    assert events[3:] == [("error", PermissionError)]
    waiting.complete_up_to(8, str)
    assert len(events) == 4


def test_completing_an_empty_list_asks_for_no_responses() -> None:
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    waiting.complete_up_to(10, {}.__getitem__)
    assert len(waiting) == 0


@pytest.mark.rows("RWL-R17")
def test_a_truncated_log_fails_what_waits_for_the_lost_entries_only() -> None:
    events: list[tuple[str, object]] = []
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    for index in (4, 5, 6):
        waiting.add(index, _Recorder(events))
    waiting.fail_from(5, LookupError("truncated"))
    assert events == [("error", LookupError)] * 2
    assert 4 in waiting
    assert 5 not in waiting


@pytest.mark.rows("RWL-R4", "RWL-R12", "RWL-R13")
def test_an_entry_expires_only_when_it_is_older_than_the_timeout() -> None:
    clock, recorder = FakePorts(), _Recorder()
    waiting: RequestWaitingList[str, str] = RequestWaitingList(clock, expiration_us=2_000)
    waiting.add("early", recorder)
    clock.now_us += 500
    waiting.add("late", recorder)
    clock.now_us += 1_500
    waiting.expire()
    assert recorder.events == []
    clock.now_us += 1
    waiting.expire()
    assert recorder.events == [("error", RequestExpired)]
    assert "late" in waiting


def test_a_sweep_judges_by_one_reading_of_a_clock_that_goes_on() -> None:
    class RealClock(FakePorts):
        def monotonic_us(self) -> int:
            self.now_us += 1
            return self.now_us

    clock = RealClock()
    waiting: RequestWaitingList[str, str] = RequestWaitingList(clock, expiration_us=2_000)
    waiting.add("just in time", _Recorder())
    clock.now_us += 1_999
    assert waiting.oldest_us(waiting.expire()) == 2_000
    assert "just in time" in waiting


def test_an_expired_request_says_how_long_it_waited() -> None:
    class Raiser(_Recorder):
        def on_error(self, error: Exception) -> None:
            raise error

    clock = FakePorts()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(clock, expiration_us=10)
    waiting.add(1, Raiser())
    clock.now_us += 11
    with pytest.raises(RequestExpired, match="10 us"):
        waiting.expire()


@pytest.mark.rows("RWL-R6", "RWL-R14")
def test_answers_and_errors_for_unknown_keys_are_ignored() -> None:
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    waiting.handle_response(1, "late")
    waiting.handle_error(1, ConnectionRefusedError())
    waiting.expire()
    assert len(waiting) == 0


def test_a_second_wait_for_one_key_is_refused_and_the_first_goes_on() -> None:
    recorder = _Recorder()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    waiting.add(1, recorder)
    with pytest.raises(ValueError, match="already"):
        waiting.add(1, _Recorder())
    waiting.handle_response(1, "answer")
    assert recorder.events == [("response", "answer")]


def test_a_callback_may_wait_for_the_same_key_again() -> None:
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())
    recorder = _Recorder()

    class Again(_Recorder):
        def on_error(self, error: Exception) -> None:
            del error
            waiting.add(1, recorder)

    waiting.add(1, Again())
    waiting.fail_all(PermissionError())
    waiting.handle_response(1, "answer")
    assert recorder.events == [("response", "answer")]


def test_a_callback_may_resolve_other_keys_while_the_mark_advances() -> None:
    events: list[tuple[str, object]] = []
    waiting: RequestWaitingList[int, str] = RequestWaitingList(FakePorts())

    class Deposed(_Recorder):
        def on_response(self, response: object) -> None:
            super().on_response(response)
            waiting.fail_all(PermissionError())

    waiting.add(1, Deposed(events))
    waiting.add(2, _Recorder(events))
    waiting.complete_up_to(2, str)
    assert events == [("response", "1"), ("error", PermissionError)]


@pytest.mark.rows("RWL-R12")
def test_swept_every_two_seconds_nothing_waits_for_four() -> None:
    """The worst case: registered just after a sweep, and not yet old enough at the next."""
    clock, recorder = FakePorts(), _Recorder()
    waiting: RequestWaitingList[int, str] = RequestWaitingList(clock)
    clock.now_us += 1
    waiting.add(1, recorder)
    clock.now_us += EXPIRATION_US - 1
    waiting.expire()
    assert 1 in waiting
    clock.now_us += EXPIRATION_US
    waiting.expire()
    assert recorder.events == [("error", RequestExpired)]
