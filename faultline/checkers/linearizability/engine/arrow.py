"""Operations on registers as columns, straight from a stored history: no Python object for any row.

The meaning of a row stands in `linearizability.operations`, and `registers` applies it row by row; here the rows of one
kind are handled together, by masks. Values are JSON text in the table, and equal values are given equal numbers:
integers are parsed by Arrow; of any other text each *distinct* one is decoded once. Compare-and-sets of pairs that are
not scalars, and functions that the model does not know, are left to the way row by row, which names what is wrong.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from faultline.checkers.linearizability.engine.columns import PENDING, Columns, Numbers
from faultline.checkers.linearizability.operations import AVOID, OBSERVE, SWAP, WRITE, FailedCas, canonical
from faultline.harness.outcome import CAS_MISMATCH
from faultline.harness.untrusted import decoded

__all__ = ["columns_of_table"]

_SCALAR = r'null|true|false|-?[0-9][0-9.eE+-]*|"[^"\\]*"'
_PAIR = rf"^\[(?P<expected>{_SCALAR}),(?P<new>{_SCALAR})\]$"
_FUNCTIONS = frozenset(("read", "write", "cas"))

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


class _Rows(NamedTuple):
    """The rows of each kind, as masks."""

    observed: Mask
    written: Mask
    swapped: Mask
    refused: Mask
    answered: Mask


def columns_of_table(
    table: pa.Table, failed_cas: FailedCas = "observe", functions: frozenset[str] | None = None
) -> Columns | None:
    """Return all keys of the history in `table` as registers, keys in order of first use.

    None when it holds a value that only the way row by row can read, or refuse.
    """
    rows = _rows(table, failed_cas, functions)
    if rows is None:
        return None
    pair_wanted = rows.swapped | rows.refused
    pairs = _pairs(table, pair_wanted)
    if pairs is None:
        return None
    taken = np.flatnonzero(rows.observed | rows.written | pair_wanted)
    texts = pc.if_else(pa.array(rows.observed), _whole(table["result"]), _whole(table["value"]))
    expected, new = pairs
    if len(expected):
        texts = pc.replace_with_mask(texts, pa.array(pair_wanted), expected)
    try:
        numbers, values = _numbered(pa.concat_arrays([texts.take(pa.array(taken)), new]))
    except ValueError:  # the generic way says what is wrong
        return None
    return _assembled(table, rows, taken, numbers, values)


def _rows(table: pa.Table, failed_cas: FailedCas, functions: frozenset[str] | None) -> _Rows | None:
    f, names = _coded(table["f"])
    known = _FUNCTIONS if functions is None else _FUNCTIONS & (functions | {"read"})
    if not {names[code] for code in np.unique(f)} <= known:
        return None
    outcome, outcomes = _coded(table["outcome"])
    error, errors = _coded(table["error"])
    ok, failed = _is(outcome, outcomes, "ok"), _is(outcome, outcomes, "fail")
    cas = _is(f, names, "cas")
    mismatched = failed & _is(error, errors, CAS_MISMATCH)
    return _Rows(
        _is(f, names, "read") & ok,
        _is(f, names, "write") & ~failed,
        cas & ~failed,
        cas & mismatched & (failed_cas == "observe"),
        ok | mismatched,
    )


def _assembled(table: pa.Table, rows: _Rows, taken: Integers, numbers: Integers, values: list[Any]) -> Columns:
    first, second = numbers[: len(taken)], np.zeros(len(taken), np.int64)
    is_pair = (rows.swapped | rows.refused)[taken]
    second[is_pair] = numbers[len(taken) :]
    written, refused, answered = rows.written[taken], rows.refused[taken], rows.answered[taken]
    swapped = rows.swapped[taken] & (first != second)
    kind = np.select([written, refused, swapped], [WRITE, AVOID, SWAP], OBSERVE)
    demand = np.where(written, 0, first)
    produce = np.where(written, first, np.where(swapped, second, 0))
    call, return_ = _integers(table["invoke_index"])[taken], _integers(table["complete_index"])[taken]
    return_ = np.where(answered, return_, PENDING)
    key, keys = _keys(table["key"])
    # Replacing a value by itself is nothing at all when it is not known to have succeeded.
    kept = answered | written | swapped
    narrow = [array("i", column[kept].astype(np.int32).tobytes()) for column in (demand, produce)]
    wide = [array("q", column[kept].astype(np.int64).tobytes()) for column in (call, return_, taken)]
    keyed = array("i", key[taken][kept].astype(np.int32).tobytes())
    return Columns(keys, values, keyed, array("b", kind[kept].astype(np.int8).tobytes()), *narrow, *wide)


def _pairs(table: pa.Table, wanted: Mask) -> tuple[pa.Array, pa.Array] | None:
    """Return the values that the wanted compare-and-sets expected and put, as text; None if they are no two scalars."""
    if not wanted.any():
        return pa.array([], pa.string()), pa.array([], pa.string())
    found = pc.extract_regex(_whole(table["value"]).filter(pa.array(wanted)), pattern=_PAIR)
    if found.null_count:
        return None
    return found.field("expected"), found.field("new")


def _numbered(texts: pa.Array) -> tuple[Integers, list[Any]]:
    """Return dense numbers for values given as JSON text, 0 for null, and the value of each number."""
    texts = pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts)
    # Where every value is an integer, written as JSON has it, the integers themselves are numbered and no text is
    # decoded; "01" or "1.0" must not be taken for 1 here, hence the way back to text.
    try:
        integers = pc.cast(texts, pa.int64())
        is_exact = bool(pc.all(pc.equal(pc.cast(integers, pa.string()), texts)).as_py() is not False)
    except pa.ArrowInvalid:
        is_exact = False
    encoded = (integers if is_exact else texts).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64) + 1
    distinct = encoded.dictionary.to_pylist()
    if is_exact:
        return codes, [None, *distinct]
    numbers = Numbers([None])
    by_code = np.array([0, *(numbers[canonical(decoded(text))] for text in distinct)], np.int64)
    return by_code[codes], list(numbers)


def _keys(column: pa.ChunkedArray) -> tuple[Integers, list[Any]]:
    """Return the number of each row's key, in order of first use, and the keys."""
    codes, names = _coded(column)
    first = np.full(len(names), len(codes), np.int64)
    # The last assignment to a place wins: backwards, that is the first row of each key.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = [code for code in np.argsort(first, kind="stable").tolist() if first[code] < len(codes)]
    renumbered = np.zeros(len(names), np.int64)
    renumbered[order] = np.arange(len(order))
    return renumbered[codes], [names[code] for code in order]


def _coded(column: pa.ChunkedArray) -> tuple[Integers, list[Any]]:
    """Return a column of strings as codes and their meanings, the last of them for null."""
    array_ = _whole(column)
    if not pa.types.is_dictionary(array_.type):
        array_ = array_.dictionary_encode()
    names = [*array_.dictionary.to_pylist(), None]
    return np.asarray(array_.indices.fill_null(len(names) - 1)).astype(np.int64), names


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _is(codes: Integers, names: list[Any], name: str) -> Mask:
    is_it: Mask = codes == names.index(name) if name in names else np.zeros(len(codes), np.bool_)
    return is_it


def _integers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(_whole(column)).astype(np.int64)
