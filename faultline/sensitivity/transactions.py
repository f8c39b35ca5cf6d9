"""Transactions (`txn`) of reads and writes on several keys: what the anomalies on lists and on registers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from faultline.harness.history import OPEN, History
from faultline.harness.sensitivity import Answer, Insertion
from faultline.sensitivity.moments import NEVER

__all__ = ["Step", "Transactions"]


class Step(NamedTuple):
    """A read of `key` in `row`, at `place` within it, which saw what others had written."""

    row: int
    place: int
    key: str
    seen: Any


class Transactions:
    """The transactions of a history: who wrote what, who read what of others, and which keys belong together."""

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
        """The rows that wrote so many keys at least, and were told so."""
        return [
            row for row, written in self.writes.items() if len(written) >= keys and self.history.outcome[row] == "ok"
        ]

    def end(self, row: int) -> int:
        """When the transaction was over, NEVER where that is unknown."""
        end = self.history.complete_index[row]
        return NEVER if end == OPEN or self.history.outcome[row] == "info" else end

    def is_known(self, writer: int | None, read: Step) -> bool:
        """Whether `writer` had been acknowledged before the read began."""
        return (
            writer is not None
            and self.history.outcome[writer] == "ok"
            and self.history.complete_index[writer] < self.history.invoke_index[read.row]
        )

    def insertion(self, key: str, answers: Mapping[tuple[int, int], Any]) -> Insertion:
        """Other `answers`, by row and place, judged with everything that transactions join to `key`."""
        changes: dict[int, Answer] = {}
        for (row, place), seen in answers.items():
            before = changes[row].result if row in changes else self.history.result[row]
            after = [[*step[:2], seen] if number == place else step for number, step in enumerate(before)]
            changes[row] = Answer("ok", after)
        return Insertion(changes, self.rows_of_key[key])

    def _rows_of_key(self) -> dict[str, Sequence[int]]:
        """For each key the rows of all keys that transactions join to it, one list for all of them."""
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
    """What a transaction writes, by key, in order."""
    written: dict[str, list[Any]] = {}
    for f, key, value in steps:
        if f == write:
            written.setdefault(key, []).append(value)
    return written


def _reads(history: History, row: int) -> Iterator[Step]:
    """The reads of keys that the transaction itself had not written yet."""
    own: set[str] = set()
    for place, (f, key, value) in enumerate(history.result[row]):
        if f != "r":
            own.add(key)
        elif key not in own:
            yield Step(row, place, key, value)
