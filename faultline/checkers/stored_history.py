"""A history that stays in Arrow's columns, as a campaign stored it, until a row is asked for.

The checkers of registers need integers, and Arrow can make them out of a table without a Python object for each value
(`linearizability.engine.arrow`). So a column becomes a list only when it is read for the first time: for a history that
is linearizable never. Afterwards it is a `History` like any other; it does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from faultline.harness.history import OPEN, History
from faultline.harness.untrusted import DamagedInput, decoded

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

_INTEGERS = frozenset(("process", "worker", "invoke_us", "complete_us", "invoke_index", "complete_index"))
_ORDER = ("process", "invoke_index", "complete_index")
_OUTCOMES = frozenset(("ok", "fail", "info"))
_SEE = "See docs/reference/history.md for the columns."
_MAY_BE_NULL = frozenset(("key", "error", "node", "first_node"))


class StoredHistory(History):
    """The operations in `table`, of which every row is one. Raises UsageError when it lacks a column or a value."""

    def __init__(self, table: pa.Table, source: str = "The table") -> None:
        self.table = _checked(table, source)
        self.source = source
        self.faults = []
        self.problems = ()
        self._sink = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getattr__(self, name: str) -> Any:
        """Return a column as a list, and keep it; Python calls this for a missing attribute only."""
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
        """Return the first `rows` operations, as stored."""
        return StoredHistory(self.table.slice(0, rows), self.source)

    def _decoded(self, name: str) -> list[Any]:
        try:
            return list(map(decoded, self.table[name].to_pylist()))
        except ValueError as error:
            cause = f"the column {name} holds what is not JSON ({error})"
            raise DamagedInput(self.source, cause, next_step=_SEE) from error


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values, each value of a dictionary made once."""
    listed: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            named = chunk.dictionary.to_pylist()
            listed += [None if code is None else named[code] for code in chunk.indices.to_pylist()]
        else:
            listed += chunk.to_pylist()
    return listed


def _checked(table: pa.Table, source: str) -> pa.Table:
    """Return `table` with the types that campaigns write. Raises DamagedInput for missing or other content."""
    import pyarrow as pa

    for name in (*PLAIN_COLUMNS, *JSON_COLUMNS):
        fault = _fault_of(name, table)
        if fault:
            cause = f"it does not hold histories of a campaign: it has {fault}"
            raise DamagedInput(source, cause, next_step=_SEE)
    try:
        table.validate(full=True)
        table = _with_usual_types(table)
    except pa.ArrowInvalid as error:
        raise DamagedInput(source, str(error), next_step=_SEE) from error
    for cause in _impossible(table):
        raise DamagedInput(source, cause, next_step=_SEE)
    return table


def _with_usual_types(table: pa.Table) -> pa.Table:
    """Return `table` with the types that campaigns write: other programs store the same values as other types."""
    import pyarrow as pa
    from pyarrow import types

    for name in (*PLAIN_COLUMNS, *JSON_COLUMNS):
        place, kind = table.column_names.index(name), table[name].type
        usual = pa.int64() if name in _INTEGERS else pa.string()
        if kind != usual and not (name in PLAIN_COLUMNS and types.is_dictionary(kind) and kind.value_type == usual):
            table = table.set_column(place, name, table[name].cast(usual))
    return table


def _impossible(table: pa.Table) -> Iterator[str]:
    """Yield each reason why these are no operations of single-threaded clients in order of invocation."""
    import numpy as np
    import pyarrow.compute as pc

    process, invoked, completed = (np.asarray(table[name]).astype(np.int64) for name in _ORDER)
    outcomes = set(pc.unique(table["outcome"]).to_pylist())
    if not outcomes <= _OUTCOMES:
        yield f"the column outcome holds {min(outcomes - _OUTCOMES)!r:.60}"
    if len(invoked) and (invoked[0] < 0 or (np.diff(invoked) <= 0).any()):
        yield "the indices of the invocations do not grow"
    if ((completed != OPEN) & (completed <= invoked)).any():
        yield "an operation completes before it is invoked"
    if pc.any(pc.and_(pc.equal(table["complete_index"], OPEN), pc.not_equal(table["outcome"], "info"))).as_py():
        yield "an operation has an answer and no completion"
    indices = np.sort(np.concatenate([invoked, completed[completed != OPEN]]), kind="stable")
    if (np.diff(indices) == 0).any():
        yield "two events have the same index"
    by_process = np.lexsort((invoked, process))
    same = np.diff(process[by_process]) == 0
    before, after = completed[by_process][:-1][same], invoked[by_process][1:][same]
    if ((before == OPEN) | (before >= after)).any():
        yield "a process invokes while its operation before is still open"


def _fault_of(name: str, table: pa.Table) -> str:
    """Return the fault of the column called `name`, to be said after *it has*; empty when it has none."""
    from pyarrow import types

    if table.column_names.count(name) != 1:
        return f"{table.column_names.count(name) or 'no'} column {name}"
    column = table[name]
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not (types.is_integer(kind) if name in _INTEGERS else types.is_string(kind) or types.is_large_string(kind)):
        return f"a column {name} of {column.type}"
    return f"an operation without {name}" if column.null_count and name not in _MAY_BE_NULL else ""
