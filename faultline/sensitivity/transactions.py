"""Transactions (`txn`) of reads and writes on several keys: the common part of the anomalies on lists and on
registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import OPEN, History
from faultline.harness.sensitivity import Answer, Insertion
from faultline.sensitivity.moments import NEVER

__all__ = ["Step", "Transactions"]


class Step(NamedTuple):
    """A read of `key` in `row`, at `place` within it, which saw writes of other transactions."""

    row: int
    place: int
    key: str
    seen: Any


class Transactions:
    """The transactions of a history: their writes, their reads of each other, and the keys that belong together."""

    def __init__(self, history: History, write: str) -> None:
        self.history = history
        self.writes: dict[int, dict[str, list[Any]]] = {}
        self.reads: list[Step] = []
        for row in range(len(history)):
            self.writes[row] = _written(history.value[row], write)
            if history.outcome[row] == "ok":
                self.reads += _reads(history, row)
        self.reads_of_key: dict[str, list[Step]] = {}
        self.reads_of_row: dict[int, list[Step]] = {}
        for read in self.reads:
            self.reads_of_key.setdefault(read.key, []).append(read)
            self.reads_of_row.setdefault(read.row, []).append(read)
        self.rows_of_key = self._rows_of_key()

    def acknowledged(self, keys: int = 1) -> list[int]:
        """Return the acknowledged rows that wrote at least that many keys."""
        return [
            row for row, written in self.writes.items() if len(written) >= keys and self.history.outcome[row] == "ok"
        ]

    def end(self, row: int) -> int:
        """Return when the transaction ended, NEVER where that is unknown."""
        end = self.history.complete_index[row]
        return NEVER if end == OPEN or self.history.outcome[row] == "info" else end

    def is_known(self, writer: int | None, read: Step) -> bool:
        """Return whether `writer` had been acknowledged before the read began."""
        return (
            writer is not None
            and self.history.outcome[writer] == "ok"
            and self.history.complete_index[writer] < self.history.invoke_index[read.row]
        )

    def insertion(self, key: str, answers: Mapping[tuple[int, int], Any]) -> Insertion:
        """Return the insertion of `answers`, by row and place, judged with all keys that transactions join to `key`."""
        changes: dict[int, Answer] = {}
        for (row, place), seen in answers.items():
            before = changes[row].result if row in changes else self.history.result[row]
            after = [[*step[:2], seen] if number == place else step for number, step in enumerate(before)]
            changes[row] = Answer("ok", after)
        return Insertion(changes, self.rows_of_key[key])

    def _rows_of_key(self) -> dict[str, Sequence[int]]:
        """Return, for each key, the rows of all keys that transactions join to it; joined keys share one list."""
        group_of: dict[str, set[str]] = {}
        for value in self.history.value:
            joined = set().union(*(group_of.get(step[1], {step[1]}) for step in value))
            group_of.update(dict.fromkeys(joined, joined))
        first_of = {key: min(group) for key, group in group_of.items()}
        rows: dict[str, list[int]] = {first: [] for first in first_of.values()}
        for row, value in enumerate(self.history.value):
            if value:
                rows[first_of[value[0][1]]].append(row)
        return {key: rows[first] for key, first in first_of.items()}


def _written(steps: Sequence[Any], write: str) -> dict[str, list[Any]]:
    """Return the writes of a transaction, by key, in order."""
    written: dict[str, list[Any]] = {}
    for f, key, value in steps:
        if f == write:
            written.setdefault(key, []).append(value)
    return written


def _reads(history: History, row: int) -> Iterator[Step]:
    """Yield the reads of keys that the transaction itself had not written yet."""
    own: set[str] = set()
    for place, (f, key, value) in enumerate(history.result[row]):
        if f != "r":
            own.add(key)
        elif key not in own:
            yield Step(row, place, key, value)
