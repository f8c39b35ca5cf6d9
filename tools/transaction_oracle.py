"""Isolation levels by exhaustive search over small histories, straight from their definitions.

A history keeps a level when its transactions can be run so that each reads what it read: one by one for
serializability, or with a snapshot each for snapshot isolation, where a transaction begins and later commits, and no
two that overlap write the same key. *Strong* levels add that a transaction begins after others have committed: earlier
ones of its process, or all that had completed when it was invoked. Transactions of unknown outcome may happen or not.

Nothing here is shared with the checkers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from faultline.harness.history import History

__all__ = ["LEVELS", "keeps"]

LEVELS = (
    "snapshot-isolation",
    "strong-session-snapshot-isolation",
    "strong-snapshot-isolation",
    "serializable",
    "strong-session-serializable",
    "strict-serializable",
)

_State = tuple[tuple[str, Any], ...]


class _Running(NamedTuple):
    row: int
    snapshot: _State
    overwritten: frozenset[str]


def keeps(history: History, level: str) -> bool:
    """Return whether the transactions of `history`, lists or registers, can be run as `level` says."""
    one_by_one = level.endswith("serializable")
    bodies = {row: _body(history, row) for row in range(len(history)) if history.outcome[row] != "fail"}
    writes = {row: frozenset(key for f, key, _ in body if f != "r") for row, body in bodies.items()}
    needed = frozenset(row for row in bodies if history.outcome[row] == "ok")
    before = {row: frozenset(_before(history, level, row, bodies)) for row in bodies}

    @cache
    def can_go_on(state: _State, running: frozenset[_Running], done: frozenset[int]) -> bool:
        if needed <= done:
            return True
        begun = {one.row for one in running}
        for row in sorted(bodies.keys() - begun - done):
            can_begin = before[row] <= done and _reads_fit(bodies[row], state) and not (one_by_one and running)
            if can_begin and can_go_on(state, running | {_Running(row, state, frozenset())}, done):
                return True
        for one in sorted(running):
            if not one.overwritten & writes[one.row]:
                others = (other._replace(overwritten=other.overwritten | writes[one.row]) for other in running - {one})
                if can_go_on(_written(bodies[one.row], state), frozenset(others), done | {one.row}):
                    return True
        return False

    return can_go_on((), frozenset(), frozenset())


def _body(history: History, row: int) -> list[list[Any]]:
    """Return the micro-operations that count: of an unknown outcome only the writes."""
    if history.outcome[row] == "ok":
        return list(history.result[row])
    return [micro for micro in history.value[row] if micro[0] != "r"]


def _before(history: History, level: str, row: int, rows: Mapping[int, Any]) -> Iterator[int]:
    for other in rows:
        if history.outcome[other] != "ok" or history.complete_index[other] > history.invoke_index[row]:
            continue
        same = history.process[other] == history.process[row]
        if level in ("strict-serializable", "strong-snapshot-isolation") or ("session" in level and same):
            yield other


def _reads_fit(body: list[list[Any]], state: _State) -> bool:
    own = dict(state)
    for f, key, value in body:
        if f == "r":
            if (own.get(key) or None) != (_frozen(value) or None):
                return False
        else:
            own[key] = _after(f, own.get(key), value)
    return True


def _written(body: list[list[Any]], state: _State) -> _State:
    new = dict(state)
    for f, key, value in body:
        if f != "r":
            new[key] = _after(f, new.get(key), value)
    return tuple(sorted(new.items()))


def _after(f: str, old: Any, value: Any) -> Any:
    return (*(old or ()), value) if f == "append" else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
