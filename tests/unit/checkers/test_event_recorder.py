"""Events become rows, and what no single-threaded clients can have done is refused."""

from __future__ import annotations

import pytest

from faultline.checkers.importers.events import EventError, EventRecorder


def event(kind, process=0, f="read", value=None, **more):
    return {"type": kind, "process": process, "f": f, "value": value, **more}


def recorded(*events):
    recorder = EventRecorder()
    for given in events:
        recorder.record(given)
    return recorder


def test_an_operation_is_an_invocation_and_the_next_event_of_its_process():
    history = recorded(
        event("invoke", 0, "write", 1), event("invoke", 1), event("ok", 1, value=1), event("ok", 0, "write", 1)
    ).history
    assert (history.process, history.f, history.value) == ([0, 1], ["write", "read"], [1, None])
    assert (history.invoke_index, history.complete_index) == ([0, 1], [3, 2])
    assert (history.outcome, history.result) == (["ok", "ok"], [1, 1])


def test_failures_and_unknowns_keep_their_error_and_have_no_result():
    history = recorded(
        event("invoke"), event("fail", value=7, error="no-leader"), event("invoke"), event("info", error=["timeout", 5])
    ).history
    assert history.outcome == ["fail", "info"]
    assert history.result == [None, None]
    assert history.error == ["no-leader", "['timeout', 5]"]


def test_the_nemesis_is_counted_and_left_out_but_takes_its_indices():
    recorder = recorded(
        event("info", "nemesis", "start"), event("invoke"), event("info", "nemesis"), event("ok", value=1)
    )
    assert recorder.nemesis_events == 2
    assert (recorder.history.invoke_index, recorder.history.complete_index) == ([1], [3])


def test_indices_and_times_are_kept():
    recorder = recorded(event("invoke", index=10, time=2_500_000), event("ok", index=12, time=3_999_999))
    assert recorder.finish()
    history = recorder.history
    assert (history.invoke_index, history.complete_index) == ([10], [12])
    assert (history.invoke_us, history.complete_us) == ([2500], [3999])


@pytest.mark.parametrize("times", [(None, None), (0, 0), (-1, -1)])
def test_without_times_the_indices_stand_for_them(times):
    recorder = recorded(event("invoke", index=4, time=times[0]), event("ok", index=6, time=times[1]))
    assert not recorder.finish()
    assert (recorder.history.invoke_us, recorder.history.complete_us) == ([4], [6])


def test_an_invocation_without_a_value_takes_that_of_its_completion():
    assert recorded(event("invoke", f="write"), event("ok", f="write", value=5)).history.value == [5]


def test_events_without_processes_and_functions_are_transactions_one_after_another():
    history = recorded({"type": "invoke", "value": [["r", 1, None]]}, {"type": "ok", "value": [["r", 1, [2]]]}).history
    assert (history.f, history.process, history.result) == (["txn"], [0], [[["r", 1, [2]]]])


READ = event("invoke")
REFUSED = [
    ([event("ok")], "process 0 completes 'read', but it has invoked no operation"),
    ([READ, event("ok"), event("ok")], "it has invoked no operation"),
    ([READ, READ], "process 0 invokes while"),
    ([READ, event("ok", f="write")], "completes 'write', but it invoked 'read'"),
    ([event("start")], "must be invoke, ok, fail or info"),
    ([event("invoke", process="client-1")], "must be an integer or nemesis"),
    ([event("invoke", process=True)], "must be an integer or nemesis"),
    ([event("invoke", f=None)], "must name its function"),
    ([event("invoke", f=3)], "must name its function"),
    ([7], "an event must be a map"),
    ([[1, 2]], "an event must be a map"),
    ([READ | {"index": 3}, event("ok", index=3)], "index 3 comes after index 3"),
    ([READ | {"index": 3}, event("ok", index=2)], "index 2 comes after index 3"),
    ([READ | {"index": 3}, event("ok")], "some events have an index"),
    ([READ | {"index": -1}], "an index must be"),
    ([READ | {"index": 1.5}], "an index must be"),
    ([READ | {"time": 3}, event("ok")], "some events have a time"),
    ([READ | {"time": "now"}], "a time must be an integer"),
    ([READ, {"type": "ok", "f": "read"}], "some events name a process"),
    ([{"type": "invoke", "f": "read"}, {"type": "invoke", "f": "read"}], "without names of processes"),
    ([event("invoke", f="write", value=1), event("ok", f="write", value=2)], "a write of 1 completes as one of 2"),
    ([event("invoke", f="cas", value=[1, 2]), event("ok", f="cas", value=[1, 3])], "a cas of"),
]


@pytest.mark.parametrize(("events", "cause"), REFUSED)
def test_impossible_events_are_refused_with_their_cause(events, cause):
    with pytest.raises(EventError, match=cause):
        recorded(*events)


def test_a_long_value_is_cut_in_an_error():
    with pytest.raises(EventError) as refused:
        recorded("x" * 10_000_000)
    assert len(str(refused.value)) < 200
