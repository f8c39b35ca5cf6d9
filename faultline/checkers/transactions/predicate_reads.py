"""The versions that each predicate read saw of each object, and the anomalies of reads that need no cycle.

A read has information about every object of the universe (Adya, *Weak Consistency*, chapter 3: it has a version set).
For an object in its answer it saw the version of that value. For an absent object it saw one of the versions that do
not meet the condition; sometimes there is only one. If there is none, the read missed it: *predicate-read-miss*.

The earlier writes of the same transaction show nothing about others; its answer must agree with them (`internal`).
Limits: two reads of one transaction that disagree about an object are found through cycles only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import FAIL, OK
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.predicate_versions import INITIAL, Universe
from faultline.checkers.transactions.predicates import Predicate

__all__ = ["Sighting", "find_sightings"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A read saw one of `versions` of the object `key`; exactly one if the answer `selected` it."""

    read: int
    key: str
    versions: tuple[int, ...]
    selected: bool


def find_sightings(universe: Universe, predicates: dict[str, Predicate], found: Observations) -> list[Sighting]:
    """Return the versions that reads of ok transactions saw; report impossible answers to `found`."""
    columns = universe.columns
    sightings: list[Sighting] = []
    for read in np.flatnonzero(columns.is_read & (columns.outcome[columns.owner] == OK)).tolist():
        predicate = predicates[columns.keys[columns.key[read]]]
        answer = columns.values[read] or {}
        own = _own_before(universe, read)
        for key, value in answer.items():
            _mismatch(universe, predicate, read, key, value, found)
            if key not in universe.visible:
                _garbage(universe, read, key, value, found)
        for key in universe.tables.get(predicate.table, ()):
            if key in own:
                _internal(universe, predicate, read, key, own[key], found)
            elif key in answer:
                sightings += _selected(universe, read, key, answer[key], found)
            else:
                sightings += _passed_over(universe, predicate, read, key, found)
    return sightings


def _own_before(universe: Universe, read: int) -> dict[str, Any]:
    """Return the values that the transaction of `read` had written before it, null where it had deleted."""
    columns = universe.columns
    steps = range(int(columns.start[columns.owner[read]]), read)
    return {columns.keys[columns.key[step]]: columns.values[step] for step in steps if not columns.is_read[step]}


def _mismatch(universe: Universe, predicate: Predicate, read: int, key: str, value: Any, found: Observations) -> None:
    if not predicate.selects(value):
        who, where = _who(universe, read, found)
        reader = int(universe.columns.owner[read])
        found.add("predicate-mismatch", [reader], f"{who} asked for {where} and got {shown(value)} of {key}.", key)


def _garbage(universe: Universe, read: int, key: str, value: Any, found: Observations) -> None:
    who, _ = _who(universe, read, found)
    text = f"{who} read {shown(value)} of {key}, which no transaction had written."
    found.add("garbage-read", [int(universe.columns.owner[read])], text, key)


def _internal(universe: Universe, predicate: Predicate, read: int, key: str, own: Any, found: Observations) -> None:
    seen = (universe.columns.values[read] or {}).get(key)
    if seen == (own if predicate.selects(own) else None):
        return
    who, where = _who(universe, read, found)
    text = (
        f"{who} asked for {where} and found {shown(seen)} of {key}, which it had itself "
        f"{'deleted' if own is None else f'given {shown(own)}'} before."
    )
    found.add("internal", [int(universe.columns.owner[read])], text, key)


def _selected(universe: Universe, read: int, key: str, value: Any, found: Observations) -> list[Sighting]:
    columns, reader = universe.columns, int(universe.columns.owner[read])
    version = universe.by_value.get(key, {}).get(hashable(value))
    if version is None:
        _garbage(universe, read, key, value, found)
        return []
    writer, (who, _) = universe.owner(version), _who(universe, read, found)
    if writer == reader:
        text = f"{who} read {shown(value)} of {key} before it wrote that itself."
        found.add("future-read", [reader], text, key)
    elif writer >= 0 and columns.outcome[writer] == FAIL:
        text = f"{who} read {shown(value)} of {key}, which {found.name(writer)} had meant to write before it failed."
        found.add("G1a", [writer, reader], text, key)
    elif version != INITIAL and universe.last_write[writer, key] != version:
        text = (
            f"{who} read {shown(value)} of {key}, but {found.name(writer)} went on to write to it after that, and "
            "no read may see half a transaction."
        )
        found.add("G1b", [writer, reader], text, key)
    else:
        return [Sighting(read, key, (version,), True)]
    return []


def _passed_over(universe: Universe, predicate: Predicate, read: int, key: str, found: Observations) -> list[Sighting]:
    reader = int(universe.columns.owner[read])
    others = [version for version in universe.visible[key] if universe.owner(version) != reader]
    versions = tuple(version for version in others if not predicate.selects(universe.value(key, version)))
    if versions:
        return [Sighting(read, key, versions, False)]
    who, where = _who(universe, read, found)
    text = f"{who} asked for {where} and did not find {key}, which existed at all times and always met it."
    found.add("predicate-read-miss", [reader], text, key)
    return []


def _who(universe: Universe, read: int, found: Observations) -> tuple[str, str]:
    columns = universe.columns
    return found.name(int(columns.owner[read])).capitalize(), columns.keys[columns.key[read]]
