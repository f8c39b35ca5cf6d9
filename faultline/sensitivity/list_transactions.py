"""Anomalies of transactions of appends to lists and reads of them.

- `lost-write`, drawn from acknowledged transactions that appended × moments after: later reads lack all of their
  elements;
- `half-transaction`, drawn from the same, of those that appended to two lists: later reads of one of the lists lack
  it;
- `duplicate-element`, drawn from acknowledged transactions that appended × moments after: later reads of one list
  have an element twice;
- `stale-read`, drawn from reads of elements acknowledged before they began: the read lacks such an element, and
  those that follow;
- `fractured-read`, drawn from transactions that saw two lists to which another appended: one of the reads lacks that,
  and those that follow;
- `reordered`, drawn from reads of two elements: two neighbours change places;
- `write-skew`, drawn from transactions that saw an element of an overlapping one, which had read a list to which they
  append themselves: the read lacks it, and those that follow, so that neither transaction sees the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from faultline.harness.run_record import RunRecord
from faultline.harness.sensitivity import Anomaly, Insertion
from faultline.sensitivity.moments import Moments, drawn
from faultline.sensitivity.transactions import Step, Transactions

__all__ = ["list_transactions", "skewed_transactions"]

_NO_MOMENT = "No transaction had been acknowledged when a fault began or ended."


class _Lists:
    """The lists of a run, and the writers of their elements."""

    def __init__(self, record: RunRecord) -> None:
        self.transactions = Transactions(record.history, "append")
        self.moments = Moments(record.history)
        self.history = record.history
        self.writer_of = {
            (key, element): row
            for row, written in self.transactions.writes.items()
            for key, elements in written.items()
            for element in elements
        }

    def from_a_moment(
        self, row: int, chance: int, keys: int, change: Callable[[list[Any], list[Any]], list[Any]]
    ) -> Insertion | None:
        """Return the anomaly that makes `change` in reads after a moment, of that many of the lists (0: all)."""
        due = self.moments.between(self.history.complete_index[row])
        if not due:
            return None
        moment, written = drawn(due, chance), self.transactions.writes[row]
        first = chance // 64 % len(written)
        chosen = list(written)[first : first + keys] if keys else list(written)
        answers = {
            (read.row, read.place): change(read.seen, written[key])
            for key in chosen
            for read in self.transactions.reads_of_key.get(key, ())
            if self.history.invoke_index[read.row] > moment and read.seen
        }
        told = {where: seen for where, seen in answers.items() if seen != self._seen(where)}
        return self.transactions.insertion(chosen[0], told)

    def cut(self, read: Step, element: Any) -> Insertion:
        """Return the insertion in which the transaction sees the list of `read` as it was before `element`."""
        answers = {
            (other.row, other.place): other.seen[: other.seen.index(element)]
            for other in self.transactions.reads_of_row[read.row]
            if other.key == read.key and element in other.seen
        }
        return self.transactions.insertion(read.key, answers)

    def _seen(self, where: tuple[int, int]) -> Any:
        row, place = where
        return self.history.result[row][place][2]


def list_transactions(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of transactions on lists that are strictly serializable."""
    lists = _Lists(record)
    return (
        *_from_moments(lists),
        _cut("stale-read", lists, _stale, "No read began after the acknowledgement of an element that it saw."),
        _cut("fractured-read", lists, _fractured, "No transaction saw two lists to which one appended."),
        _exchanged(lists),
    )


def skewed_transactions(record: RunRecord) -> Sequence[Anomaly]:
    """Return the anomalies of transactions that read two lists and append to one of them."""
    lists = _Lists(record)
    lost, *_ = _from_moments(lists)
    return (lost, _cut("write-skew", lists, _skewed, "No two transactions of a pair overlapped."))


def _from_moments(lists: _Lists) -> tuple[Anomaly, Anomaly, Anomaly]:
    def without(seen: list[Any], appended: list[Any]) -> list[Any]:
        return [element for element in seen if element not in appended]

    def twice(seen: list[Any], appended: list[Any]) -> list[Any]:
        return [*seen, appended[0]] if appended[0] in seen else seen

    writers, two = lists.transactions.acknowledged(), lists.transactions.acknowledged(2)
    return (
        Anomaly("lost-write", writers, lambda row, chance: lists.from_a_moment(row, chance, 0, without), _NO_MOMENT),
        Anomaly(
            "half-transaction",
            two,
            lambda row, chance: lists.from_a_moment(row, chance, 1, without),
            "No transaction that appended to two lists had been acknowledged when a fault began or ended.",
        ),
        Anomaly(
            "duplicate-element",
            writers,
            lambda row, chance: lists.from_a_moment(row, chance, 1, twice),
            _NO_MOMENT,
        ),
    )


def _cut(name: str, lists: _Lists, choices: Callable[[_Lists, Step], list[Any]], missing: str) -> Anomaly:
    """Return the anomaly of a read that lacks everything from one of `choices` on."""

    def insert(read: Step, chance: int) -> Insertion | None:
        elements = choices(lists, read)
        return lists.cut(read, drawn(elements, chance)) if elements else None

    return Anomaly(name, [read for read in lists.transactions.reads if read.seen], insert, missing)


def _stale(lists: _Lists, read: Step) -> list[Any]:
    """Return the elements of the read that had been acknowledged before it began."""
    return [
        element for element in read.seen if lists.transactions.is_known(lists.writer_of.get((read.key, element)), read)
    ]


def _fractured(lists: _Lists, read: Step) -> list[Any]:
    """Return the first elements of transactions of which another read of the same transaction saw some too."""
    others = {
        lists.writer_of.get((other.key, element))
        for other in lists.transactions.reads_of_row[read.row]
        if other.key != read.key
        for element in other.seen or ()
    }
    return [
        element
        for element in read.seen
        if (writer := lists.writer_of.get((read.key, element))) in others
        and writer is not None
        and element == lists.transactions.writes[writer][read.key][0]
    ]


def _skewed(lists: _Lists, read: Step) -> list[Any]:
    """Return the elements of overlapping transactions that had read a list to which this one appends."""
    history, transactions = lists.history, lists.transactions
    own = set(transactions.writes[read.row]) - {read.key}
    return [
        element
        for element in read.seen
        if (writer := lists.writer_of.get((read.key, element))) is not None
        and history.outcome[writer] == "ok"
        and history.complete_index[writer] > history.invoke_index[read.row]
        and own & {other.key for other in transactions.reads_of_row.get(writer, ())}
    ]


def _exchanged(lists: _Lists) -> Anomaly:
    places = [read for read in lists.transactions.reads if len(read.seen or ()) > 1]

    def insert(read: Step, chance: int) -> Insertion:
        number, seen = chance % (len(read.seen) - 1), list(read.seen)
        seen[number], seen[number + 1] = seen[number + 1], seen[number]
        return lists.transactions.insertion(read.key, {(read.row, read.place): seen})

    return Anomaly("reordered", places, insert, "No read saw two elements.")
