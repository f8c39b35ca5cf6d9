"""The probe itself: what counts as inserted and as shown, how much is asked, and what is told when it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from told_histories import FAULT, record_of

from faultline.harness.errors import HarnessError
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import (
    INSERTIONS_MAX,
    SAMPLED_EVERY,
    Anomaly,
    Answer,
    Insertion,
    Sensitivity,
    changed_record,
    is_sampled,
    probe,
    sensitivity_sentence,
    summed,
)
from faultline.harness.verdict import CheckResult, Verdict


class Seven:
    """Refuses histories in which 7 was answered."""

    name = "seven"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def check(self, history: History, run: RunRecord) -> CheckResult:
        self.asked.append(len(history))
        verdict = Verdict.VIOLATION if 7 in history.result else Verdict.PASS
        return CheckResult(checker=self.name, verdict=verdict, sentence="")


class Failing(Seven):
    def check(self, history: History, run: RunRecord) -> CheckResult:
        raise ValueError("too many sevens")


class Contradicted(Seven):
    def check(self, history: History, run: RunRecord) -> CheckResult:
        raise HarnessError("the referee disagrees")


class OfTheTest(Seven):
    judges_the_test = True


def reads(number: int, **about: Any) -> RunRecord:
    return record_of(*[(1, "read", "k", None, None)] * number, **about)


def answering(value: Any, rows: Sequence[int] | None = None) -> Any:
    """An anomaly that makes any read answer `value`; for 0 it makes no difference."""

    def anomalies(record: RunRecord) -> Sequence[Anomaly]:
        places = range(len(record.history))

        def insert(row: int, _chance: int) -> Insertion:
            return Insertion({row: Answer("ok", value)} if value else {}, [row] if rows is None else rows)

        return [Anomaly("wrong-answer", places, insert, "There was no read.")]

    return anomalies


def test_an_anomaly_that_a_checker_refuses_is_shown() -> None:
    (figure,) = probe(reads(20), [Seven()], answering(7), insertions=12)
    assert figure == Sensitivity(anomaly="wrong-answer", inserted=12, shown=12)


def test_an_anomaly_that_no_checker_refuses_is_inserted_and_not_shown() -> None:
    (figure,) = probe(reads(20), [Seven()], answering(8), insertions=12)
    assert figure == Sensitivity(anomaly="wrong-answer", inserted=12, shown=0)


def test_an_anomaly_that_changes_no_answer_counts_as_inserted_and_no_checker_judges_it() -> None:
    checker = Seven()
    (figure,) = probe(reads(20), [checker], answering(None), insertions=12)
    assert (figure.inserted, figure.shown, checker.asked) == (12, 0, [])


def test_each_place_is_drawn_once_and_all_of_them_where_there_are_few() -> None:
    drawn: list[int] = []

    def anomalies(record: RunRecord) -> Sequence[Anomaly]:
        def insert(row: int, _chance: int) -> Insertion:
            drawn.append(row)
            return Insertion({}, [row])

        return [Anomaly("wrong-answer", range(len(record.history)), insert, "")]

    (figure,) = probe(reads(9), [Seven()], anomalies, insertions=100)
    assert figure.inserted == 9 and sorted(drawn) == list(range(9))


def test_a_place_that_turns_out_to_be_none_is_not_counted() -> None:
    def anomalies(record: RunRecord) -> Sequence[Anomaly]:
        def insert(row: int, _chance: int) -> Insertion | None:
            return Insertion({row: Answer("ok", 7)}, [row]) if row % 2 else None

        return [Anomaly("wrong-answer", range(len(record.history)), insert, "")]

    (figure,) = probe(reads(20), [Seven()], anomalies, insertions=100)
    assert (figure.inserted, figure.shown) == (10, 10)


def test_where_nothing_can_be_inserted_a_sentence_says_why() -> None:
    (figure,) = probe(reads(0), [Seven()], answering(7))
    assert figure == Sensitivity(anomaly="wrong-answer", limit="There was no read.")


def test_a_workload_without_anomalies_is_told_and_no_figure_invented() -> None:
    (figure,) = probe(reads(3, workload="chess"), [Seven()], None)
    assert figure.inserted == 0 and figure.limit == "No synthetic anomaly exists for the workload chess."


def test_checkers_of_the_test_are_not_asked() -> None:
    (figure,) = probe(reads(3), [OfTheTest()], answering(7))
    assert figure.inserted == 0 and "judges the answers to clients" in figure.limit


def test_answers_in_another_shape_are_told_rather_than_raised() -> None:
    def anomalies(record: RunRecord) -> Sequence[Anomaly]:
        raise TypeError("no list")

    (figure,) = probe(reads(3), [Seven()], anomalies)
    assert figure.limit == "The answers do not have the form of register: TypeError: no list."


@pytest.mark.parametrize(
    ("checker", "said"), [(Failing(), "too many sevens"), (Contradicted(), "the referee disagrees")]
)
def test_a_checker_that_fails_shows_nothing_and_is_told(checker: Seven, said: str) -> None:
    (figure,) = probe(reads(20), [checker], answering(7), insertions=12)
    assert (figure.inserted, figure.shown) == (12, 0)
    assert figure.limit.startswith("Not judged 12 times.") and said in figure.limit


def test_a_checker_after_one_that_fails_is_still_asked() -> None:
    (figure,) = probe(reads(20), [Failing(), Seven()], answering(7), insertions=12)
    assert figure.shown == 12


def test_a_checker_that_tells_its_verdict_without_explaining_is_asked_for_that() -> None:
    class Quick(Failing):
        def refutes(self, history: History, run: RunRecord) -> bool:
            return 7 in history.result

    (figure,) = probe(reads(20), [Quick()], answering(7), insertions=12)
    assert (figure.shown, figure.limit) == (12, "")


def test_only_the_rows_of_the_insertion_are_judged() -> None:
    checker = Seven()
    probe(reads(20), [checker], answering(7, rows=range(5)), insertions=3)
    assert checker.asked == [5, 5, 5]


def test_a_changed_record_differs_in_the_changed_answers_alone() -> None:
    record = record_of((1, "write", "k", 1, None), FAULT, (2, "read", "k", None, 1), (3, "read", "k", None, 1))
    changed = changed_record(record, Insertion({1: Answer("fail", None, "lost")}, [0, 1])).history
    assert (changed.outcome, changed.result, changed.error) == (["ok", "fail"], [None, None], [None, "lost"])
    assert changed.invoke_index == record.history.invoke_index[:2] and changed.faults == record.history.faults


def test_the_record_itself_stays_as_it_was() -> None:
    record = reads(20)
    before = record.history.digest()
    probe(record, [Seven()], answering(7))
    assert record.history.digest() == before


def test_the_number_of_insertions_comes_from_the_size_of_the_history_and_the_figures_from_the_seed() -> None:
    small, large = (probe(reads(number), [Seven()], answering(7))[0].inserted for number in (30, 20_000))
    assert 1 <= small < large <= INSERTIONS_MAX
    assert probe(reads(300), [Seven()], answering(7)) == probe(reads(300), [Seven()], answering(7))


def test_every_real_run_is_probed_and_of_simulated_ones_a_sample() -> None:
    assert all(is_sampled(reads(1, seed=seed)) for seed in range(5))
    sampled = [seed for seed in range(200) if is_sampled(reads(1, seed=seed, world="simulated"))]
    assert sampled == list(range(0, 200, SAMPLED_EVERY))


def test_figures_of_many_runs_add_up_and_a_run_without_places_does_not_hide_others() -> None:
    runs = [
        (Sensitivity(anomaly="lost-write", inserted=4, shown=3), Sensitivity(anomaly="stale-read", limit="No read.")),
        (Sensitivity(anomaly="lost-write", limit="No write."), Sensitivity(anomaly="stale-read", limit="No read.")),
        (Sensitivity(anomaly="lost-write", inserted=6, shown=6, limit="Not judged once."),),
    ]
    assert summed(runs) == (
        Sensitivity(anomaly="lost-write", inserted=10, shown=9, limit="Not judged once."),
        Sensitivity(anomaly="stale-read", limit="No read."),
    )


def test_the_sentence_tells_the_share_and_both_numbers() -> None:
    figures = (
        Sensitivity(anomaly="lost-write", inserted=200, shown=186),
        Sensitivity(anomaly="stale-read", limit="No."),
    )
    assert sensitivity_sentence(figures) == "This pass would have shown 93 % of inserted lost-write (186 of 200)."
    assert sensitivity_sentence(figures[1:]) == "No." and sensitivity_sentence(()) == ""
