"""The oracle: whether any order explains a small history of transactions, found by trying all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

from faultline.harness.history import History

__all__ = ["is_serializable", "is_snapshot_isolated", "some_order"]

State = dict[str, Any]


def some_order(history: History, explains: Callable[[History, tuple[int, ...]], bool]) -> bool:
    """Return whether some order of the ok transactions, and of some of the unknown ones, `explains` every answer."""
    return any(explains(history, order) for chosen in _choices(history) for order in permutations(chosen))


def is_serializable(history: History, realtime: bool = False) -> bool:
    """Return whether the ok transactions and some unknown ones fit one after another; in real time if asked."""
    return some_order(history, _fits_in_real_time if realtime else _fits)


def is_snapshot_isolated(history: History) -> bool:
    """Return whether they fit with a snapshot each from its start, and without concurrent writes to one key."""
    return any(_has_snapshots(history, list(chosen)) for chosen in _choices(history))


def _choices(history: History) -> Iterator[tuple[int, ...]]:
    ok = [row for row in range(len(history)) if history.outcome[row] == "ok"]
    unknown = [row for row in range(len(history)) if history.outcome[row] == "info"]
    for happened in product((False, True), repeat=len(unknown)):
        yield (*ok, *(row for row, did in zip(unknown, happened, strict=True) if did))


def _fits(history: History, order: tuple[int, ...]) -> bool:
    state: State = {}
    return all(_runs(history, row, state, state) for row in order)


def _fits_in_real_time(history: History, order: tuple[int, ...]) -> bool:
    return _in_real_time(history, order) and _fits(history, order)


def _in_real_time(history: History, order: tuple[int, ...]) -> bool:
    return not any(
        history.outcome[later] == "ok" and history.complete_index[later] < history.invoke_index[earlier]
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def _runs(history: History, row: int, seen: State, state: State) -> bool:
    """Run one transaction that sees `seen` plus its own writes, and apply these to `state`."""
    own = dict(seen)
    ok = history.outcome[row] == "ok"
    for name, key, value in history.result[row] if ok else history.value[row]:
        if name == "r":
            if ok and (own.get(key) or None) != (value or None):
                return False
            continue
        for target in (own, state) if seen is not state else (own,):
            target[key] = [*target.get(key, []), value] if name == "append" else value
    if seen is state:
        state.update(own)
    return True


def _has_snapshots(history: History, rows: list[int]) -> bool:
    written = {row: {micro[1] for micro in history.value[row] if micro[0] != "r"} for row in rows}

    def extend(states: list[State], commits: list[set[str]], begun: dict[int, int], waiting: list[int]) -> bool:
        if not waiting and not begun:
            return True
        return any(begin(states, commits, begun, waiting, row) for row in waiting) or any(
            commit(states, commits, begun, waiting, row) for row in begun
        )

    def begin(
        states: list[State], commits: list[set[str]], begun: dict[int, int], waiting: list[int], row: int
    ) -> bool:
        return extend(states, commits, {**begun, row: len(states) - 1}, [other for other in waiting if other != row])

    def commit(
        states: list[State], commits: list[set[str]], begun: dict[int, int], waiting: list[int], row: int
    ) -> bool:
        start = begun[row]
        if any(written[row] & other for other in commits[start:]):
            return False
        state = dict(states[-1])
        if not _runs(history, row, states[start], state):
            return False
        rest = {other: at for other, at in begun.items() if other != row}
        return extend([*states, state], [*commits, written[row]], rest, waiting)

    search: Callable[..., bool] = extend
    return search([{}], [], {}, rows)
