"""Strings that are put and appended to, as columns.

The answers of its gets are all that tells the states of a key apart. So its states are the *texts* that a get may still
see: the beginnings of answers from which its puts and appends can go on to the answer. Every other text is one
dead state, out of which only a put leads. An append makes ab of a, for every such pair of texts: these are its edges
(see `columns`).

Mostly every text has just one operation that can make it, since tests append a different text each time. Then an append
that was seen is a compare-and-set, from the text before to the text after it, and one that was not seen is a write of a
value that no get knows: the key is a register on which no value is put twice, and the near-linear monitor judges it.

An answer must be taken apart to its very end. One whose tail no operation can have made is a text of its own, which no
operation can reach.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Protocol

from faultline.checkers.linearizability.engine.columns import APPEND, PENDING, Columns
from faultline.checkers.linearizability.operations import INFINITY, OBSERVE, SWAP, WRITE

__all__ = ["TextOperation", "text_columns"]


class TextOperation(Protocol):
    """A get (`text` is what it answered), a put or an append (`text` is what it was given)."""

    @property
    def f(self) -> str:
        """get, put or append."""

    @property
    def text(self) -> str:
        """The answer, or the argument."""

    @property
    def call(self) -> int:
        """The time of the call."""

    @property
    def return_(self) -> int:
        """The time of the return; INFINITY when it did not return."""

    @property
    def row(self) -> int:
        """Its row in the history."""


def text_columns(parts: Iterable[tuple[str | None, Sequence[TextOperation]]]) -> Columns:
    """Return the operations of all keys, given key by key."""
    columns = Columns([], [""])
    for key, operations in parts:
        columns.keys.append(key)
        _Key(columns, operations).add()
    return columns


class _Key:
    """One key's operations on their way into the columns."""

    def __init__(self, columns: Columns, operations: Sequence[TextOperation]) -> None:
        self.columns = columns
        self.operations = [operation for operation in operations if operation.f != "append" or operation.text]
        self.answers = sorted({operation.text for operation in operations if operation.f == "get"})
        self.appended = {operation.text for operation in self.operations if operation.f == "append"}
        self.put = {operation.text for operation in self.operations if operation.f == "put"}
        self.edges = _edges(self.answers, self.put, self.appended)
        # Shorter texts get lower numbers, which the search relies on.
        known = {"", *self.answers, *(text for edge in self.edges for text in edge[:2])}
        base = len(columns.values) - 1
        ordered = sorted(known - {""}, key=lambda text: (len(text), text))
        self.numbers = {"": 0} | {text: base + number for number, text in enumerate(ordered, start=1)}
        columns.values += ordered

    def add(self) -> None:
        """Put the key's operations behind the columns."""
        as_swaps = self._has_one_maker_each()
        spans = {} if as_swaps else self._add_edges()
        edge_of = {text: (before, after) for before, after, text in self.edges}
        for operation in self.operations:
            if operation.f == "get":
                self._append(operation, OBSERVE, self.numbers[operation.text], 0)
            elif operation.f == "put":
                self._append(operation, WRITE, 0, self._number_of(operation.text))
            elif not as_swaps:
                first, end = spans.get(operation.text, (0, 0))
                self._append(operation, APPEND, end, first)
            elif operation.text in edge_of:
                before, after = edge_of[operation.text]
                self._append(operation, SWAP, self.numbers[before], self.numbers[after])
            else:
                self._append(operation, WRITE, 0, self._number_of(None))

    def _has_one_maker_each(self) -> bool:
        """Return whether each text that may be seen has one operation that can make it, and each append makes one."""
        appends = [operation.text for operation in self.operations if operation.f == "append"]
        puts = [operation.text for operation in self.operations if operation.f == "put"]
        made = {after for _, after, _ in self.edges}
        return (
            len(self.edges) == len(made) == len({text for _, _, text in self.edges})
            and len(appends) == len(self.appended)
            and len(puts) == len(self.put)
            and "" not in self.put
            and not self.put & made
        )

    def _number_of(self, text: str | None) -> int:
        """Return the number of a text that is put; one that no get sees has a number of its own."""
        if text in self.numbers:
            return self.numbers[text]
        self.columns.values.append(text)
        return len(self.columns.values) - 1

    def _add_edges(self) -> dict[str, tuple[int, int]]:
        """Put the edges into the columns, those of one text together; return where those of each text are."""
        columns = self.columns
        spans: dict[str, tuple[int, int]] = {}
        by_text: dict[str, list[tuple[str, str]]] = {}
        for before, after, text in self.edges:
            by_text.setdefault(text, []).append((before, after))
        for text, pairs in by_text.items():
            first = len(columns.edge_from)
            columns.edge_from.extend(self.numbers[before] for before, _ in pairs)
            columns.edge_to.extend(self.numbers[after] for _, after in pairs)
            spans[text] = (first, len(columns.edge_from))
        return spans

    def _append(self, operation: TextOperation, kind: int, demand: int, produce: int) -> None:
        columns = self.columns
        columns.key.append(len(columns.keys) - 1)
        columns.kind.append(kind)
        columns.demand.append(demand)
        columns.produce.append(produce)
        columns.call.append(operation.call)
        columns.return_.append(PENDING if operation.return_ == INFINITY else operation.return_)
        columns.row.append(operation.row)


def _edges(answers: list[str], put: set[str], appended: set[str]) -> list[tuple[str, str, str]]:
    """Return (before, after, appended text) for all texts that begin an answer and that the operations can make."""
    lengths = sorted({len(text) for text in appended})
    edges: dict[tuple[str, str], str] = {}
    # An answer that begins the next one, in order of the alphabet, is taken apart along with that one.
    longest = [
        answer
        for answer, following in zip(answers, [*answers[1:], ""])
        if answer and not (following.startswith(answer) and following != answer)
    ]
    for answer in longest:
        reached = bytearray(len(answer) + 1)
        reached[0] = 1
        for text in sorted(put):
            if answer.startswith(text):
                reached[len(text)] = 1
        position = 0
        while position >= 0:
            for length in lengths[: bisect_left(lengths, len(answer) - position + 1)]:
                text = answer[position : position + length]
                if text in appended:
                    reached[position + length] = 1
                    edges[answer[:position], answer[: position + length]] = text
            position = reached.find(1, position + 1)
    return _of_use(edges, set(answers))


def _of_use(edges: dict[tuple[str, str], str], seen: set[str]) -> list[tuple[str, str, str]]:
    """Return the edges on a way to a text that was seen: other beginnings of answers may never have been the state."""
    kept: list[tuple[str, str, str]] = []
    for before, after in sorted(edges, key=lambda edge: -len(edge[1])):
        if after in seen:
            seen.add(before)
            kept.append((before, after, edges[before, after]))
    return kept
