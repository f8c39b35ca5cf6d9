"""Histories as Parquet: all operations of a task's runs in one file, so that any of them can be checked again.

The columns are those of `History` with the run's id; argument and result are JSON text. Faults are not
included; they are in the run's own `history.jsonl` and in the table `faults`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from faultline.checkers.importers.parquet import read_run
from faultline.checkers.stored_history import JSON_COLUMNS, PLAIN_COLUMNS
from faultline.harness.history import History
from faultline.harness.results import write_whole

__all__ = ["HISTORY_SCHEMA", "history_table", "read_history", "write_parquet", "write_part"]

HISTORY_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("row", pa.int64()),
        ("process", pa.int64()),
        ("worker", pa.int64()),
        ("first_node", pa.string()),
        ("node", pa.string()),
        ("f", pa.string()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("outcome", pa.string()),
        ("result", pa.string()),
        ("error", pa.string()),
        ("invoke_us", pa.int64()),
        ("complete_us", pa.int64()),
        ("invoke_index", pa.int64()),
        ("complete_index", pa.int64()),
    ]
)


def history_table(run_id: str, history: History) -> pa.Table:
    """Return one run's operations as an Arrow table."""
    columns: dict[str, Any] = {name: getattr(history, name) for name in PLAIN_COLUMNS}
    columns["run_id"] = [run_id] * len(history)
    columns["row"] = range(len(history))
    columns |= {name: list(map(_json, getattr(history, name))) for name in JSON_COLUMNS}
    arrays = [pa.array(columns[field.name], field.type) for field in HISTORY_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=HISTORY_SCHEMA)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a Parquet file, all of it or nothing."""
    write_whole(path, _encoded(table), durable=False)


def write_part(path: Path, table: pa.Table) -> None:
    """Write a Parquet file where there is none yet; an existing one stays, with the length that readers know.

    A task that was told to stop may still finish, after its unit was salvaged and while Spark reads the parts.
    """
    write_whole(path, _encoded(table), durable=False, replace=False)


def _encoded(table: pa.Table) -> memoryview:
    """Return the bytes of a Parquet file with `table`."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def read_history(path: Path, run_id: str) -> History:
    """Return the operations of one run, without its faults, read from a Parquet file of histories."""
    return read_run(path, run_id)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
