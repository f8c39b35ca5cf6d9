"""The messages that are drawn: by cause, with heartbeats folded and every omission counted."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.run_record import MessageRecord
from faultline.reports import message_choice
from faultline.reports.causality import Triggers, future_of, heartbeats_of, past_of
from faultline.reports.message_choice import Anomaly, MessageChoice, choose_messages

NODES = ("athens", "byzantium", "cyrene")
WRITE_US, READ_US = 1_000_000, 1_400_000


def beats(source: str, target: str, first_us: int, number: int, cut: bool = False) -> list[MessageRecord]:
    """A heartbeat every 50 ms and its answer; none arrives on a link that is `cut`."""
    found = []
    for at_us in range(first_us, first_us + number * 50_000, 50_000):
        found.append(MessageRecord(source, target, "Beat", at_us, -1 if cut else at_us + 700, f"Beat(sent={at_us})"))
        if not cut:
            found.append(MessageRecord(target, source, "Echo", at_us + 700, at_us + 1_500, f"Echo(sent={at_us})"))
    return found


def lost_write() -> tuple[list[MessageRecord], Anomaly]:
    """A leader that is cut off answers a write although both copies are lost; the new leader does not know of it."""
    messages = [
        MessageRecord("client-0", "cyrene", "Write", WRITE_US, WRITE_US + 200, "Write(key='k1')"),
        MessageRecord("cyrene", "athens", "Copy", WRITE_US + 1_300, -1, "Copy(key='k1')"),
        MessageRecord("cyrene", "byzantium", "Copy", WRITE_US + 1_300, -1, "Copy(key='k1')"),
        MessageRecord("cyrene", "client-0", "Done", WRITE_US + 1_300, WRITE_US + 1_500),
        MessageRecord("client-0", "cyrene", "Next", WRITE_US + 1_500, WRITE_US + 1_700, "Next(key='k2')"),
        MessageRecord("athens", "byzantium", "Vote", WRITE_US + 200_000, WRITE_US + 201_000),
        MessageRecord("byzantium", "athens", "Voted", WRITE_US + 201_000, WRITE_US + 202_000),
        MessageRecord("client-9", "athens", "Read", WRITE_US + 210_000, WRITE_US + 210_300, "Read(key='k9')"),
        MessageRecord("client-1", "athens", "Read", READ_US, READ_US + 200, "Read(key='k1')"),
        MessageRecord("athens", "byzantium", "Beat", READ_US + 200, READ_US + 900, "Beat(sent=1)"),
        MessageRecord("byzantium", "athens", "Echo", READ_US + 900, READ_US + 1_600, "Echo(sent=1)"),
        MessageRecord("athens", "client-1", "Answer", READ_US + 1_600, READ_US + 1_800, "nothing"),
        *beats("athens", "byzantium", 510_000, 25),
        *beats("cyrene", "athens", 520_000, 25, cut=True),
    ]
    history = History()
    first = history.invoke(Operation(0, "write", "k1", 1), WRITE_US, 0, "cyrene")
    history.complete(first, ok(), WRITE_US + 1_500)
    second = history.invoke(Operation(1, "read", "k1", None), READ_US, 1, "athens")
    history.complete(second, ok(), READ_US + 1_800)
    rows = (history.row(first), history.row(second))
    return messages, Anomaly(rows, WRITE_US, READ_US + 1_800, key="k1")


def chosen(limit: int = 40) -> MessageChoice:
    messages, anomaly = lost_write()
    return choose_messages(messages, NODES, anomaly, limit)


def test_the_lost_copies_of_the_write_and_the_vote_after_it_are_drawn() -> None:
    assert [message.name for message in chosen().drawn] == [
        "Write", "Copy", "Copy", "Done", "Vote", "Voted", "Read", "Beat", "Echo", "Answer",
    ]  # fmt: skip


def test_the_next_request_of_a_client_is_not_of_the_operation_that_was_answered_at_that_moment() -> None:
    assert "Next" not in [message.name for message in chosen().drawn]


def test_a_heartbeat_that_an_operation_asked_for_is_drawn_and_the_others_are_counted() -> None:
    choice = chosen()
    messages, anomaly = lost_write()
    meanwhile = [message for message in messages if anomaly.start_us <= message.send_us <= anomaly.stop_us]
    beaten = [message for message in meanwhile if message.name in ("Beat", "Echo")]
    assert choice.heartbeats == len(beaten) - 2
    assert choice.heartbeats_lost == sum(message.receive_us < 0 for message in beaten)
    assert choice.sent == len(meanwhile)


def test_what_is_left_out_is_said_with_the_lost_ones() -> None:
    assert MessageChoice().left_out == ""
    assert MessageChoice(heartbeats=1).left_out == "1 heartbeat is not drawn."
    choice = MessageChoice(heartbeats=1_200, heartbeats_lost=7, others=40)
    assert choice.left_out == "1,200 heartbeats (7 lost) and 40 other messages are not drawn."
    assert MessageChoice(others=2, others_lost=1).left_out == "2 messages (1 lost) are not drawn."


def test_a_small_limit_costs_the_context_and_no_message_of_the_operations_or_of_what_they_caused() -> None:
    names = [message.name for message in chosen(limit=4).drawn]
    assert names == ["Write", "Copy", "Copy", "Done", "Read", "Beat", "Echo", "Answer"]


def test_of_a_very_long_time_the_ends_are_looked_at_and_all_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages, anomaly = lost_write()
    rows = (anomaly.rows[0], msgspec.structs.replace(anomaly.rows[1], invoke_us=90 * READ_US, complete_us=91 * READ_US))
    long = dataclasses.replace(anomaly, rows=rows, stop_us=91 * READ_US)
    between = [MessageRecord("athens", "byzantium", "Vote", 40_000_000 + at_us, -1) for at_us in range(100)]
    whole = choose_messages([*messages, *between], NODES, long)
    monkeypatch.setattr(message_choice, "LOOKED_AT_MAX", 100)
    partly = choose_messages([*messages, *between], NODES, long)
    assert partly.sent == whole.sent
    lost_then = sum(message.receive_us < 0 for message in partly.drawn) + partly.heartbeats_lost + partly.others_lost
    assert lost_then == sum(message.receive_us < 0 for message in [*messages, *between] if message.send_us >= WRITE_US)
    assert {"Write", "Copy", "Done"} <= {message.name for message in partly.drawn}


def test_a_breach_inside_a_node_is_shown_with_the_chain_of_messages_that_led_there() -> None:
    messages = [
        MessageRecord("athens", "byzantium", "Order", 1_000, 2_000),
        MessageRecord("byzantium", "cyrene", "Passed", 2_000, 3_000),
        MessageRecord("athens", "cyrene", "Beside", 2_500, 2_900),
        MessageRecord("cyrene", "athens", "Later", 3_500, 3_600),
    ]
    choice = choose_messages(messages, NODES, Anomaly((), 900, 4_000, moment_us=3_000, node="cyrene"), 1)
    assert [message.name for message in choice.drawn] == ["Order", "Passed"]
    assert choice.left_out == "2 messages are not drawn."


def test_the_past_is_what_a_chain_of_messages_leads_from() -> None:
    messages = [
        MessageRecord("a", "b", "first", 10, 20),
        MessageRecord("c", "b", "too late", 10, 40),
        MessageRecord("d", "b", "lost", 10, -1),
        MessageRecord("b", "z", "second", 30, 50),
        MessageRecord("z", "b", "away", 60, 70),
    ]
    assert past_of(messages, {"z": 50}) == {0, 3}
    assert past_of(messages, {"z": 49}) == set()


def test_the_future_is_what_a_chain_of_messages_leads_to_and_holds_lost_ones() -> None:
    messages = [
        MessageRecord("a", "b", "before", 5, 8),
        MessageRecord("a", "b", "first", 10, 20),
        MessageRecord("b", "c", "too early", 15, 25),
        MessageRecord("b", "c", "second", 20, 30),
        MessageRecord("c", "d", "lost", 40, -1),
        MessageRecord("d", "a", "unaware", 50, 60),
    ]
    assert future_of(messages, {"a": 10}) == {1, 3, 4}


def test_what_is_sent_a_flush_later_is_triggered_unless_something_else_triggered_it() -> None:
    messages = [
        MessageRecord("client-0", "athens", "Write", 0, 100),
        MessageRecord("cyrene", "athens", "Ask", 0, 900),
        MessageRecord("athens", "cyrene", "Answer", 900, 1_000),
        MessageRecord("athens", "byzantium", "Copy", 1_200, 2_000),
        MessageRecord("athens", "byzantium", "Much later", 90_000, 91_000),
    ]
    triggers = Triggers(messages)
    assert triggers.after("athens", 100) == [3]
    assert triggers.after("athens", 900) == [2, 3]
    assert triggers.before("byzantium", 2_000) == [3]


def test_messages_that_differ_in_more_than_numbers_or_come_unevenly_are_no_heartbeats() -> None:
    even = beats("athens", "byzantium", 0, 10)
    uneven = [
        MessageRecord("cyrene", "athens", "Copy", at_us, at_us + 9, "Copy(1)")
        for at_us in (2**number for number in range(4, 24))
    ]
    different = [
        MessageRecord("cyrene", "byzantium", "Word", at_us, at_us + 9, "x" * number)
        for number, at_us in enumerate(range(10, 1_000_000, 50_000))
    ]
    messages = [*even, *uneven, *different]
    assert heartbeats_of(messages, Triggers(messages), NODES) == set(range(len(even)))


def apart(message: MessageRecord, number: int) -> MessageRecord:
    """Return the message as a real world tells it: no two steps at one moment."""
    received_us = message.receive_us if message.receive_us < 0 else message.receive_us + 40
    return msgspec.structs.replace(message, send_us=message.send_us + 60 + number % 7, receive_us=received_us)


def test_where_times_are_not_exact_the_same_messages_decide_and_heartbeats_are_folded() -> None:
    messages, anomaly = lost_write()
    messages = [apart(message, number) for number, message in enumerate(messages)]
    late = dataclasses.replace(anomaly, start_us=anomaly.start_us, stop_us=anomaly.stop_us + 500)
    rows = tuple(msgspec.structs.replace(row, complete_us=row.complete_us + 100) for row in anomaly.rows)
    choice = choose_messages(messages, NODES, dataclasses.replace(late, rows=rows), exact=False)
    names = [message.name for message in choice.drawn]
    for name, number in (("Write", 1), ("Copy", 2), ("Done", 1), ("Read", 1), ("Answer", 1)):
        assert names.count(name) == number, name
    assert "Echo(sent=1)" in [message.summary for message in choice.drawn]
    assert choice.heartbeats


def test_a_copy_that_came_by_after_the_answer_is_drawn_where_times_are_not_exact() -> None:
    messages, anomaly = lost_write()
    done_us = anomaly.rows[0].complete_us
    late = MessageRecord("cyrene", "athens", "Copy", done_us + 300, -1, "Copy(key='k1')")
    assert late in choose_messages([*messages, late], NODES, anomaly, limit=1, exact=False).drawn
    assert late not in choose_messages([*messages, late], NODES, anomaly, limit=1).drawn


def test_heartbeats_told_to_one_peer_after_the_other_are_folded_where_times_are_not_exact() -> None:
    messages = [
        MessageRecord("athens", peer, "Beat", at_us + after_us, at_us + after_us, f"Beat(sent={at_us})")
        for at_us in range(0, 1_000_000, 50_000)
        for peer, after_us in (("byzantium", 0), ("cyrene", 73))
    ]
    assert heartbeats_of(messages, Triggers(messages, exact=False), NODES) == set(range(len(messages)))
