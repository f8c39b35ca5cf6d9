"""The sequence diagram in plain text."""

from __future__ import annotations

from xml.etree import ElementTree

from report_samples import record_operation

from faultline.harness.history import History
from faultline.harness.outcome import ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.harness.verdict import Finding
from faultline.reports.message_choice import message_end
from faultline.reports.selection import shown_of, shown_rows
from faultline.reports.sequence_text import sequence_lines
from faultline.reports.space_time import space_time_svg

PLAN = Plan(
    system="consistent-core",
    workload="register",
    seed=1,
    nodes=("athens", "byzantium"),
    workers=1,
    operations=(),
    heal_us=0,
    end_us=0,
)


def a_run(*messages: MessageRecord, faults: tuple[FaultInterval, ...] = ()) -> RunRecord:
    history = History()
    record_operation(history, 2, "write", 10, 1_000, 2_000, ok())
    return RunRecord(plan=PLAN, world="simulated", history=history, messages=list(messages), faults=list(faults))


CLIENT = message_end(2)


def drawn(record: RunRecord, **how: int) -> list[str]:
    return sequence_lines(shown_rows(record, [0], 2_000, **how))


def test_an_arrow_runs_from_the_sender_to_the_receiver_across_the_lines_between() -> None:
    (line,) = (text for text in drawn(a_run(MessageRecord(CLIENT, "byzantium", "Ask", 1_200, 1_300))) if "Ask" in text)
    assert line.split()[2] == "├───────────┼───────────▶"
    (line,) = (
        text for text in drawn(a_run(MessageRecord("byzantium", CLIENT, "Answer", 1_400, 1_500))) if "Ans" in text
    )
    assert line.split()[2] == "◀───────────┼───────────┤"


def test_a_lost_message_ends_in_a_cross_and_says_so() -> None:
    asked = MessageRecord(CLIENT, "athens", "Please", 1_000, 1_200)
    lines = drawn(a_run(asked, MessageRecord("athens", "byzantium", "Ask", 1_200, -1)))
    (line,) = (text for text in lines if "Ask" in text)
    assert line.rstrip().endswith("Ask, lost")
    assert "├───────────✕" in line


def test_lines_stand_in_the_order_of_time_between_invocation_and_answer() -> None:
    late = MessageRecord("athens", CLIENT, "Late", 1_900, 1_950)
    early = MessageRecord(CLIENT, "athens", "Early", 1_100, 1_200)
    words = [line.split()[-1] for line in drawn(a_run(late, early))[1:]]
    assert words == ["10", "Early", "Late", "answered"]


def test_all_messages_of_the_operation_are_drawn_and_unrelated_ones_counted() -> None:
    own = [MessageRecord(CLIENT, "athens", f"M{number}", 1_000 + number, 1_100 + number) for number in range(30)]
    unrelated = [MessageRecord("client-7", "byzantium", "Else", 1_500, 1_600 if number else -1) for number in range(3)]
    lines = drawn(a_run(*own, *unrelated), messages_max=5)
    assert lines[-1] == "… 3 messages (1 lost) are not drawn."
    assert sum("▶" in line for line in lines) == 30


def test_a_fault_in_force_is_named() -> None:
    cut = FaultInterval(kind="partition", target="one", start_us=500, stop_us=3_000, nodes=("athens",))
    assert any("fault: partition" in line for line in drawn(a_run(faults=(cut,))))


def test_without_operations_there_is_no_diagram() -> None:
    assert sequence_lines(shown_rows(a_run(), [])) == []


def test_a_broken_invariant_in_a_run_without_operations_is_drawn_by_the_steps_of_its_node_before_it() -> None:
    record = RunRecord(
        plan=PLAN,
        world="simulated",
        history=History(),
        messages=[
            MessageRecord("athens", "byzantium", "Early", 100_000, 100_500),
            MessageRecord("athens", "byzantium", "VoteRequest", 1_800_000, 1_801_000),
            MessageRecord("byzantium", "athens", "VoteResponse", 1_801_500, 1_803_000),
            MessageRecord("athens", "byzantium", "Late", 2_500_000, 2_501_000),
        ],
    )
    breach = Finding(
        checker="invariants", anomaly="LDR-I2", sentence="byzantium voted twice.", node="byzantium", time_us=1_803_000
    )
    lines = sequence_lines(shown_of(record, breach))
    assert [line.split()[-1] for line in lines[1:]] == ["VoteRequest", "VoteResponse"]
    figure = ElementTree.fromstring(space_time_svg(shown_of(record, breach)))
    assert [each.text for each in figure.iter() if (each.text or "").startswith("VoteRe")] != []
