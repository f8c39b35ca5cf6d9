"""Histories: one common order, columns, and lines that survive a crash."""

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.history import OPEN, History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok


def recorded(sink=None) -> History:
    history = History(sink)
    write = history.invoke(Operation(0, "write", "k0", 1), 10, 0, "athens")
    read = history.invoke(Operation(1, "read", "k0"), 12, 1, "byzantium")
    history.fault("start-partition", {"fault": 0, "nodes": ["athens"]}, 15)
    history.complete(read, ok(1), 20)
    history.complete(write, info("timeout"), 30)
    cas = history.invoke(Operation(5, "cas", "k1", [1, 2]), 31, 0, "athens")
    history.complete(cas, fail("cas-mismatch"), 40)
    history.invoke(Operation(1, "write", "k1", 3), 41, 1, "byzantium")
    return history


def test_every_event_takes_the_next_index_of_one_common_order():
    events = list(recorded().events())
    assert [event["index"] for event in events] == list(range(8))
    assert [event["type"] for event in events] == ["invoke", "invoke", "info", "ok", "info", "invoke", "fail", "invoke"]


def test_an_operation_that_never_completed_is_open_and_counts_as_info():
    row = recorded().row(3)
    assert (row.outcome, row.complete_us, row.complete_index) == ("info", OPEN, OPEN)


def test_lines_are_written_as_events_happen_and_equal_the_whole():
    lines: list[bytes] = []
    history = recorded(lines.append)
    assert b"".join(lines) == history.to_jsonl()


def test_a_history_read_back_is_the_same_to_the_byte():
    history = recorded()
    again = History.from_jsonl(history.to_jsonl().splitlines(keepends=True))
    assert again.to_jsonl() == history.to_jsonl()
    assert again.digest() == history.digest()


def test_the_node_that_answered_takes_the_place_of_the_one_asked_first():
    history = History()
    row = history.invoke(Operation(0, "read", "k0"), 1, 0, "athens")
    history.complete(row, ok(7, "byzantium"), 2)
    first, last = history.events()
    assert (first["node"], last["node"], history.node[row]) == ("athens", "byzantium", "byzantium")
    assert History.from_jsonl(history.to_jsonl().splitlines()).to_jsonl() == history.to_jsonl()


def test_a_line_has_an_error_only_if_there_was_one_and_a_node_only_if_another_answered():
    history = History()
    for process, outcome in enumerate((ok(None), ok(3, "athens"), ok(4, "byzantium"), info("timeout"))):
        row = history.invoke(Operation(process, "read", None, {"list": [1, None]}), 1, process, "athens")
        history.complete(row, outcome, 2)
    invoked, *_ = lines = history.to_jsonl().decode().splitlines()
    assert invoked == (
        '{"index":0,"time_us":1,"type":"invoke","process":0,"worker":0,"node":"athens","f":"read","key":null,'
        '"value":{"list":[1,null]}}'
    )
    assert lines[1::2] == [
        '{"index":1,"time_us":2,"type":"ok","process":0,"f":"read","key":null,"value":null}',
        '{"index":3,"time_us":2,"type":"ok","process":1,"f":"read","key":null,"value":3}',
        '{"index":5,"time_us":2,"type":"ok","process":2,"f":"read","key":null,"value":4,"node":"byzantium"}',
        '{"index":7,"time_us":2,"type":"info","process":3,"f":"read","key":null,"value":null,"error":"timeout"}',
    ]


def test_a_torn_last_line_costs_only_itself():
    lines = recorded().to_jsonl().splitlines(keepends=True)
    again = History.from_jsonl([*lines[:-1], lines[-1][:20]])
    assert len(again) == 3


def test_a_malformed_line_in_the_middle_is_named():
    lines = recorded().to_jsonl().splitlines(keepends=True)
    lines[2] = b"{nonsense\n"
    with pytest.raises(UsageError, match="line 3"):
        History.from_jsonl(lines, source="a.jsonl")


def test_a_completion_without_an_invocation_is_named():
    lines = recorded().to_jsonl().splitlines(keepends=True)
    with pytest.raises(UsageError, match="line 2"):
        History.from_jsonl([lines[0], lines[3], *lines[4:]])


def test_a_row_completes_only_once():
    history = recorded()
    with pytest.raises(AssertionError, match="completed twice"):
        history.complete(0, ok(), 50)


def test_rows_by_key_keep_the_order_of_first_use():
    assert recorded().rows_by_key() == {"k0": [0, 1], "k1": [2, 3]}


def test_the_end_is_the_last_event():
    assert recorded().end_us() == 41
    assert History().end_us() == 0
