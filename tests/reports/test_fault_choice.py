"""The faults that are named beside an anomaly, and the words about each."""

from __future__ import annotations

from report_samples import NODES, judgement, plan, record_operation, violating_run

from faultline.harness.history import History
from faultline.harness.outcome import ok
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.reports.fault_choice import FaultChoice, Needed, choose_faults, needed_for
from faultline.reports.terminal import run_lines


def alone(node: str, start_us: int, stop_us: int, leader: str) -> FaultInterval:
    """A partition that cuts `node` off, while `leader` led."""
    links = tuple((a, b) for a in NODES for b in NODES if (a == node) != (b == node))
    roles = tuple("leader" if each == leader else "follower" for each in NODES)
    return FaultInterval(
        kind="partition", target="one", start_us=start_us, stop_us=stop_us, nodes=NODES, links=links, roles=roles,
        description=f"{node} alone",
    )  # fmt: skip


def run_with(*happened: FaultInterval) -> RunRecord:
    """Two writes through athens from 8.8 to 8.9 s."""
    history = History()
    for number in (0, 1):
        start_us = 8_800_000 + number * 50_000
        record_operation(history, 0, "write", number, start_us, start_us + 50_000, ok(), node="athens")
    return RunRecord(plan=plan(), world="hosts", history=history, faults=list(happened))


def choice(record: RunRecord, needed: Needed | None = None) -> FaultChoice:
    rows = [record.history.row(row) for row in range(len(record.history))]
    return choose_faults(record, rows, 8_800_000, 8_900_000, needed)


def test_a_partition_that_deposed_the_leader_seconds_before_is_named_when_the_one_in_force_struck_another_node() -> (
    None
):
    guilty, other = alone("athens", 690_000, 3_300_000, "athens"), alone("cyrene", 6_410_000, 9_410_000, "cyrene")
    found = choice(run_with(guilty, other))
    assert (found.earlier, found.meanwhile) == ((guilty,), (other,))
    assert found.since_us == 690_000
    first, second = found.sentences()
    assert first.endswith(
        "athens alone, 0.690 s to 3.300 s (2.61 s); ended 5.50 s before the first of these operations"
    )
    assert second == "partition: cyrene alone, 6.410 s to 9.410 s (3.00 s)"


def test_a_strike_on_an_earlier_leader_is_not_named_when_another_leader_was_struck_since() -> None:
    first, second = alone("athens", 690_000, 3_300_000, "athens"), alone("byzantium", 4_000_000, 5_000_000, "byzantium")
    other = alone("cyrene", 6_410_000, 9_410_000, "cyrene")
    assert choice(run_with(first, second, other)).earlier == ()


def test_nothing_earlier_is_named_when_a_fault_in_force_struck_the_node_of_the_operations() -> None:
    before, meanwhile = alone("athens", 690_000, 3_300_000, "athens"), alone("athens", 8_000_000, 9_000_000, "athens")
    found = choice(run_with(before, meanwhile))
    assert (found.earlier, found.meanwhile) == ((), (meanwhile,))


def test_the_last_fault_that_struck_a_leader_is_named_when_none_was_in_force() -> None:
    first, last = alone("cyrene", 1_000_000, 2_000_000, "cyrene"), alone("byzantium", 3_000_000, 4_000_000, "byzantium")
    calm = FaultInterval(
        kind="pause", target="one", start_us=5_000_000, stop_us=6_000_000, nodes=("cyrene",), roles=("follower",)
    )
    found = choice(run_with(first, last, calm))
    assert (found.earlier, found.meanwhile) == ((last,), ())
    assert found.silence == "No fault was in force meanwhile."


def test_of_faults_in_force_the_needed_one_is_said_to_be_needed() -> None:
    record, judged = violating_run()
    judged.detail["minimal"] = {
        "signature": judged.findings[0].signature, "needs": [["partition", 1_900_000]], "complete": True,
        "operations": 4, "operations_before": 9, "faults": 1, "faults_before": 4, "replay": "faultline replay x",
    }  # fmt: skip
    lines = "\n".join(run_lines(record, judged))
    assert "partition of athens | byzantium cyrene, 1.900 s to 2.480 s (580 ms); the counterexample needs it" in lines
    assert "pause: cyrene, 2.060 s to 2.092 s (32.0 ms); it shows without this one" in lines


def test_needed_is_known_of_the_finding_that_was_shrunk_to_the_end_and_of_no_other() -> None:
    _, judged = violating_run()
    first, second = judged.findings
    known = {"signature": first.signature, "needs": [["partition", 1_900_000]], "complete": True}
    judged.detail["minimal"] = known
    assert needed_for(judged, first) == Needed(frozenset({("partition", 1_900_000)}))
    assert needed_for(judged, second) is None
    judged.detail["minimal"] = known | {"complete": False}
    assert needed_for(judged, first) is None
    assert needed_for(judgement([first]), first) is None


def test_a_shrunken_run_that_shows_another_instance_says_nothing_of_this_one() -> None:
    late = alone("athens", 9_500_000, 9_900_000, "athens")
    found = choice(
        run_with(late, alone("athens", 8_000_000, 9_000_000, "athens")), Needed(frozenset({("partition", 9_500_000)}))
    )
    assert found.needed is None


def test_a_run_that_shows_it_without_faults_is_said_to() -> None:
    found = choice(run_with(), Needed(frozenset()))
    assert found.silence == "No fault was in force meanwhile, and none is needed: it shows in a run without faults."
    assert found.sentences() == []


def test_faults_that_are_not_named_are_counted() -> None:
    record = run_with(*(alone("athens", 8_000_000 + number, 9_000_000, "athens") for number in range(15)))
    found = choice(record)
    assert len(found.meanwhile) == 12
    assert found.sentences(limit=4)[-1] == "and 11 further faults"
