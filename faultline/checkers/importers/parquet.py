"""The histories of a campaign, `histories/part-*.parquet`: the operations of many runs, one row each.

Row groups are read one after another; the rows of a run stand together, so that one run at a time is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.suggest import suggested_model
from faultline.harness.errors import UsageError
from faultline.harness.history import History

__all__ = ["read_parquet"]

_COLUMNS = ("process", "worker", "node", "f", "key", "outcome", "error")
_NUMBERS = ("invoke_us", "complete_us", "invoke_index", "complete_index")
_JSON = ("value", "result")


def read_parquet(path: Path) -> Iterator[ImportedHistory]:
    """The histories in one file, run by run. Raises UsageError when it is not such a file."""
    try:
        for run_id, rows in groupby(_rows(path), key=itemgetter("run_id")):
            history = _history(list(rows))
            yield ImportedHistory(history, suggested_model(history), "seconds", part=str(run_id))
    except (KeyError, TypeError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{path} does not hold histories of a campaign ({error!r}).",
            "See docs/reference/history.md for the columns.",
        ) from error


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "It is damaged, or no Parquet file.") from error


def _history(rows: list[dict[str, Any]]) -> History:
    history = History()
    for name in (*_COLUMNS, *_NUMBERS):
        setattr(history, name, [row[name] for row in rows])
    history.first_node = history.node[:]
    for name in _JSON:
        setattr(history, name, [msgspec.json.decode(row[name]) for row in rows])
    history.next_index = max([-1, *history.invoke_index, *history.complete_index]) + 1
    return history
