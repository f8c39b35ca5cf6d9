"""Anomalies of transactions of writes to registers and reads of them.

- `lost-write`, drawn from acknowledged transactions a write of which stood at a moment: its keys hold the values
  before;
- `half-transaction`, drawn from the same, of those that wrote two keys of which both stood: one of the keys holds
  the value before;
- `stale-read`, drawn from reads of values acknowledged before they began: the read has a value that was overwritten,
  or none;
- `fractured-read`, drawn from transactions that saw two keys which another had written: one of the reads has the
  value before;
- `long-fork`, drawn from pairs of keys with two reads that overlap the writes of both: each of the reads sees only
  one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Insertion
from faultline.sensitivity.moments import Moments, drawn
from faultline.sensitivity.timeline import NOTHING, Read, Slip, Timeline, Write
from faultline.sensitivity.transactions import Step, Transactions

__all__ = ["forked_transactions", "register_transactions"]


class _Registers:
    """The registers of a run over time."""

    def __init__(self, record: RunRecord) -> None:
        self.history, self.moments = record.history, Moments(record.history)
        self.transactions = Transactions(record.history, "w")
        self._timelines: dict[str, Timeline] = {}

    def timeline(self, key: str) -> Timeline:
        """Return the values of `key` over time."""
        if key not in self._timelines:
            rows = self.transactions.rows_of_key[key]
            self._timelines[key] = Timeline(self._writes(key, rows), self._reads(key))
        return self._timelines[key]

    def _writes(self, key: str, rows: Sequence[int]) -> Iterator[Write]:
        for row in rows:
            written = self.transactions.writes[row].get(key)
            if written and self.history.outcome[row] != "fail":
                begin, outcome = self.history.invoke_index[row], self.history.outcome[row]
                yield Write(row, written[-1], begin, self.transactions.end(row), outcome)

    def _reads(self, key: str) -> Iterator[Read]:
        for step in self.transactions.reads_of_key.get(key, ()):
            begin, end = self.history.invoke_index[step.row], self.history.complete_index[step.row]
            yield Read(step.row, step.seen, begin, end, step.place)

    def standing(self, row: int) -> dict[int, tuple[str, ...]]:
        """Return the moments at which writes of the transaction in `row` stood, with their keys."""
        standing: dict[int, tuple[str, ...]] = {}
        for key, place in self._places(row):
            end, until = self.history.complete_index[row], self.timeline(key).stood_until(place)
            for moment in self.moments.between(end, int(until)):
                standing[moment] = (*standing.get(moment, ()), key)
        return standing

    def _places(self, row: int) -> Iterator[tuple[str, int]]:
        for key, written in self.transactions.writes[row].items():
            place = self.timeline(key).place_of.get(repr(written[-1]), NOTHING)
            if place != NOTHING:
                yield key, place

    def forgotten(self, row: int, chance: int, *, half: bool) -> Insertion | None:
        """Return the insertion in which the writes of `row` are gone from a moment on: all, or one of at least two."""
        due = [(moment, keys) for moment, keys in self.standing(row).items() if len(keys) > half]
        if not due:
            return None
        moment, keys = drawn(due, chance)
        chosen = (drawn(keys, chance // 64),) if half else keys
        answers: dict[tuple[int, int], Any] = {}
        for key, place in self._places(row):
            if key in chosen:
                _, changed = self.timeline(key).replayed(Slip(place, moment))
                answers |= {(read.row, read.step): value for read, value in changed}
        if not answers and all(self.timeline(key).is_overwritten_after(moment) for key in chosen):
            return None
        return self.transactions.insertion(chosen[0], answers)

    def older(self, read: Step, before: Callable[[Timeline, int], int]) -> Insertion:
        """Return the insertion in which the transaction sees, in the key of `read`, the value that `before` gives."""
        timeline = self.timeline(read.key)
        value = timeline.value_at(before(timeline, timeline.place_of[repr(read.seen)]))
        answers = {
            (other.row, other.place): value
            for other in self.transactions.reads_of_row[read.row]
            if other.key == read.key and other.seen == read.seen
        }
        return self.transactions.insertion(read.key, answers)

    def writer_of(self, read: Step) -> int | None:
        """Return the row that wrote the value of the read."""
        timeline = self.timeline(read.key)
        place = timeline.place_of.get(repr(read.seen), NOTHING)
        return None if place == NOTHING else timeline.writes[place].row


def register_transactions(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of transactions on registers that are strictly serializable."""
    registers = _Registers(record)
    seen = [read for read in registers.transactions.reads if read.seen is not None]

    def stale(read: Step, _chance: int) -> Insertion | None:
        if not registers.transactions.is_known(registers.writer_of(read), read):
            return None
        return registers.older(read, Timeline.certainly_older)

    def fractured(read: Step, _chance: int) -> Insertion | None:
        writer, others = registers.writer_of(read), registers.transactions.reads_of_row[read.row]
        if writer is None or not any(
            other.key != read.key and registers.writer_of(other) == writer for other in others
        ):
            return None
        return registers.older(read, lambda _timeline, place: place - 1)

    return (
        _lost(registers),
        Anomaly(
            "half-transaction",
            registers.transactions.acknowledged(2),
            lambda row, chance: registers.forgotten(row, chance, half=True),
            "No acknowledged writes to two keys stood when a fault began or ended.",
        ),
        Anomaly("stale-read", seen, stale, "No read began after the acknowledgement of a value that it saw."),
        Anomaly("fractured-read", seen, fractured, "No transaction saw two keys that another had written."),
    )


def forked_transactions(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of pairs of keys that are written once each."""
    registers = _Registers(record)
    reads = [row for row, steps in registers.transactions.reads_of_row.items() if len(steps) == 2]

    def insert(row: int, _chance: int) -> Insertion | None:
        left, right = registers.transactions.reads_of_row[row]
        others = [step for step in registers.transactions.reads_of_key[left.key] if step.row < row]
        other = next((step for step in reversed(others) if _overlaps(registers, step.row)), None)
        if other is None or not _overlaps(registers, row):
            return None
        return registers.transactions.insertion(left.key, {(row, right.place): None, (other.row, other.place): None})

    missing = "No two reads overlapped the writes of both keys of a pair."
    return (_lost(registers), Anomaly("long-fork", reads, insert, missing))


def _lost(registers: _Registers) -> Anomaly:
    return Anomaly(
        "lost-write",
        registers.transactions.acknowledged(),
        lambda row, chance: registers.forgotten(row, chance, half=False),
        "No acknowledged write stood when a fault began or ended.",
    )


def _overlaps(registers: _Registers, row: int) -> bool:
    """Return whether the read saw both writes of its pair, and began before both were over."""
    writers = [registers.writer_of(step) for step in registers.transactions.reads_of_row[row]]
    ends = [registers.transactions.end(writer) for writer in writers if writer is not None]
    return len(ends) == 2 and max(ends) > registers.history.invoke_index[row]
