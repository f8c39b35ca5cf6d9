"""Transactions on lists while they come and go: the incremental twin of `checkers.transactions.list_append`.

Of each list the longest read is known, with the writer of each element; every other read must be a prefix of it. A
transaction that commits brings the dependencies of its reads: on the writer of the last element that it saw, and of the
writer of the next one on it. Elements that are seen for the first time bring those of their writers. A transaction
that is known to have happened, and whose element was not seen yet, comes after all that were: so it depends on the
newest readers. `dependencies` finds the cycles.

Certain besides are two reads of which none is a prefix of the other, an element that was seen and whose transaction
then failed, one seen without a later one of the same transaction, one twice in a read, and a read that disagrees with
its own transaction. An element that no transaction has appended yet is wrong in real time only: without it, the list
is left to the check afterwards.

State: the lists, as long as the store has them, the newest readers of each, and what `dependencies` keeps.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from faultline.checkers.common.words import hashable
from faultline.checkers.incremental.dependencies import TRANSACTIONS_MAX, Dependencies, Transaction
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalLists"]


class _Appending(Transaction):
    """A transaction with its appends, of which `unseen` were not seen; `witness` is the first read that saw one."""

    __slots__ = ("appends", "has_happened", "unseen", "witness")

    def __init__(self, row: int, process: int, after: int) -> None:
        super().__init__(row, process, after)
        self.appends: list[tuple[Hashable, Hashable]] = []
        self.unseen = 0
        self.has_happened = False
        self.witness = -1


class _List:
    """A list: what was seen of it, in order, with the writers, and what else was appended to it.

    `is_final` tells of each element whether its transaction appended no later one. `waiting` have happened, with an
    element that was not seen; `newest` have read the whole list, the last time in `read`.
    """

    __slots__ = ("elements", "is_final", "is_left", "newest", "read", "unseen", "waiting", "writers")

    def __init__(self) -> None:
        self.elements: list[Any] = []
        self.writers: list[_Appending] = []
        self.is_final: list[bool] = []
        self.unseen: dict[Hashable, tuple[_Appending, bool]] = {}
        self.waiting: dict[int, _Appending] = {}
        self.newest: dict[int, _Appending] = {}
        self.read = -1
        self.is_left = False

    def ends(self) -> Iterator[_Appending]:
        """Yield the transactions that precede each element that was not seen."""
        yield from self.writers[-1:]
        yield from self.newest.values()


class IncrementalLists:
    """Transactions on lists that are serializable, with the order of each process or of real time."""

    name = "list-append"

    def __init__(self, *, process: bool, realtime: bool, transactions_max: int = TRANSACTIONS_MAX) -> None:
        self._realtime = realtime
        self._dependencies = Dependencies(process=process, realtime=realtime, transactions_max=transactions_max)
        self._lists: dict[Hashable, _List] = {}
        self._open: dict[int, _Appending] = {}
        self.is_left = False

    @property
    def size(self) -> int:
        """The number of transactions and moments in the graph."""
        return self._dependencies.size

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        if self.is_left:
            return
        transaction = self._open[row] = _Appending(row, operation.process, self._dependencies.now)
        self._dependencies.begin(transaction)
        final = {hashable(key): hashable(value) for f, key, value in operation.value if f == "append"}
        for f, name, value in operation.value:
            if f == "append":
                key, element = hashable(name), hashable(value)
                self._list(key).unseen[element] = transaction, final[key] == element
                transaction.appends.append((key, element))
        transaction.unseen = len(transaction.appends)

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show a contradiction, none without one."""
        transaction = self._open.pop(row, None)
        if transaction is None or self.is_left:
            return ()
        if outcome.kind == "fail":
            rows = self._failed(transaction)
        elif outcome.kind == "ok":
            rows = self._committed(transaction, outcome.value)
        else:
            rows = self._doubtful(transaction)
        if rows:
            return (*(each for each in dict.fromkeys(rows) if each != row), row)
        self._dependencies.settle()
        if self._dependencies.are_too_many:
            self.is_left = True
            self._lists.clear()
            self._open.clear()
        return ()

    def _list(self, key: Hashable) -> _List:
        found = self._lists.get(key)
        if found is None:
            found = self._lists[key] = _List()
        return found

    def _failed(self, transaction: _Appending) -> tuple[int, ...]:
        if transaction.has_happened:
            return (transaction.witness, transaction.row)
        for key, element in transaction.appends:
            self._lists[key].unseen.pop(element, None)
        self._dependencies.retract(transaction)
        return ()

    def _doubtful(self, transaction: _Appending) -> tuple[int, ...]:
        if transaction.appends:
            self._dependencies.doubt(transaction)
        else:
            self._dependencies.retract(transaction)
        if transaction.appends and not transaction.unseen:
            self._dependencies.shown(transaction)
        return ()

    def _committed(self, transaction: _Appending, steps: Sequence[Any]) -> tuple[int, ...]:
        self._dependencies.commit(transaction)
        if not _agrees_with_itself(steps):
            return (transaction.row,)
        for f, key, value in steps:
            if f == "r" and (rows := self._read(transaction, self._list(hashable(key)), value or ())):
                return rows
        return () if transaction.has_happened else self._happened(transaction)

    def _read(self, reader: _Appending, one: _List, answer: Sequence[Any]) -> tuple[int, ...]:
        if one.is_left:
            return ()
        seen, known = list(answer), len(one.elements)
        if seen[:known] != one.elements[: len(seen)]:
            return (one.read, reader.row)
        rows: tuple[int, ...] = ()
        for element in seen[known:]:
            rows = self._see(reader, one, element)
            if rows or one.is_left:
                return rows
        depends = self._dependencies.depends
        if seen:
            writer = one.writers[len(seen) - 1]
            if writer is not reader and not one.is_final[len(seen) - 1]:
                return (writer.row, reader.row)
            rows = depends(writer, reader)
        if rows or len(seen) < len(one.elements):
            return rows or depends(reader, one.writers[len(seen)])
        # A reader that had ended before this one began precedes whatever this one precedes.
        one.newest = {row: each for row, each in one.newest.items() if each.end > reader.after}
        one.newest[reader.row] = reader
        one.read = reader.row
        return next((found for each in one.waiting.values() if (found := depends(reader, each))), ())

    def _see(self, reader: _Appending, one: _List, element: Any) -> tuple[int, ...]:
        """Put `element`, which `reader` is the first to see, at the end of the list; return a cycle that it closes."""
        name = hashable(element)
        if name not in one.unseen:
            is_wrong = self._realtime or element in one.elements
            one.is_left = True
            return (reader.row,) if is_wrong else ()
        writer, is_final = one.unseen.pop(name)
        writer.unseen -= 1
        if writer.witness < 0:
            writer.witness = reader.row
        rows = next((found for each in one.ends() if (found := self._dependencies.depends(each, writer))), ())
        one.elements.append(element)
        one.writers.append(writer)
        one.is_final.append(is_final)
        one.newest = {}
        one.read = reader.row
        if is_final:
            one.waiting.pop(writer.row, None)
        if not rows and not writer.has_happened:
            rows = self._happened(writer)
        if not writer.unseen:
            self._dependencies.shown(writer)
        return rows

    def _happened(self, transaction: _Appending) -> tuple[int, ...]:
        """Record that `transaction` took effect: its unseen elements come after those that were seen."""
        transaction.has_happened = True
        for key, element in transaction.appends:
            one = self._lists[key]
            if element not in one.unseen or transaction.row in one.waiting:
                continue
            one.waiting[transaction.row] = transaction
            for each in one.ends():
                if rows := self._dependencies.depends(each, transaction):
                    return rows
        return ()


def _agrees_with_itself(steps: Sequence[Any]) -> bool:
    """Return whether each read ends in what its transaction has appended since, and reads agree between appends.

    None may see an element that its transaction appends later.
    """
    known: dict[Hashable, list[Any]] = {}
    appended: dict[Hashable, list[Any]] = {}
    for place, (f, name, value) in enumerate(steps):
        key = hashable(name)
        own = appended.setdefault(key, [])
        if f == "append":
            own.append(value)
            continue
        seen = list(value or ())
        if key in known:
            agrees = seen == known[key] + own
        else:
            agrees = seen[len(seen) - len(own) :] == own
        later = (element for g, other, element in steps[place + 1 :] if g == "append" and other == name)
        if not agrees or any(element in seen for element in later):
            return False
        known[key], appended[key] = seen, []
    return True
