"""Anomalies of append-only lists that need no cycle (Elle; *dirty update* and *lost update* from there too).

Each anomaly is first sought in columns, which is cheap when there is none; Python objects are compared only for the few
suspicious transactions.

Whether a read agrees with its own transaction (`internal`) is decided like this: in a transaction, the number of
elements before its own appends must be the same at each of its reads of a key, and its appends must be right there in
the version order. Only transactions that fail this are compared element by element.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import FAIL, OK, Booleans, Integers, TransactionColumns
from faultline.checkers.transactions.list_versions import GARBAGE, ListVersions
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.updates import lost_updates

__all__ = ["list_anomalies"]


def list_anomalies(columns: TransactionColumns, versions: ListVersions) -> Observations:
    """Return all anomalies of lists, with examples."""
    found = Observations(columns)
    _incompatible_orders(columns, versions, found)
    _duplicates(columns, versions, found)
    _bad_versions(columns, versions, found)
    _intermediate_reads(columns, versions, found)
    _disordered_transactions(columns, versions, found)
    _internal(columns, versions, found)
    state = np.full(len(columns.key), -1, dtype=np.int64)
    state[versions.read[versions.fits]] = versions.length[versions.fits]
    lost_updates(columns, state, found)
    return found


def _incompatible_orders(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    for number in np.flatnonzero(~versions.fits).tolist():
        micro = int(versions.read[number])
        key = int(columns.key[micro])
        longest, values = int(versions.longest[key]), columns.values
        if len(set(map(hashable, values[micro]))) < len(values[micro]):
            _duplicate(columns, micro, found)
        if values[micro] == values[longest][: len(values[micro])]:
            continue
        readers = columns.owner[[longest, micro]].tolist()
        found.add(
            "incompatible-order",
            readers,
            f"{found.name(readers[0]).capitalize()} read {shown(values[longest])} from {columns.keys[key]}, and "
            f"{found.name(readers[1])} read {shown(values[micro])}, which is not a prefix of it: one list cannot have "
            "gone through both states.",
            columns.keys[key],
        )
        _bad_elements(columns, versions, micro, found)


def _duplicates(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    for key in versions.repeated:
        _duplicate(columns, int(versions.longest[key]), found)


def _duplicate(columns: TransactionColumns, micro: int, found: Observations) -> None:
    counts = Counter(map(hashable, columns.values[micro]))
    element = next(element for element, count in counts.items() if count > 1)
    key, reader = columns.keys[columns.key[micro]], int(columns.owner[micro])
    found.add(
        "duplicate-elements",
        [reader],
        f"{found.name(reader).capitalize()} read {shown(columns.values[micro])} from {key}, where {shown(element)} "
        f"is {counts[element]} times although it was appended once.",
        key,
    )


def _bad_elements(columns: TransactionColumns, versions: ListVersions, micro: int, found: Observations) -> None:
    """Report elements that are garbage or aborted in a read that is no prefix of the version order."""
    key = columns.key[micro]
    appends = np.flatnonzero(~columns.is_read & (columns.key == key))
    writer = {hashable(columns.values[append]): int(append) for append in appends.tolist()}
    ordered = {int(a) for a in versions.append[versions.first[key] : versions.first[key + 1]]}
    for element in columns.values[micro]:
        append = writer.get(hashable(element), GARBAGE)
        if append == GARBAGE:
            _garbage(columns, micro, element, found)
        elif columns.outcome[columns.owner[append]] == FAIL and append not in ordered:
            _aborted(columns, micro, append, found)


def _bad_versions(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    """Report garbage and aborted elements in the version orders, and committed versions on top of aborted ones."""
    writer = versions.writer(columns)
    bad = np.flatnonzero(~versions.committed(columns))
    for position in bad.tolist():
        key = int(np.searchsorted(versions.first, position, side="right")) - 1
        reading = int(versions.longest[key])
        if writer[position] < 0:
            _garbage(columns, reading, columns.values[reading][position - int(versions.first[key])], found)
            continue
        _aborted(columns, reading, int(versions.append[position]), found)
        last = int(versions.first[key + 1])
        above = [p for p in range(position + 1, last) if writer[p] >= 0 and columns.outcome[writer[p]] != FAIL][:1]
        if above and found.wants("dirty-update"):
            _dirty_update(columns, int(versions.append[position]), int(versions.append[above[0]]), found)
        elif above:
            found.count("dirty-update")


def _garbage(columns: TransactionColumns, micro: int, element: Any, found: Observations) -> None:
    key, reader = columns.keys[columns.key[micro]], int(columns.owner[micro])
    found.add(
        "garbage-read",
        [reader],
        f"{found.name(reader).capitalize()} read {shown(element)} in {key}, which no transaction had appended.",
        key,
    )


def _aborted(columns: TransactionColumns, micro: int, append: int, found: Observations) -> None:
    key, reader, writer = columns.keys[columns.key[micro]], int(columns.owner[micro]), int(columns.owner[append])
    found.add(
        "G1a",
        [writer, reader],
        f"{found.name(writer).capitalize()} failed, yet {found.name(reader)} read {shown(columns.values[append])}, "
        f"which it had meant to append to {key}.",
        key,
    )


def _dirty_update(columns: TransactionColumns, below: int, above: int, found: Observations) -> None:
    failed, writer, key = int(columns.owner[below]), int(columns.owner[above]), columns.keys[columns.key[below]]
    found.add(
        "dirty-update",
        [failed, writer],
        f"{found.name(writer).capitalize()} appended {shown(columns.values[above])} to {key} on top of "
        f"{shown(columns.values[below])}, which {found.name(failed)} had appended before it failed.",
        key,
    )


def _intermediate_reads(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    """Report reads whose last element is not the last one that its transaction appended to that key."""
    fitting = np.flatnonzero(versions.fits & (versions.length > 0))
    read = versions.read[fitting]
    append = versions.append[versions.first[columns.key[read]] + versions.length[fitting] - 1]
    replaced = _replaced_appends(columns)
    suspicious = (append != GARBAGE) & replaced[append] & (columns.owner[append] != columns.owner[read])
    for micro, seen in zip(read[suspicious].tolist(), append[suspicious].tolist(), strict=True):
        key, reader, writer = columns.keys[columns.key[micro]], int(columns.owner[micro]), int(columns.owner[seen])
        found.add(
            "G1b",
            [writer, reader],
            f"{found.name(reader).capitalize()} read {key} up to {shown(columns.values[seen])}, but "
            f"{found.name(writer)} appended more to it after that: no read may see half a transaction.",
            key,
        )


def _replaced_appends(columns: TransactionColumns) -> Booleans:
    """Return which appends are followed by another append of the same transaction to the same key."""
    earlier, _ = _successive_appends(columns)
    replaced = np.zeros(len(columns.key) + 1, dtype=np.bool_)
    replaced[earlier] = True
    return replaced


def _successive_appends(columns: TransactionColumns) -> tuple[Integers, Integers]:
    """Return each append with the next one of the same transaction to the same key."""
    appends = np.flatnonzero(~columns.is_read)
    order = appends[np.lexsort((appends, columns.key[appends], columns.owner[appends]))]
    again = (columns.owner[order[:-1]] == columns.owner[order[1:]]) & (
        columns.key[order[:-1]] == columns.key[order[1:]]
    )
    return order[:-1][again], order[1:][again]


def _disordered_transactions(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    """Report transactions whose appends to one key are in another order there, or not all of them."""
    earlier, later = _successive_appends(columns)
    before, after = versions.position[earlier], versions.position[later]
    wrong = (after >= 0) & (before > after) | (after >= 0) & (before < 0)
    for one, other in zip(earlier[wrong].tolist(), later[wrong].tolist(), strict=True):
        key, number = columns.keys[columns.key[one]], int(columns.key[one])
        writer, reader = int(columns.owner[one]), int(columns.owner[versions.longest[number]])
        found.add(
            "incompatible-order",
            [writer, reader],
            f"{found.name(writer).capitalize()} appended {shown(columns.values[one])} to {key} and then "
            f"{shown(columns.values[other])}, but in what {found.name(reader)} read, the former does not come before "
            "the latter.",
            key,
        )


def _internal(columns: TransactionColumns, versions: ListVersions, found: Observations) -> None:
    """Report transactions whose reads contradict their own earlier steps, or have their own later ones."""
    order, group = _grouped(columns)
    if not len(order):
        return
    reading = columns.is_read[order]
    before: Integers = np.cumsum(~reading) - (~reading).astype(np.int64)
    first = np.concatenate(([True], group[1:] != group[:-1]))
    own = before - np.maximum.accumulate(np.where(first, before, 0))
    length = np.full(len(columns.key), -1, dtype=np.int64)
    length[versions.read[versions.fits]] = versions.length[versions.fits]
    base = np.where(reading, length[order] - own, -1)
    unfit = reading & (length[order] < 0)
    groups = int(group[-1]) + 1
    lowest = np.full(groups, np.iinfo(np.int64).max)
    highest = np.full(groups, -1, dtype=np.int64)
    np.minimum.at(lowest, group[reading], base[reading])
    np.maximum.at(highest, group[reading], base[reading])
    place = np.where(reading, -1, versions.position[order] - versions.first[columns.key[order]])
    last_read = np.full(groups, -1, dtype=np.int64)
    np.maximum.at(last_read, group[reading], np.flatnonzero(reading))
    checked = ~reading & (np.arange(len(order)) < last_read[group])
    misplaced = checked & ((place != lowest[group] + own) | (versions.position[order] < 0))
    # An append that comes after all reads of its key must not be among the elements of those reads.
    foreseen = ~reading & ~checked & (versions.position[order] >= 0) & (highest[group] >= 0)
    foreseen &= place < highest[group]
    bad = (lowest != highest)[group] & reading | unfit | misplaced | foreseen
    for number in np.unique(group[bad]).tolist():
        begin, end = np.searchsorted(group, (number, number + 1)).tolist()
        _one_group(columns, order[begin:end].tolist(), found)


def _grouped(columns: TransactionColumns) -> tuple[Integers, Integers]:
    """Return micro-operations of ok transactions that use a key more than once, by transaction and key; and the
    groups."""
    alive = np.flatnonzero(columns.outcome[columns.owner] == OK)
    order = alive[np.argsort(columns.owner[alive] * len(columns.keys) + columns.key[alive], kind="stable")]
    code = columns.owner[order] * len(columns.keys) + columns.key[order]
    _, group, count = np.unique(code, return_inverse=True, return_counts=True)
    reads = np.bincount(group, weights=columns.is_read[order])
    several = ((count > 1) & (reads > 0))[group]
    _, renumbered = np.unique(group[several], return_inverse=True)
    return order[several], renumbered


def _one_group(columns: TransactionColumns, micros: list[int], found: Observations) -> None:
    """Compare the steps of one transaction on one key, element by element."""
    known: list[Any] | None = None
    appended: list[Any] = []
    transaction, key = int(columns.owner[micros[0]]), columns.keys[columns.key[micros[0]]]
    for place, micro in enumerate(micros):
        value = columns.values[micro]
        if not columns.is_read[micro]:
            appended.append(value)
            continue
        seen = list(value or ())
        later = [columns.values[m] for m in micros[place + 1 :] if not columns.is_read[m]]
        early = next((element for element in later if element in seen), None)
        if early is not None:
            found.add(
                "future-read",
                [transaction],
                f"{found.name(transaction).capitalize()} read {shown(early)} in {key} before it appended it itself.",
                key,
            )
        expected = appended if known is None else known + appended
        agrees = seen[len(seen) - len(appended) :] == appended if known is None else seen == expected
        if not agrees:
            found.add(
                "internal",
                [transaction],
                f"{found.name(transaction).capitalize()} read {shown(seen)} from {key}, but by its own earlier steps "
                f"the list {'ended in' if known is None else 'was'} {shown(expected)}.",
                key,
            )
        known, appended = seen, []
