"""A history that stays in Arrow's columns, as a campaign stored it, until somebody asks for a row.

The checkers of registers need integers, and Arrow can make them out of a table without a Python object for each value
(`linearizability.engine.arrow`). So a column becomes a list only when it is read for the first time: for a history that
is linearizable never. Afterwards it is a `History` like any other; it does not grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.history import History

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JSON_COLUMNS", "PLAIN_COLUMNS", "StoredHistory"]

PLAIN_COLUMNS = (
    "process",
    "worker",
    "first_node",
    "node",
    "f",
    "key",
    "outcome",
    "error",
    "invoke_us",
    "complete_us",
    "invoke_index",
    "complete_index",
)
"""The columns that are stored as they are; strings may be dictionary-encoded."""

JSON_COLUMNS = ("value", "result")
"""The columns that are stored as JSON text."""

_MAY_BE_NULL = frozenset(("key", "error", "node", "first_node"))


class StoredHistory(History):
    """The operations in `table`, of which every row is one. Raises UsageError when it lacks a column or a value."""

    def __init__(self, table: pa.Table, source: str = "The table") -> None:
        _check(table, source)
        self.table = table
        self.source = source
        self.faults = []
        self.problems = ()
        self._sink = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getattr__(self, name: str) -> Any:
        """A column as a list, kept from now on; only called for what is not there yet."""
        if name == "next_index":
            made: Any = max([-1, *self.invoke_index, *self.complete_index]) + 1
        elif name in PLAIN_COLUMNS:
            made = _listed(self.table[name])
        elif name in JSON_COLUMNS:
            made = self._decoded(name)
        else:
            raise AttributeError(name)
        setattr(self, name, made)
        return made

    def head(self, rows: int) -> History:
        """The first `rows` operations, as stored."""
        return StoredHistory(self.table.slice(0, rows), self.source)

    def _decoded(self, name: str) -> list[Any]:
        try:
            return list(map(msgspec.json.decode, self.table[name].to_pylist()))
        except (msgspec.DecodeError, TypeError) as error:
            raise UsageError(
                f"{self.source}: the column {name} holds what is not JSON ({error}).", "See docs/reference/history.md."
            ) from error


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values, each of a dictionary made once."""
    listed: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            named = chunk.dictionary.to_pylist()
            listed += [None if code is None else named[code] for code in chunk.indices.to_pylist()]
        else:
            listed += chunk.to_pylist()
    return listed


def _check(table: pa.Table, source: str) -> None:
    missing = [name for name in (*PLAIN_COLUMNS, *JSON_COLUMNS) if name not in table.column_names]
    empty = [name for name in PLAIN_COLUMNS if name not in {*missing, *_MAY_BE_NULL} and table[name].null_count]
    if missing or empty:
        fault = f"no column {missing[0]}" if missing else f"an operation without {empty[0]}"
        raise UsageError(
            f"{source} does not hold histories of a campaign: it has {fault}.",
            "See docs/reference/history.md for the columns.",
        )
