"""Snapshot isolation and serializability: each contradiction by its name, its smallest core, and what stays unknown."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.isolation.closure import Graph, bits_at, reaching
from faultline.checkers.isolation.core import smallest_core
from faultline.checkers.isolation.strong import SerializabilityChecker, SnapshotIsolationChecker
from faultline.harness.verdict import Cause, Reason, Verdict


def txn(micro, process=0, outcome="ok", span=None):
    """A transaction written as `wx1 ry- rx1`: writes and reads of one-letter keys, `-` for null."""
    steps = [[step[0], step[1], None if step[2:] == "-" else int(step[2:])] for step in micro.split()]
    asked = [[f, key, None if f == "r" else value] for f, key, value in steps]
    return op("txn", asked, steps if outcome == "ok" else None, process=process, outcome=outcome, span=span)


def found(checker, *transactions):
    return anomalies(checker.check(history_of(*transactions)))


LOST_UPDATE = (txn("wx1"), txn("rx1 wx2", 1), txn("rx1 wx3", 2))
WRITE_SKEW = (txn("rx- wy1"), txn("ry- wx1", 1))
LONG_FORK = (txn("wx1"), txn("wy1", 1), txn("rx1 ry-", 2), txn("rx- ry1", 3))
NOISE = tuple(txn(f"wa{n} wx{n + 100}", 20 + n) for n in range(5))


@pytest.mark.parametrize("checker", [SerializabilityChecker(), SnapshotIsolationChecker()], ids=lambda c: c.name)
def test_a_lost_update_is_found_with_the_transactions_that_show_it(checker):
    result = checker.check(history_of(*LOST_UPDATE, *NOISE))
    assert anomalies(result) == ["lost-update"]
    assert result.findings[0].operations == (0, 1, 2)
    assert 'T1 read "x"' in result.sentence or 'T2 read "x"' in result.sentence


def test_write_skew_is_snapshot_isolated_and_not_serializable():
    assert found(SnapshotIsolationChecker(), *WRITE_SKEW) == []
    result = SerializabilityChecker().check(history_of(*WRITE_SKEW, *NOISE[:2]))
    assert anomalies(result) == ["write-skew"]
    assert [step["kind"] for step in result.findings[0].detail["cycles"][0]] == ["rw", "rw"]


@pytest.mark.parametrize("checker", [SerializabilityChecker(), SnapshotIsolationChecker()], ids=lambda c: c.name)
def test_a_long_fork_violates_both_levels(checker):
    result = checker.check(history_of(*LONG_FORK))
    assert anomalies(result) == ["long-fork"]
    assert result.findings[0].operations == (0, 1, 2, 3)


@pytest.mark.parametrize("checker", [SerializabilityChecker(), SnapshotIsolationChecker()], ids=lambda c: c.name)
def test_seeing_an_effect_without_its_cause_is_read_skew(checker):
    assert found(checker, txn("wx1"), txn("rx1 wy1", 1), txn("ry1 rx-", 2)) == ["read-skew"]


@pytest.mark.parametrize("checker", [SerializabilityChecker(), SnapshotIsolationChecker()], ids=lambda c: c.name)
def test_what_weaker_levels_forbid_is_found_under_their_names(checker):
    assert found(checker, txn("wx1", outcome="fail"), txn("rx1", 1)) == ["aborted-read"]
    assert found(checker, txn("wx1 wy1"), txn("rx- ry1", 1)) == ["fractured-read"]
    assert found(checker, txn("ry1 wx1"), txn("rx1 wy1", 1)) == ["circular-information-flow"]


@pytest.mark.parametrize("make", [SerializabilityChecker, SnapshotIsolationChecker])
def test_a_session_may_see_the_past_unless_sessions_are_part_of_the_level(make):
    stale = [txn("wx1"), txn("wy1"), txn("ry1", 1), txn("rx-", 1)]
    assert found(make(), *stale) == []
    assert found(make(session_order=True), *stale) != []


def test_an_order_that_no_clock_suggests_is_found_by_the_search():
    """Writes became visible against the order of completion: the guesses fail, and the history is fine."""
    transactions = [txn("wx1"), txn("wx2", 1), txn("rx2 wy1", 2), txn("ry1 wz1", 3), txn("rx1 rz1", 4)]
    history = history_of(*transactions, txn("rx2", 5))
    result = SerializabilityChecker().check(history)
    assert result.verdict is Verdict.PASS


def test_without_budget_or_with_too_many_transactions_the_answer_is_unknown():
    history = history_of(*LOST_UPDATE)
    spent = Reason(cause=Cause.BUDGET, option="steps_max", value=0)
    large = Reason(cause=Cause.SIZE, option="transactions_max", value=4)  # the initial one counts
    late = Reason(cause=Cause.TIME)
    for checker, reason in (
        (SerializabilityChecker(steps_max=0), spent),
        (SerializabilityChecker(transactions_max=2), large),
        (SerializabilityChecker(timeout_s=0.0), late),
    ):
        result = checker.check(history)
        assert (result.verdict, result.reason) == (Verdict.UNKNOWN, reason)
        assert "read atomicity is kept" in result.sentence


def test_parts_that_share_no_key_are_judged_apart():
    other = [txn("ra- wb1", 5), txn("rb- wa1", 6)]
    result = SerializabilityChecker().check(history_of(*WRITE_SKEW, *other, txn("wq1", 9)))
    assert sorted(finding.operations for finding in result.findings) == [(0, 1), (2, 3)]
    assert (result.detail["parts"], result.detail["possible_parts"]) == (3, 1)


def test_no_transactions_are_vacuous():
    assert SerializabilityChecker().check(history_of()).verdict is Verdict.VACUOUS


# -- the parts ------------------------------------------------------------------------------------------------------


def test_what_reaches_a_node_passes_through_untracked_ones():
    graph = Graph(5)
    graph.add([(0, 3), (3, 1), (1, 2), (4, 2)])
    before, column = reaching(graph, graph.order(), range(3, 4))
    assert bits_at(before, [column[node] for node in (0, 1, 2, 4)]) == [0b0000, 0b0001, 0b1011, 0b0000, 0b0000]
    assert column[3] == -1 and before[3] == 0


def test_bits_are_picked_alike_whether_columns_are_few_or_many():
    rows = [(1 << 90) | 0b1011, 0, (1 << 91) - 1]
    columns = [90, 0, 1, 2, 3, *range(40, 60)]
    assert bits_at(rows, columns) == [
        sum((row >> column & 1) << place for place, column in enumerate(columns)) for row in rows
    ]


def test_nodes_on_a_cycle_and_behind_it_have_no_place_in_the_order():
    graph = Graph(5)
    graph.add([(0, 1), (1, 2), (2, 1), (2, 3)])
    assert graph.order() == graph.order([0] * 5) == [0, 4]


def test_a_core_loses_everything_that_can_go():
    asked = []

    def is_impossible(members):
        asked.append(len(members))
        return {3, 17} <= set(members)

    assert smallest_core(list(range(40)), is_impossible) == [3, 17]
    assert len(asked) < 60


def test_a_long_history_of_a_correct_store_passes_without_a_search():
    """Blind writes of three keys by overlapping transactions, each taking effect at once in the middle of its time."""
    store, transactions = {"x": "-", "y": "-", "z": "-"}, []
    for number in range(300):
        key, other = "xyz"[number % 3], "xyz"[number * number % 3]
        transactions.append(txn(f"r{other}{store[other]} w{key}{number}", number, span=(4 * number, 4 * number + 11)))
        store[key] = number
    for checker in (SerializabilityChecker(), SnapshotIsolationChecker()):
        result = checker.check(history_of(*transactions))
        assert (result.verdict, result.detail["how"]) == (Verdict.PASS, "guess")
