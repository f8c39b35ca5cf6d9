"""The workload of selections by a condition: what it asks for, and what its checker says of stores that serve it.

SQLite, which runs one transaction at a time, is the store that is right: it evaluates the conditions, not Faultline.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from faultline.checkers.transactions.checker import ClosedPredicateChecker
from faultline.harness.generator import planned_operations
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.plan import Plan, PlannedOperation
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, load_workload
from faultline.systems_under_test.stores.conditions import RECORDS, steps_on_table

_INSERT = "INSERT INTO records VALUES (%s, %s, %s) ON CONFLICT DO UPDATE SET value = excluded.value"


class _Sqlite:
    """A session of the stores' kind on a database in memory, whose selections do not find the `hidden` rows."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:")
        self.database.execute(f"CREATE TABLE records {RECORDS}")
        self.hidden: set[str] = set()

    def rows(self, statement: str, *values: Any) -> Sequence[Any]:
        found = self.database.execute(statement.replace("%s", "?"), values).fetchall()
        return [row for row in found if row[0] not in self.hidden]

    def changes(self, statement: str, *values: Any) -> int:
        return self.database.execute(statement.replace("%s", "?"), values).rowcount


def planned(seed: int = 1, operations: int = 240) -> list[PlannedOperation]:
    generator = load_workload("predicates").generator(workers=5, operations=operations, seed=seed)
    return list(planned_operations(generator, workers=5, seed=seed, latency_us=4_000))


def served(seed: int, before: Callable[[int, _Sqlite], None] = lambda number, store: None) -> History:
    """Return the history of the workload, one transaction after the other, each at a time of its own."""
    history, store = History(), _Sqlite()
    for number, each in enumerate(planned(seed)):
        row = history.invoke(Operation(number, each.f, each.key, each.value), 10 * number, each.worker, "athens")
        before(number, store)
        answer = steps_on_table(store, each.key or "", each.value, _INSERT)
        history.complete(row, ok(answer, "athens"), 10 * number + 5)
    return history


def test_it_plans_the_same_for_a_seed_and_no_two_writes_are_alike() -> None:
    rows = planned()
    assert [(row.key, row.value) for row in rows] == [(row.key, row.value) for row in planned()]
    assert [row.value for row in rows] != [row.value for row in planned(seed=2)]
    written = [step[2] for row in rows for step in row.value if step[0] in ("insert", "w")]
    assert len(written) == len(set(written)) > 200
    assert {step[0] for row in rows for step in row.value} == {"insert", "w", "delete", "rp"}
    assert {row.f for row in rows} == set(load_workload("predicates").functions)


def test_tables_are_small_and_left_after_two_dozen_transactions() -> None:
    tables = [row.key for row in planned()]
    assert {tables.count(table) for table in tables} == {24}
    assert len({step[1] for row in planned() for step in row.value if step[0] != "rp"}) == 6


def test_at_the_end_every_worker_selects_the_last_tables_and_one_each_earlier_one() -> None:
    final = load_workload("predicates").final_generator(workers=5, seed=1, operations=240)
    rows = list(planned_operations(final, workers=5, seed=1, latency_us=4_000))
    assert all(row.value == [["rp", "true", None]] for row in rows)
    for worker in range(5):
        assert {"t8", "t9"} <= {row.key for row in rows if row.worker == worker}
    assert {row.key for row in rows} == {f"t{number}" for number in range(10)}


def test_systems_without_conditions_are_not_asked_for_them() -> None:
    forms = {name: getattr(load_system(name), "answer_forms", ()) for name in ("zookeeper", "postgresql", "galera")}
    assert forms == {"zookeeper": (), "postgresql": ("conditions",), "galera": ("conditions",)}


@pytest.mark.parametrize("seed", range(5))
def test_serial_transactions_of_sqlite_pass(seed: int) -> None:
    result = ClosedPredicateChecker().check(served(seed))
    assert result.verdict is Verdict.PASS, result.sentence
    assert result.detail["anomalies"] == {}


@pytest.mark.parametrize("seed", range(5))
def test_a_row_that_selections_do_not_find_is_told_with_the_transaction_that_made_it(seed: int) -> None:
    def hide(number: int, store: _Sqlite) -> None:
        store.hidden = {"a"} if 30 <= number < 40 else set()

    result = ClosedPredicateChecker().check(served(seed, hide))
    assert result.verdict is Verdict.VIOLATION
    assert "did not find t1/a" in result.sentence


def _skewed_history() -> History:
    """Return two doctors who each see that both are on call, and sign off."""
    history = History()
    opened = [["insert", "a", 1], ["insert", "b", 3]]
    _answer(history, _asked(history, 0, 0, opened), opened, 5)
    both = ["rp", ["mod", 2, 1], {"a": 1, "b": 3}]
    off = [[both, ["w", "a", 2]], [both, ["w", "b", 4]]]
    rows = [_asked(history, worker, 10 + worker, steps) for worker, steps in enumerate(off)]
    for row, steps in zip(rows, off, strict=True):
        _answer(history, row, steps, 20 + row)
    return history


def test_two_doctors_who_do_not_see_each_other_sign_off_skewed() -> None:
    history = _skewed_history()
    assert ClosedPredicateChecker().check(history).verdict is Verdict.VIOLATION
    weaker = ClosedPredicateChecker("strong-snapshot-isolation").check(history)
    assert weaker.verdict is Verdict.PASS
    assert {each["anomaly"] for each in weaker.detail["allowed"]} == {"G2-item", "G-update"}


def _asked(history: History, worker: int, time_us: int, steps: list[Any]) -> int:
    asked = [[*step[:2], None] if step[0] == "rp" else step for step in steps]
    return history.invoke(Operation(len(history), "txn", "t0", asked), time_us, worker, "athens")


def _answer(history: History, row: int, steps: list[Any], time_us: int) -> None:
    history.complete(row, ok(steps, "athens"), time_us)


def test_a_run_is_judged_by_the_isolation_of_its_plan() -> None:
    history = _skewed_history()
    plan = Plan(system="s", workload="predicates", seed=1, nodes=("n1",), workers=2, operations=(), heal_us=0, end_us=0)
    verdicts = {
        isolation: ClosedPredicateChecker()
        .check(history, RunRecord(plan=replace(plan, isolation=isolation), world="hosts", history=history))
        .verdict
        for isolation in ("serializable", "strong-snapshot-isolation", "read-committed")
    }
    assert list(verdicts.values()) == [Verdict.VIOLATION, Verdict.PASS, Verdict.PASS]
