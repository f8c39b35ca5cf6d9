"""Anomalies of registers that answer with concurrent values (`siblings`), and of values that spread (`metadata`).

Of `siblings`:

- `lost-write`, drawn from acknowledged values that stood at a moment: no later read has the value;
- `stale-read`, drawn from reads of values acknowledged before they began: the read lacks one of them;
- `resurrected-write`, drawn from reads that lack a value which one before had: the read has it again;
- `duplicate-element`, drawn from reads that have a value: the read has it twice.

Of `metadata`:

- `stale-replica`, drawn from keys with an acknowledged write × nodes: after the heal the node has an older value, or
  none;
- `missing-member`, drawn from nodes: after the heal its views lack another node.

A value stands until a read that began after its acknowledgement lacks it: it was replaced then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Answer, Insertion
from faultline.sensitivity.moments import NEVER, Moments, drawn

__all__ = ["siblings", "spreading_values"]


class _Key(NamedTuple):
    """A key: its rows, its writes by value, and the reads with their answers."""

    rows: Sequence[int]
    writes: dict[Any, int]
    reads: dict[int, list[Any]]


Change = Callable[[list[Any], Any], list[Any]]


class _Keys:
    """The keys of a run, each computed when it is asked for."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._rows = history.rows_by_key()
        self._known: dict[str | None, _Key] = {}

    def of(self, row: int) -> _Key:
        """Return the key that the operation in `row` is about."""
        key = self.history.key[row]
        if key not in self._known:
            self._known[key] = _key(self.history, self._rows[key])
        return self._known[key]


def siblings(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of registers that answer with concurrent values."""
    history, keys = record.history, _Keys(record.history)

    def known(key: _Key, row: int) -> list[Any]:
        return [value for value in key.reads[row] if _is_known(history, key, row, value)]

    missing = "No read began after the acknowledgement of a value that it saw."
    return (
        _lost(history, keys),
        _one_read("stale-read", keys, known, _without, missing),
        _one_read(
            "resurrected-write",
            keys,
            lambda key, row: _gone(history, key, row),
            lambda seen, value: [*seen, value],
            "No value that had been read was missing later.",
        ),
        _one_read(
            "duplicate-element",
            keys,
            lambda key, row: key.reads[row],
            lambda seen, value: [*seen, value],
            "No read found a value.",
        ),
    )


def _without(seen: list[Any], value: Any) -> list[Any]:
    return [other for other in seen if other != value]


def _key(history: History, rows: Sequence[int]) -> _Key:
    reads = [row for row in rows if history.f[row] == "read" and history.outcome[row] == "ok"]
    return _Key(
        rows,
        {history.value[row]: row for row in rows if history.f[row] == "write"},
        {row: list(history.result[row] or ()) for row in reads},
    )


def _lost(history: History, keys: _Keys) -> Anomaly:
    moments = Moments(history)

    def insert(row: int, chance: int) -> Insertion | None:
        key, value = keys.of(row), history.value[row]
        due = moments.between(history.complete_index[row], _replaced(history, key, value, row))
        if not due:
            return None
        moment = drawn(due, chance)
        changes = {
            read: Answer("ok", _without(seen, value))
            for read, seen in key.reads.items()
            if history.invoke_index[read] > moment and value in seen
        }
        return Insertion(changes, key.rows)

    places = [row for row in range(len(history)) if history.f[row] == "write" and history.outcome[row] == "ok"]
    return Anomaly("lost-write", places, insert, "No acknowledged write stood when a fault began or ended.")


def _replaced(history: History, key: _Key, value: Any, write: int) -> int:
    """Return when `value` was seen to be replaced."""
    end = history.complete_index[write]
    lacking = [history.invoke_index[row] for row, seen in key.reads.items() if value not in seen]
    return min((begin for begin in lacking if begin > end), default=NEVER)


def _one_read(
    name: str, keys: _Keys, choices: Callable[[_Key, int], Sequence[Any]], change: Change, missing: str
) -> Anomaly:
    """Return the anomaly of one read in which `change` is made with one of its `choices`."""
    history = keys.history

    def insert(row: int, chance: int) -> Insertion | None:
        key = keys.of(row)
        due = choices(key, row)
        return Insertion({row: Answer("ok", change(key.reads[row], drawn(due, chance)))}, key.rows) if due else None

    places = [row for row in range(len(history)) if history.f[row] == "read" and history.outcome[row] == "ok"]
    return Anomaly(name, places, insert, missing)


def _is_known(history: History, key: _Key, read: int, value: Any) -> bool:
    row = key.writes.get(value)
    return row is not None and history.outcome[row] == "ok" and history.complete_index[row] < history.invoke_index[read]


def _gone(history: History, key: _Key, read: int) -> list[Any]:
    """Return the values that reads before this one had seen, and this one has not."""
    before = [seen for row, seen in key.reads.items() if history.complete_index[row] < history.invoke_index[read]]
    return list(dict.fromkeys(value for seen in before for value in seen if value not in key.reads[read]))


def spreading_values(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of values that all nodes know after a while, and of the views of live nodes."""
    history, nodes = record.history, record.plan.nodes
    after = [row for row in range(len(history)) if history.invoke_us[row] >= record.healed_us]
    answered = [row for row in after if history.outcome[row] == "ok"]
    keys = {
        key: written
        for key, rows in history.rows_by_key().items()
        if (written := [row for row in rows if history.f[row] == "write" and history.outcome[row] == "ok"])
    }
    everything = range(len(history))

    def stale(place: tuple[str | None, str], _chance: int) -> Insertion:
        key, node = place
        changes = {
            row: Answer("ok", _older(history, keys[key], history.result[row]))
            for row in answered
            if history.f[row] == "read" and history.key[row] == key and history.node[row] == node
        }
        return Insertion(
            {row: answer for row, answer in changes.items() if answer.result != history.result[row]}, everything
        )

    def blind(node: str, chance: int) -> Insertion:
        lacked = drawn([other for other in nodes if other != node], chance)
        changes = {
            row: Answer("ok", [other for other in history.result[row] if other != lacked])
            for row in answered
            if history.f[row] == "view" and history.node[row] == node
        }
        return Insertion(changes, everything)

    places = [(key, node) for key in keys for node in nodes]
    return (
        Anomaly("stale-replica", places, stale, "No write was acknowledged."),
        Anomaly("missing-member", nodes if len(nodes) > 1 else (), blind, "The cluster has one node."),
    )


def _older(history: History, written: Sequence[int], value: Any) -> Any:
    """Return the value of the newest acknowledged write that had ended before that of `value` began."""
    begin = next((history.invoke_index[row] for row in written if history.value[row] == value), 0)
    older = [row for row in written if history.complete_index[row] < begin]
    return history.value[max(older, key=history.complete_index.__getitem__)] if older else None
