"""From result rows to result tables, by SQL. The queries are in `sql/`, one file per table.

Two engines answer them: Spark, where a campaign has it running, and DuckDB, which summarises a campaign's folder from
outside, without a Java process. Each query has one text, in Spark's dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Protocol

import pyarrow as pa

__all__ = ["TABLES", "RowsEngine", "aggregate", "choose_kept", "query"]

TABLES = ("runs", "findings", "cells", "signatures", "latency", "marks", "faults", "sensitivity")
"""The result tables of a campaign, in the order they are computed."""

_DECLARED = pa.schema([("system", pa.string()), ("mark", pa.string())])
_TEXT_LIST = pa.list_(pa.string())


class RowsEngine(Protocol):
    """An SQL engine in which the rows of a campaign are the view `all_runs`."""

    def add_table(self, name: str, table: pa.Table) -> None:
        """Register `table` under `name`."""

    def keep_answer(self, name: str, text: str) -> None:
        """Register the answer to the query `text` under `name`, computed once."""

    def answer(self, text: str, arguments: Mapping[str, Any]) -> pa.Table:
        """Return the answer to the query `text`, with `arguments` in place of its parameters."""


def query(name: str) -> str:
    """Return the text of one query, in Spark's dialect."""
    return (resources.files("faultline.campaign") / "sql" / f"{name}.sql").read_text("utf-8")


def choose_kept(engine: RowsEngine, keep: int) -> frozenset[str]:
    """Return the ids of the runs whose whole folder stays, at most `keep` and one of each kind."""
    return frozenset(engine.answer(query("kept"), {"keep": keep})["run_id"].to_pylist())


def aggregate(engine: RowsEngine, kept: Iterable[str], declared: Iterable[tuple[str, str]]) -> dict[str, pa.Table]:
    """Compute all result tables.

    `kept` are the runs with a folder, `declared` the marks known by name, each after the system that should reach it.
    """
    pairs = list(declared)
    columns = {"system": [system for system, _ in pairs], "mark": [mark for _, mark in pairs]}
    engine.add_table("kept_runs", pa.table({"run_id": pa.array(sorted(kept), pa.string())}))
    engine.add_table("declared", pa.table(columns, _DECLARED))
    engine.keep_answer("runs", query("settled"))
    return {name: _plain(engine.answer(query(name), {})) for name in TABLES}


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with the same types for either engine: one kind of integer, one kind of list of texts."""
    return table.cast(pa.schema([pa.field(field.name, _plain_type(field.type)) for field in table.schema]))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return pa.int64()
    return _TEXT_LIST if pa.types.is_list(kind) and pa.types.is_string(kind.value_type) else kind
