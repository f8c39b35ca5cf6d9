"""The checker of dependent writes: no to each anomaly by its name, yes to its twin, vacuous without a read."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.classic.sessions import MONOTONIC_READS, READ_YOUR_WRITES
from faultline.checkers.dependent_writes import CAUSAL_REVERSE, DependentWritesChecker
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.verdict import Verdict

Step = tuple[int, str, str, Any, Outcome]
X1, X2 = [1, None], [2, None]
Y3 = [3, X2]


def story(*steps: Step) -> History:
    """Operations one after the other: (process, f, key, value, outcome)."""
    history = History()
    for number, (process, f, key, value, outcome) in enumerate(steps):
        row = history.invoke(Operation(process, f, f"c/{key}", value), 10 * number, process, "athens")
        history.complete(row, outcome, 10 * number + 5)
    return history


def write(process: int, key: str, value: Any, outcome: Outcome | None = None) -> Step:
    return (process, "write", key, value, outcome or ok(None))


def read(process: int, key: str, value: Any) -> Step:
    return (process, "read", key, None, ok(value))


def anomalies(history: History, **options: bool) -> list[str]:
    return [finding.anomaly for finding in DependentWritesChecker(**options).check(history).findings]


CHAIN = (write(0, "0", X1), write(0, "0", X2), read(1, "0", X2), write(1, "1", Y3))


@pytest.mark.parametrize("old", [X1, None])
def test_a_client_that_read_the_effect_must_not_miss_its_cause(old: Any) -> None:
    history = story(*CHAIN, read(2, "1", Y3), read(2, "0", old))
    result = DependentWritesChecker().check(history)
    assert [finding.anomaly for finding in result.findings] == [CAUSAL_REVERSE]
    assert result.findings[0].operations == ((0,) if old else ()) + (1, 2, 3, 4, 5)


@pytest.mark.parametrize("seen", [X2, [4, None]])
def test_the_cause_or_a_newer_value_is_fine(seen: Any) -> None:
    history = story(*CHAIN, write(0, "0", [4, None]), read(2, "1", Y3), read(2, "0", seen))
    assert DependentWritesChecker().check(history).verdict is Verdict.PASS


def test_a_client_that_did_not_read_the_effect_may_read_an_old_cause() -> None:
    assert anomalies(story(*CHAIN, read(2, "1", Y3), read(3, "0", X1))) == []


def test_a_cause_that_another_client_had_read_counts_across_clients_only() -> None:
    told = (write(0, "0", X1), write(0, "0", X2), read(1, "0", X2), write(3, "1", Y3))
    history = story(*told, read(2, "1", Y3), read(2, "0", X1))
    assert anomalies(history) == []
    assert anomalies(history, across_clients=True) == [CAUSAL_REVERSE]


def test_a_client_that_writes_what_another_one_told_it_knows_the_cause_itself() -> None:
    history = story(write(0, "0", X1), write(0, "0", X2), write(1, "1", Y3), read(1, "0", X1))
    assert anomalies(history) == []
    (finding,) = DependentWritesChecker(across_clients=True).check(history).findings
    assert (finding.anomaly, finding.operations) == (CAUSAL_REVERSE, (0, 1, 2, 3))
    assert "after another client had told it of [2, null]" in finding.sentence


def test_knowledge_passes_through_the_effect_of_an_effect() -> None:
    chain = (*CHAIN, read(2, "1", Y3), write(2, "2", [5, Y3]))
    assert anomalies(story(*chain, read(3, "2", [5, Y3]), read(3, "0", X1))) == [CAUSAL_REVERSE]
    assert anomalies(story(*chain, read(3, "2", [5, Y3]), read(3, "0", X2))) == []


def test_a_session_reads_its_own_writes_and_does_not_go_back() -> None:
    assert anomalies(story(write(0, "0", X1), write(0, "0", X2), read(0, "0", X1))) == [READ_YOUR_WRITES]
    assert anomalies(story(write(0, "0", X1), write(0, "0", X2), read(1, "0", X2), read(1, "0", X1))) == [
        MONOTONIC_READS
    ]
    assert anomalies(story(write(0, "0", X1), read(1, "0", X1), write(0, "0", X2), read(1, "0", X2))) == []


@pytest.mark.parametrize("first", [info("timeout"), fail("refused")])
def test_a_write_that_was_not_acknowledged_is_not_called_older(first: Outcome) -> None:
    history = story(write(0, "0", X1, first), write(1, "0", X2), read(1, "0", X1))
    assert READ_YOUR_WRITES not in anomalies(history)


def handed(answer: Any, seen: Any, key: str = "0") -> Step:
    return (2, "read-after", key, [None, answer], ok(seen))


@pytest.mark.parametrize(("answer", "seen", "expected"), [(9, X1, [READ_YOUR_WRITES]), (9, X2, []), (None, X1, [])])
def test_a_client_that_was_handed_the_answer_to_a_write_sees_it(answer: Any, seen: Any, expected: list[str]) -> None:
    history = story(write(0, "0", X1, ok(8)), write(0, "0", X2, ok(9)), handed(answer, seen))
    assert anomalies(history) == expected


def test_the_answer_to_a_write_hands_over_what_its_writer_knew() -> None:
    chain = (write(0, "0", X1), write(0, "0", X2), read(1, "0", X2), write(1, "1", Y3, ok(9)))
    assert anomalies(story(*chain, handed(9, Y3, "1"), read(2, "0", X1))) == [READ_YOUR_WRITES]
    assert anomalies(story(*chain, handed(9, X1))) == [READ_YOUR_WRITES]
    assert anomalies(story(*chain, handed(9, X2))) == []


def test_an_answer_that_two_writes_had_hands_nothing_over() -> None:
    history = story(write(0, "0", X1, ok(9)), write(0, "0", X2, ok(9)), handed(9, X1))
    assert anomalies(history) == []


@pytest.mark.parametrize(
    ("steps", "anomaly"),
    [
        ((read(0, "0", X1),), "garbage-read"),
        ((write(0, "0", X1, fail("refused")), read(0, "0", X1)), "aborted-read"),
        ((read(0, "0", X1), write(1, "0", X1)), "future-read"),
    ],
)
def test_values_that_cannot_have_been_there_are_accused(steps: tuple[Step, ...], anomaly: str) -> None:
    assert anomalies(story(*steps)) == [anomaly]


def test_a_run_in_which_no_effect_was_read_is_vacuous() -> None:
    assert DependentWritesChecker().check(story(*CHAIN)).verdict is Verdict.VACUOUS
    assert DependentWritesChecker().check(History()).verdict is Verdict.VACUOUS


def test_a_value_written_twice_makes_it_unknown() -> None:
    history = story(*CHAIN, write(3, "0", X2), read(2, "1", Y3), read(2, "0", X1))
    assert DependentWritesChecker().check(history).verdict is Verdict.UNKNOWN


def test_other_shapes_and_functions_are_refused() -> None:
    with pytest.raises(UsageError, match="wrote 7"):
        DependentWritesChecker().check(story(write(0, "0", 7)))
    with pytest.raises(UsageError, match="append"):
        DependentWritesChecker().check(story((0, "append", "0", X1, ok(None))))
