"""The rows of a campaign in DuckDB: in this process, in a second, without Java.

The queries are Spark's; sqlglot translates them into DuckDB's dialect. A test that compares both engines on the rows of
real runs finds wrong translations (tests/unit/campaign/test_rows_engines.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

__all__ = ["DuckdbRows"]

_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}
"""Settings that forbid downloads and file access: the rows are in memory already."""


class DuckdbRows:
    """The rows in the table `rows`, as an SQL engine."""

    def __init__(self, rows: pa.Table) -> None:
        self._connection = duckdb.connect(config=_ALONE)
        self.add_table("all_runs", rows)

    def add_table(self, name: str, table: pa.Table) -> None:
        """Register `table` under `name`."""
        self._connection.register(name, table)

    def keep_answer(self, name: str, text: str) -> None:
        """Register the answer to the query `text` under `name`, computed once."""
        self._connection.execute(f"CREATE TABLE {name} AS {_in_duckdb(text)}")

    def answer(self, text: str, arguments: Mapping[str, Any]) -> pa.Table:
        """Return the answer to the query `text`, with `arguments` in place of its parameters."""
        return self._connection.sql(_in_duckdb(text), params=dict(arguments)).to_arrow_table()


@cache
def _in_duckdb(text: str) -> str:
    (statement,) = sqlglot.transpile(text, read="spark", write="duckdb", comments=False)
    return statement
