"""Databases are never accused under their own model, and verdicts equal those of trying every order."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from every_order import is_serializable, is_snapshot_isolated
from hypothesis import example, given, settings
from hypothesis import strategies as st
from interleaved_databases import LEVELS, toy_history

from faultline.checkers.transactions.checker import check_transactions
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import Verdict

SEEDS = st.integers(0, 2**32)
WORKLOADS = {"list-append": "append", "rw-register": "w"}


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("level", LEVELS[1:])
@given(seed=SEEDS)
@example(seed=19)
@settings(max_examples=60)
def test_a_database_is_never_accused_under_its_own_model(workload: str, level: str, seed: int) -> None:
    result = check_transactions(toy_history(level, seed, WORKLOADS[workload]), workload, level)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence


@pytest.mark.parametrize(("level", "stronger"), [*pairwise(LEVELS)])
def test_a_weaker_database_is_found_out_by_the_next_stronger_model(level: str, stronger: str) -> None:
    verdicts = [check_transactions(toy_history(level, seed), "list-append", stronger).verdict for seed in range(25)]
    assert verdicts.count(Verdict.VIOLATION) > 5


def small_history(seed: int, write: str, transactions: int) -> History:
    """A history of a toy database, some of its reads changed a little."""
    rng = random.Random(seed)
    level = LEVELS[int(rng.random() * len(LEVELS))]
    clean = toy_history(level, seed, write, transactions=transactions, clients=3, keys=2, uncertain=0.2)
    history, rows = History(), {}
    for event in clean.events():
        if event["type"] == "invoke":
            operation = Operation(event["process"], "txn", None, event["value"])
            rows[event["process"]] = history.invoke(operation, event["time_us"], 0, "")
            continue
        value = event["value"]
        if value is not None and rng.random() < 0.3:
            value = [changed(rng, micro) for micro in value]
        history.complete(rows[event["process"]], Outcome(event["type"], value, event.get("error")), event["time_us"])
    return history


def changed(rng: random.Random, micro: list[object]) -> list[object]:
    name, key, value = micro
    if name != "r" or rng.random() < 0.5:
        return micro
    if isinstance(value, list):
        return [name, key, value[:-1] if rng.random() < 0.7 else value[::-1]]
    if isinstance(value, int):
        return [name, key, value - 1 or None]
    return micro


@given(seed=SEEDS)
@settings(max_examples=400)
def test_lists_are_serializable_exactly_when_some_order_explains_them(seed: int) -> None:
    history = small_history(seed, "append", 5)
    result = check_transactions(history, "list-append", "serializable")
    assert (result.verdict == Verdict.VIOLATION) == (not is_serializable(history)), result.sentence


@given(seed=SEEDS)
@settings(max_examples=400)
def test_lists_are_strictly_serializable_exactly_when_some_order_in_real_time_explains_them(seed: int) -> None:
    history = small_history(seed, "append", 5)
    result = check_transactions(history, "list-append", "strict-serializable")
    assert (result.verdict == Verdict.VIOLATION) == (not is_serializable(history, realtime=True)), result.sentence


@given(seed=SEEDS)
@settings(max_examples=250)
def test_lists_are_snapshot_isolated_when_some_snapshots_explain_them(seed: int) -> None:
    history = small_history(seed, "append", 4)
    violation = check_transactions(history, "list-append", "snapshot-isolation").verdict == Verdict.VIOLATION
    possible = is_snapshot_isolated(history)
    assert not (violation and possible)
    assert violation or possible or has_unordered_appends(history)


def has_unordered_appends(history: History) -> bool:
    """Return whether two transactions appended unread values to one list, so that their order is unknown."""
    writers: dict[tuple[str, int], int] = {}
    read: set[tuple[str, int]] = set()
    for row in range(len(history)):
        for name, key, value in history.value[row]:
            if name == "append" and history.outcome[row] != "fail":
                writers[key, value] = row
        for name, key, value in history.result[row] or ():
            if name == "r":
                read |= {(key, element) for element in value or ()}
    unread = [(key, row) for (key, value), row in writers.items() if (key, value) not in read]
    keys = [key for key, _ in set(unread)]
    return len(keys) > len(set(keys))


@pytest.mark.parametrize("realtime", [False, True])
@given(seed=SEEDS)
@example(seed=120)
@settings(max_examples=400)
def test_registers_are_only_accused_when_no_order_explains_them(realtime: bool, seed: int) -> None:
    history = small_history(seed, "w", 5)
    model = "strict-serializable" if realtime else "serializable"
    result = check_transactions(history, "rw-register", model)
    if result.verdict == Verdict.VIOLATION:
        assert not is_serializable(history, realtime), result.sentence


@given(seed=SEEDS)
@settings(max_examples=150)
def test_registers_are_only_accused_of_breaking_snapshots_when_no_snapshots_explain_them(seed: int) -> None:
    history = small_history(seed, "w", 4)
    if check_transactions(history, "rw-register", "snapshot-isolation").verdict == Verdict.VIOLATION:
        assert not is_snapshot_isolated(history)


@given(seed=SEEDS, level=st.sampled_from(LEVELS))
@settings(max_examples=100)
def test_every_cycle_that_is_reported_holds_edge_by_edge(seed: int, level: str) -> None:
    result = check_transactions(toy_history(level, seed, transactions=60), "list-append", "strict-serializable")
    for finding in result.findings:
        edges = finding.detail.get("edges", [])
        for edge, following in zip(edges, [*edges[1:], *edges[:1]]):
            assert edge["to"] == following["from"]
        assert len({edge["from"] for edge in edges}) == len(edges)
        if edges:
            assert {entry["row"] for entry in finding.detail["transactions"]} == set(finding.operations)
