"""A history that stays in Arrow's columns is the same history, and is encoded for the engine as one of lists is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.campaign.histories import history_table
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.linearizability.engine.arrow import columns_of_table
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.registers import register_columns
from faultline.checkers.stored_history import StoredHistory
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok

SMALL = st.integers(-2, 3)
VALUES = st.one_of(
    st.none(), SMALL, st.booleans(), st.floats(0, 1), st.text(max_size=2), st.just(1 << 70), st.just({"b": 1, "a": [2]})
)
OUTCOMES = st.sampled_from(["ok", "fail", "cas-mismatch", "info", "open"])


@st.composite
def histories(draw: st.DrawFn, values: st.SearchStrategy[Any] = VALUES) -> History:
    history = History()
    for number in range(draw(st.integers(0, 12))):
        f = draw(st.sampled_from(["read", "write", "cas"]))
        value = None if f == "read" else draw(values) if f == "write" else [draw(values), draw(values)]
        operation = Operation(number, f, draw(st.sampled_from([None, "a", "b"])), value)
        row, outcome = history.invoke(operation, 10 * number, number, "athens"), draw(OUTCOMES)
        answers = {"ok": ok(draw(values) if f == "read" else None), "info": info("timeout"), "open": None}
        answer = answers.get(outcome, fail(outcome))
        if answer is not None:
            history.complete(row, answer, 10 * number + 5)
    return history


def shown(columns: Columns) -> Iterable[tuple[Any, ...]]:
    """Operations with their keys and values instead of numbers."""
    parts = (columns.key, columns.kind, columns.demand, columns.produce, columns.call, columns.return_, columns.row)
    for key, kind, demand, produce, *rest in zip(*parts):
        yield columns.keys[key], kind, columns.values[demand], columns.values[produce], *rest


@given(
    histories(), st.sampled_from(["observe", "ignore"]), st.sampled_from([None, frozenset(("read", "write", "cas"))])
)
def test_stored_columns_are_encoded_as_lists_are(history: History, failed_cas: Any, functions: Any) -> None:
    listed = register_columns(history, failed_cas, functions)
    stored = register_columns(StoredHistory(history_table("run", history)), failed_cas, functions)
    assert list(shown(stored)) == list(shown(listed))
    assert [key for key in listed.keys if key in set(shown_keys(listed))] == [
        key for key in stored.keys if key in set(shown_keys(listed))
    ]


def shown_keys(columns: Columns) -> list[Any]:
    return [columns.keys[key] for key in columns.key]


@given(histories())
def test_a_stored_history_is_the_history_that_was_stored(history: History) -> None:
    stored = StoredHistory(history_table("run", history))
    assert len(stored) == len(history)
    assert stored.to_jsonl() == history.to_jsonl()
    assert stored.next_index == history.next_index
    assert stored.head(3).value == history.head(3).value == history.value[:3]


@given(histories(SMALL))
def test_integers_never_leave_the_columns_and_the_verdict_is_the_same(history: History) -> None:
    table = history_table("run", history)
    stored = StoredHistory(table)
    assert columns_of_table(table) is not None
    assert LinearizabilityChecker().check(stored) == LinearizabilityChecker().check(history)


def test_chunks_with_dictionaries_of_their_own_are_one_history() -> None:
    tables = []
    history = History()
    for number, key in enumerate("abac"):
        part = History()
        for target in (history, part):
            target.next_index = 2 * number
            row = target.invoke(Operation(0, "write", key, number), number, 0, "athens")
            target.complete(row, ok(), number)
        table = history_table("run", part)
        encoded = {name: table[name].dictionary_encode() for name in ("f", "key", "outcome", "error")}
        for name, column in encoded.items():
            table = table.set_column(table.column_names.index(name), name, column)
        tables.append(table)
    stored = StoredHistory(pa.concat_tables(tables))
    assert list(shown(register_columns(stored))) == list(shown(register_columns(history)))
    assert stored.to_jsonl() == history.to_jsonl()


def test_what_is_no_json_is_refused_by_name() -> None:
    history = History()
    history.complete(history.invoke(Operation(0, "write", "k", 1), 1, 0, "athens"), ok(), 2)
    table = history_table("run", history)
    broken = table.set_column(table.column_names.index("value"), "value", pa.array(["[1,"]))
    with pytest.raises(UsageError, match="column value holds what is not JSON"):
        LinearizabilityChecker().check(StoredHistory(broken))


def test_a_column_without_values_is_refused_by_name() -> None:
    history = History()
    history.invoke(Operation(0, "write", "k", 1), 1, 0, "athens")
    table = history_table("run", history)
    broken = table.set_column(table.column_names.index("outcome"), "outcome", pa.array([None], pa.string()))
    with pytest.raises(UsageError, match="an operation without outcome"):
        StoredHistory(broken)
    assert msgspec.json.decode(table["value"].to_pylist()[0]) == 1


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("complete_index", [1, -1], "an operation has an answer and no completion"),
        ("complete_index", [3, 3], "two events have the same index"),
        ("complete_index", [2, 3], "two events have the same index"),
    ],
)
def test_columns_that_no_run_can_have_written_are_refused(column: str, values: list[int], reason: str) -> None:
    history = History()
    for number in range(2):
        history.complete(history.invoke(Operation(number, "read", "k"), 1, number, "athens"), ok(), 2)
    table = history_table("run", history)
    table = table.set_column(table.column_names.index("invoke_index"), "invoke_index", pa.array([0, 2]))
    broken = table.set_column(table.column_names.index(column), column, pa.array(values))
    with pytest.raises(UsageError, match=reason):
        StoredHistory(broken)
