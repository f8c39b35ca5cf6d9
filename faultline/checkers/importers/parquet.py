"""The histories of a campaign, `histories/part-*.parquet`: the operations of many runs, one row each.

Row groups are read one after another; the rows of a run are together, so that one run at a time is in memory. It
stays there as Arrow's columns (`stored_history`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.suggest import suggested_model
from faultline.checkers.stored_history import StoredHistory
from faultline.harness.untrusted import DamagedInput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_parquet", "read_run"]

_FEW_VALUES = ("run_id", "first_node", "node", "f", "key", "outcome", "error")
"""Columns of strings that repeat; Arrow keeps each string once."""


def read_parquet(path: Path) -> Iterator[ImportedHistory]:
    """Yield the histories in one file, run by run. Raise UsageError when it is not such a file."""
    with _refused(path):
        for run_id, table in _runs(path):
            history = StoredHistory(table, f"{path}, run {run_id}")
            yield ImportedHistory(history, suggested_model(history), "seconds", part=str(run_id))


def read_run(path: Path, run_id: str) -> StoredHistory:
    """Return the history of one run, which is empty when the file does not know it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with _refused(path):
        own = [
            part if pc.all(is_own).as_py() else part.filter(is_own)
            for part in _row_groups(path)
            for is_own in [pc.equal(part["run_id"].cast(pa.string()), run_id)]
        ]
        return StoredHistory(pa.concat_tables(own), str(path))


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Turn any error of Arrow about a file into a DamagedInput."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        raise DamagedInput(path, cause, next_step="It is damaged, or not a Parquet file.") from error


def _runs(path: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each run, in the order of the file."""
    import pyarrow as pa

    parts: list[pa.Table] = []
    current: Any = None
    for group in _row_groups(path):
        for run_id, part in _stretches(group):
            if parts and run_id != current:
                yield current, pa.concat_tables(parts)
                parts = []
            current = run_id
            parts.append(part)
    if parts:
        yield current, pa.concat_tables(parts)


def _stretches(table: pa.Table) -> Iterator[tuple[Any, pa.Table]]:
    """Yield the stretches of `table` whose rows are of one run."""
    import numpy as np
    import pyarrow as pa

    runs = table["run_id"].cast(pa.string()).dictionary_encode().combine_chunks()
    runs = pa.concat_arrays(runs.chunks) if isinstance(runs, pa.ChunkedArray) else runs
    codes, names = np.asarray(runs.indices.fill_null(-1)), [*runs.dictionary.to_pylist(), None]
    begins = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()] if len(codes) else []
    for begin, end in zip(begins, [*begins[1:], len(codes)]):
        yield names[codes[begin]], table.slice(begin, end - begin)


def _row_groups(path: Path) -> Iterator[pa.Table]:
    """Yield the row groups of one file; without any, an empty table."""
    import pyarrow.parquet as pq
    from pyarrow import types

    schema = pq.read_schema(path)
    columns = schema.names
    if columns.count("run_id") != 1:
        cause = "it does not hold histories of a campaign: it has no column run_id"
        raise DamagedInput(path, cause, next_step="See docs/reference/history.md for the columns.")
    repeating = [field.name for field in schema if field.name in _FEW_VALUES and types.is_string(field.type)]
    with pq.ParquetFile(path, read_dictionary=repeating) as file:
        if not file.num_row_groups:
            yield file.read()
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)
