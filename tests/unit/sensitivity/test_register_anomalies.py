"""Anomalies of registers, on histories whose figures are known by construction."""

from __future__ import annotations

from typing import Any

from told_histories import FAULT, record_of

from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Insertion, Sensitivity, probe
from faultline.registry import anomalies_of, checkers_of, load_workload
from faultline.sensitivity.registers import registers, registers_of_sessions

KEYS = 40


def figures(record: RunRecord, workload: str = "register") -> dict[str, Sensitivity]:
    found = load_workload(workload)
    probed = probe(record, checkers_of(found), anomalies_of(found), insertions=100)
    return {figure.anomaly: figure for figure in probed}


def anomaly(record: RunRecord, name: str, family: Any = registers) -> Anomaly:
    found: Anomaly = next(each for each in family(record) if each.name == name)
    return found


def insertions(record: RunRecord, name: str, family: Any = registers) -> list[Insertion]:
    found = anomaly(record, name, family)
    made = [found.insert(place, chance) for place in found.places for chance in range(3)]
    return [insertion for insertion in made if insertion is not None]


def run_with(final_reads: int) -> RunRecord:
    """Each of KEYS keys is written twice and read, then faults strike, and so many of the keys are read at the end."""
    operations: list[Any] = []
    for number in range(KEYS):
        key = f"k{number}"
        operations += [(1, "write", key, 1, None), (2, "read", key, None, 1), (1, "write", key, 2, None)]
        operations += [(3, "read", key, None, 2)]
    operations += [FAULT, (1, "read", "unwritten", None, None), FAULT]
    operations += [(4, "read", f"k{number}", None, 2) for number in range(final_reads)]
    return record_of(*operations)


def test_a_pass_whose_final_reads_look_at_no_written_key_is_worth_nothing_against_lost_writes() -> None:
    lost = figures(run_with(final_reads=0))["lost-write"]
    assert lost == Sensitivity(anomaly="lost-write", inserted=KEYS, shown=0)


def test_a_pass_that_reads_every_written_key_after_the_faults_shows_all_lost_writes() -> None:
    lost = figures(run_with(final_reads=KEYS))["lost-write"]
    assert lost == Sensitivity(anomaly="lost-write", inserted=KEYS, shown=KEYS)


def test_a_pass_that_reads_half_of_the_keys_shows_half_of_the_lost_writes() -> None:
    lost = figures(run_with(final_reads=KEYS // 2))["lost-write"]
    assert (lost.inserted, lost.shown) == (KEYS, KEYS // 2)


def test_a_write_that_was_overwritten_before_any_fault_cannot_be_lost_in_one() -> None:
    record = record_of((1, "write", "k", 1, None), (1, "write", "k", 2, None), FAULT, (2, "read", "k", None, 2))
    changes = [insertion.changes for insertion in insertions(record, "lost-write")]
    assert changes and all({row: answer.result for row, answer in each.items()} == {2: 1} for each in changes)


def test_a_lost_write_changes_the_reads_after_the_moment_until_the_next_write_and_no_others() -> None:
    record = record_of(
        (1, "write", "k", 1, None),
        (2, "read", "k", None, 1),
        FAULT,
        (2, "read", "k", None, 1),
        (3, "read", "k", None, 1),
        (1, "write", "k", 2, None),
        (2, "read", "k", None, 2),
    )
    first = anomaly(record, "lost-write").insert(0, 0)
    assert first is not None
    assert {row: answer.result for row, answer in first.changes.items()} == {2: None, 3: None}


def test_a_compare_and_set_on_a_lost_value_is_refused_and_what_it_wrote_is_not_seen() -> None:
    record = record_of(
        (1, "write", "k", 1, None),
        (1, "write", "k", 2, None),
        FAULT,
        (1, "cas", "k", [2, 3], None),
        (2, "read", "k", None, 3),
        (3, "cas", "k", [1, 4], None, "fail", "cas-mismatch"),
    )
    made = anomaly(record, "lost-write").insert(1, 0)
    assert made is not None
    told = {row: (answer.outcome, answer.result) for row, answer in made.changes.items()}
    assert told == {2: ("fail", None), 3: ("ok", 1), 4: ("ok", None)}


def test_a_run_without_faults_loses_writes_as_they_are_acknowledged() -> None:
    record = record_of((1, "write", "k", 1, None), (2, "read", "k", None, 1))
    (first, *_) = insertions(record, "lost-write")
    assert {row: answer.result for row, answer in first.changes.items()} == {1: None}


def test_a_stale_read_answers_what_was_certainly_overwritten() -> None:
    record = record_of((1, "write", "k", 1, None), (1, "write", "k", 2, None), (2, "read", "k", None, 2))
    (first, *_) = insertions(record, "stale-read")
    assert {row: answer.result for row, answer in first.changes.items()} == {2: 1}
    assert figures(record)["stale-read"].shown == 1


def test_a_read_that_may_be_old_is_no_place_for_a_stale_one() -> None:
    record = record_of((1, "write", "k", 1, None), (1, "write", "k", 2, None), (2, "read", "k", None, 2))
    assert insertions(record, "stale-read", registers_of_sessions) == []
    own = record_of((1, "write", "k", 1, None), (1, "write", "k", 2, None), (1, "read", "k", None, 2))
    assert insertions(own, "stale-read", registers_of_sessions) != []


def test_an_overwritten_value_comes_back_at_a_fault_until_the_next_write() -> None:
    record = record_of(
        (1, "write", "k", 1, None),
        (1, "write", "k", 2, None),
        FAULT,
        (2, "read", "k", None, 2),
        (1, "write", "k", 3, None),
        (2, "read", "k", None, 3),
    )
    made = anomaly(record, "resurrected-write").insert(0, 0)
    assert made is not None and {row: answer.result for row, answer in made.changes.items()} == {2: 1}


def test_a_fault_that_did_not_take_effect_is_no_moment() -> None:
    record = run_with(final_reads=0)
    for event in record.history.faults:
        event.value["applied"] = "the node was not there"
    shown = figures(record)["lost-write"].shown
    assert shown > 0, "without any fault the moment is the acknowledgement, and a read follows each write"
