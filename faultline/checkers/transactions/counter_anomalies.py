"""Anomalies of counters that need no cycle: impossible values, and reads that contradict their own transaction.

A value is called impossible if it is below what the reader had added itself, or above that and the sum of all that
others could have added. Whether some subset of the increments adds up to it is not asked: with amounts above 1 a value
between may be impossible and pass.
"""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import TransactionColumns
from faultline.checkers.transactions.counter_reads import CounterReads
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.updates import lost_updates

__all__ = ["counter_anomalies"]


def counter_anomalies(columns: TransactionColumns, reads: CounterReads) -> Observations:
    """Return all of them, with examples."""
    found = Observations(columns)
    limits = _limits(columns, reads)
    known: dict[tuple[int, int], int] = {}
    for read, base in reads.base.items():
        place = int(columns.owner[read]), int(columns.key[read])
        if base < 0:
            _too_little(columns, reads, read, found)
        elif base > limits[place]:
            _too_much(columns, reads, read, limits[place], found)
        if known.setdefault(place, base) != base:
            _unsteady(columns, reads, read, known[place], found)
    state = np.full(len(columns.key), -1, dtype=np.int64)
    for read in reads.external_of.values():
        state[read] = max(-1, reads.base[read])
    lost_updates(columns, state, found)
    return found


def _limits(columns: TransactionColumns, reads: CounterReads) -> dict[tuple[int, int], int]:
    """Return what others could have added, by transaction and key; the sum over a key is taken once."""
    totals: dict[int, int] = {}
    limits: dict[tuple[int, int], int] = {}
    for read in reads.base:
        transaction, key = int(columns.owner[read]), int(columns.key[read])
        own = reads.amounts.get(key, {}).get(transaction, 0)
        if key not in totals:
            totals[key] = reads.possible(columns, read) + own
        limits[transaction, key] = totals[key] - own
    return limits


def _too_little(columns: TransactionColumns, reads: CounterReads, read: int, found: Observations) -> None:
    reader, key, value = int(columns.owner[read]), columns.keys[columns.key[read]], shown(columns.values[read])
    who = found.name(reader).capitalize()
    if columns.values[read] is not None and columns.values[read] < 0:
        text = f"{who} read {value} from {key}, but a counter that is only incremented is never below 0."
        found.add("garbage-read", [reader], text, key)
    else:
        text = f"{who} read {value} from {key}, to which it had added {reads.earlier[read]} itself before that."
        found.add("internal", [reader], text, key)


def _too_much(columns: TransactionColumns, reads: CounterReads, read: int, limit: int, found: Observations) -> None:
    """Note a read of more than others added; failed amounts, or later ones of the reader itself, may explain it."""
    reader, number = int(columns.owner[read]), int(columns.key[read])
    key, base = columns.keys[number], reads.base[read]
    later = reads.amounts.get(number, {}).get(reader, 0) - reads.earlier[read]
    with_failed = reads.possible(columns, read, failed=True)
    who = f"{found.name(reader).capitalize()} read {shown(columns.values[read])} from {key}, {base} of it by others"
    if limit < base <= limit + later and with_failed == limit:
        found.add("future-read", [reader], f"{who}, who add {limit} at most: the rest it added only later.", key)
    elif base <= with_failed + later:
        found.add("G1a", [reader], f"{who}, who add {limit} at most without the transactions that failed.", key)
    else:
        found.add("garbage-read", [reader], f"{who}, who add {with_failed} at most.", key)


def _unsteady(columns: TransactionColumns, reads: CounterReads, read: int, before: int, found: Observations) -> None:
    reader, key = int(columns.owner[read]), columns.keys[columns.key[read]]
    found.add(
        "internal",
        [reader],
        f"{found.name(reader).capitalize()} read {shown(columns.values[read])} from {key}, but by its own earlier "
        f"steps the value was {before + reads.earlier[read]}.",
        key,
    )
