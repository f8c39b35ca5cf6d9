"""Stale messages in figures, in the choice of what is drawn, and among causes."""

from __future__ import annotations

import pytest
from report_samples import record_operation

from faultline.harness.causes import Causes, NecessaryPart
from faultline.harness.history import History
from faultline.harness.outcome import ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import MessageRecord, RunRecord
from faultline.harness.world.simulated.counterfactual import WorldEvent
from faultline.reports.causality import Triggers, heartbeats_of
from faultline.reports.causes import causes_lines
from faultline.reports.message_choice import Anomaly, choose_messages, message_end
from faultline.reports.selection import Shown, shown_rows
from faultline.reports.sequence_text import sequence_lines
from faultline.reports.space_time import space_time_svg

NODES = ("athens", "byzantium")
PLAN = Plan(system="consistent-core", workload="register", seed=1, nodes=NODES, workers=1, operations=(), heal_us=0,
    end_us=0)  # fmt: skip
CLIENT = message_end(2)
BEGAN_US, ENDED_US = 5_000_000, 5_004_000
ASKED = MessageRecord(CLIENT, "athens", "Ask", BEGAN_US, BEGAN_US + 200)
ANSWERED = MessageRecord("athens", CLIENT, "Answer", BEGAN_US + 2_000, ENDED_US)


def order(stale: bool = True) -> MessageRecord:
    """An order of the time before, which reaches athens between question and answer."""
    return MessageRecord("byzantium", "athens", "Order", 1_000_000, BEGAN_US + 1_000, "Order(1)", stale)


def shown(*messages: MessageRecord) -> Shown:
    history = History()
    record_operation(history, 2, "write", 10, BEGAN_US, ENDED_US, ok())
    record = RunRecord(plan=PLAN, world="simulated", history=history, messages=[ASKED, ANSWERED, *messages])
    return shown_rows(record, [0], ENDED_US)


def line_of(name: str, scene: Shown) -> str:
    return next((line for line in sequence_lines(scene) if name in line), "")


def test_a_stale_message_is_drawn_where_it_arrives_and_says_when_it_was_sent() -> None:
    scene = shown(order())
    line = line_of("Order", scene)
    assert line.startswith("5.001 s") and line.endswith("Order, stale: sent 1.0000 s")
    assert [message.name for message in scene.messages.drawn] == ["Order", "Ask", "Answer"]


def test_a_message_that_is_not_stale_and_was_sent_before_the_shown_time_is_not_drawn() -> None:
    assert not line_of("Order", shown(order(stale=False)))


def test_a_stale_message_that_is_sent_in_the_shown_time_and_arrives_after_it_says_when() -> None:
    leaves = MessageRecord("athens", "byzantium", "Copy", BEGAN_US + 200, 9_000_000, "Copy(1)", True)
    line = line_of("Copy", shown(leaves))
    assert line.startswith("5.0002 s") and line.endswith("Copy, stale: received 9.0000 s")


@pytest.mark.parametrize("stale", [True, False])
def test_the_drawing_names_a_stale_message_and_draws_it_otherwise(stale: bool) -> None:
    copy = MessageRecord("athens", "byzantium", "Copy", BEGAN_US + 200, BEGAN_US + 900, "Copy(1)", stale)
    svg = str(space_time_svg(shown(copy)))
    assert ("message stale" in svg, "stale, received" in svg) == (stale, stale)


def test_a_stale_message_comes_before_others_where_there_is_room_for_few() -> None:
    others = [MessageRecord("byzantium", "athens", f"Other{n}", BEGAN_US + n, BEGAN_US + 1_500 + n) for n in range(20)]
    messages = [ASKED, ANSWERED, *others, order()]
    anomaly = Anomaly(tuple(shown().rows), BEGAN_US, ENDED_US)
    choice = choose_messages(messages, NODES, anomaly, 5)
    assert order() in choice.drawn
    assert choice.others > 10


def test_a_stale_heartbeat_is_no_heartbeat() -> None:
    beats = [
        MessageRecord("athens", "byzantium", "Beat", at, at + 9, f"Beat({at})") for at in range(0, 500_000, 50_000)
    ]
    beats.append(MessageRecord("athens", "byzantium", "Beat", 500_000, 4_000_000, "Beat(500000)", True))
    assert heartbeats_of(beats, Triggers(beats), NODES) == set(range(len(beats) - 1))


def cause(event: WorldEvent) -> str:
    parts = (NecessaryPart(kind=event.kind, time_us=event.time_us, in_time=True, event=event),)
    causes = Causes(signature="s", sentence="It broke.", visible_us=ENDED_US, later_us=30_000, parts=parts, counts=(),
        runs=2, complete=True)  # fmt: skip
    record = RunRecord(plan=PLAN, world="simulated", history=History())
    return next(line for line in causes_lines(causes, record) if "byzantium → athens" in line)


@pytest.mark.parametrize("stale", [True, False])
def test_a_message_among_the_causes_says_that_it_is_stale(stale: bool) -> None:
    event = WorldEvent(kind="message", number=7, time_us=BEGAN_US, place="athens", name="Order", source="byzantium",
        sent_us=1_000_000, summary="Order(1)", stale=stale)  # fmt: skip
    assert ("stale: sent 1.000 s" in cause(event)) == stale


def test_a_reset_among_the_causes_says_that_the_connection_breaks() -> None:
    event = WorldEvent(kind="reset", number=7, time_us=BEGAN_US, place="athens", source="byzantium")
    assert "the connection breaks" in cause(event)
