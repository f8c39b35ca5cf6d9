"""The versions of append-only lists, and the order in which they were installed (Elle).

A list shows its own past: a read of `[1, 2, 5]` has seen the three versions before. So the longest read of a key gives
the order of its versions, every other read must be a prefix of it, and the writer of each version is known because each
element is appended once. Elements that were never read come after all that were.

A *position* is a version: the version orders of all keys follow each other in one column, key `k` from `first[k]` to
`first[k + 1]`. A read of length `n` saw the version at position `first[k] + n - 1`, or none when `n` is 0.

If the longest read holds an element twice, the order ends before the repetition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import (
    FAIL,
    OK,
    Booleans,
    Integers,
    TransactionColumns,
    malformed_transaction,
)

__all__ = ["GARBAGE", "ListVersions", "find_list_versions"]

GARBAGE = -1
"""The mark for an element that no transaction appended."""


@dataclass(frozen=True, slots=True)
class ListVersions:
    """Version orders and reads of a list-append history.

    `first` has each key's first position (one entry more at the end), `append` the micro-operation that wrote each
    version or `GARBAGE`, `position` the version that each micro-operation wrote or -1. `read` are the micro-operations
    that read (of transactions that are ok), with `length` and `fits`: whether the read is a prefix of the version
    order. `longest` is the micro-operation whose read gave a key's order, -1 without any. `repeated` has the keys whose
    longest read holds an element twice.
    """

    first: Integers
    append: Integers
    position: Integers
    read: Integers
    length: Integers
    fits: Booleans
    longest: Integers
    repeated: list[int]

    def writer(self, columns: TransactionColumns) -> Integers:
        """Return the transaction that wrote each version, -1 for garbage."""
        return np.where(self.append == GARBAGE, -1, columns.owner[self.append])

    def happened(self, columns: TransactionColumns) -> Booleans:
        """Return which transactions took effect for certain: the ok ones, and unknown ones with an append that was
        read.

        Transactions are atomic: when one of its appends was read, the transaction has appended them all.
        """
        writer = self.writer(columns)
        happened: Booleans = columns.outcome == OK
        happened[writer[writer >= 0]] = True
        happened[columns.outcome == FAIL] = False
        return happened

    def committed(self, columns: TransactionColumns) -> Booleans:
        """Return which versions count: those of a known writer that did not fail."""
        writer = self.writer(columns)
        standing: Booleans = (writer >= 0) & (columns.outcome[writer] != FAIL)
        return standing


class _Collected:
    def __init__(self) -> None:
        self.append: list[int] = []
        self.first = [0]
        self.length: list[int] = []
        self.fits: list[bool] = []
        self.longest: list[int] = []
        self.repeated: list[int] = []


def find_list_versions(columns: TransactionColumns) -> ListVersions:
    """Put the versions of every key in order. Raise UsageError for an element that is appended to a key twice."""
    order = np.argsort(columns.key, kind="stable")
    reading = columns.is_read[order]
    appends = order[~reading]
    reads = order[reading & (columns.outcome[columns.owner[order]] == OK)]
    keys = len(columns.keys)
    append_bounds = np.searchsorted(columns.key[appends], np.arange(keys + 1)).tolist()
    read_bounds = np.searchsorted(columns.key[reads], np.arange(keys + 1)).tolist()
    append_list, read_list = appends.tolist(), reads.tolist()
    collected = _Collected()
    for key in range(keys):
        _one_key(
            columns,
            collected,
            append_list[append_bounds[key] : append_bounds[key + 1]],
            read_list[read_bounds[key] : read_bounds[key + 1]],
        )
    append = np.array(collected.append, dtype=np.int64)
    position = np.full(len(columns.key), -1, dtype=np.int64)
    written = append != GARBAGE
    position[append[written]] = np.flatnonzero(written)
    return ListVersions(
        first=np.array(collected.first, dtype=np.int64),
        append=append,
        position=position,
        read=reads,
        length=np.array(collected.length, dtype=np.int64),
        fits=np.array(collected.fits, dtype=np.bool_),
        longest=np.array(collected.longest, dtype=np.int64),
        repeated=collected.repeated,
    )


def _one_key(columns: TransactionColumns, collected: _Collected, appends: list[int], reads: list[int]) -> None:
    values = columns.values
    elements: list[Any] = [values[micro] for micro in appends]
    lists: list[Any] = [values[micro] or () for micro in reads]
    try:
        lengths = list(map(len, lists))
    except TypeError as error:
        raise _not_a_list(columns, reads) from error
    number = lengths.index(max(lengths)) if lengths else -1
    longest = lists[number] if lengths else ()
    try:
        writer = dict(zip(elements, appends, strict=True))
        written = list(map(writer.get, longest, repeat(GARBAGE)))
    except TypeError:
        writer = dict(zip(map(hashable, elements), appends, strict=True))
        written = [writer.get(hashable(element), GARBAGE) for element in longest]
    if len(writer) != len(elements):
        raise _written_twice(columns, appends)
    if not all(type(entry) is type(longest) or not entry for entry in lists):
        raise _not_a_list(columns, reads)
    collected.longest.append(reads[number] if written else -1)
    clean = _before_repetition(longest, written)
    if clean < len(longest):
        collected.repeated.append(len(collected.first) - 1)
    collected.append += written[:clean]
    collected.first.append(len(collected.append))
    collected.length += lengths
    collected.fits += [
        length <= clean and entry == longest[:length] if length else True
        for entry, length in zip(lists, lengths, strict=True)
    ]


def _before_repetition(longest: Any, written: list[int]) -> int:
    """Return the number of elements before the first repeated one."""
    if len(set(written)) == len(written):
        return len(written)
    seen = set()
    for place, element in enumerate(map(hashable, longest)):
        if element in seen:
            return place
        seen.add(element)
    return len(written)


def _not_a_list(columns: TransactionColumns, reads: list[int]) -> Exception:
    wrong = next((m for m in reads if columns.values[m] and not isinstance(columns.values[m], list | tuple)), reads[0])
    text = str(columns.values[wrong])[:80]
    return malformed_transaction(
        int(columns.rows[columns.owner[wrong]]),
        f"read {text!r} from {columns.keys[columns.key[wrong]]!r}, no list",
    )


def _written_twice(columns: TransactionColumns, appends: list[int]) -> Exception:
    counts = Counter(hashable(columns.values[micro]) for micro in appends)
    twice = [m for m in appends if counts[hashable(columns.values[m])] > 1]
    element = hashable(columns.values[twice[0]])
    rows = [int(columns.rows[columns.owner[m]]) for m in twice if hashable(columns.values[m]) == element]
    key = columns.keys[columns.key[twice[0]]]
    return malformed_transaction(
        rows[1],
        f"appends {str(element)[:80]} to {key!r}, which row {rows[0]} appends already: no read can tell which",
    )
