"""A history as committed transactions, with the writer of each read.

Every level here needs to know, for each read, the transaction whose write it saw, which unique values identify. Reads
of null saw the *initial transaction* (number 0), which comes before all others.

A transaction is committed when it is ok, or when it is indeterminate and one of its writes was read; then only its
writes are known. An indeterminate transaction without a read write may have been aborted, and is left out: that can
hide no certain violation. Failed ones are aborted.

No level allows the following anomalies, which are found while reading (Adya 1999, section 4.2; AWDIT calls their
absence *read consistency*): garbage reads (a value that was never written), aborted reads (G1a), intermediate reads
(G1b), future reads (a transaction's own later write), and reads that ignore the transaction's own earlier write
(internal)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from faultline.checkers.common.shape import micro_operations, wrong_shape
from faultline.checkers.common.words import token
from faultline.harness.history import OPEN, History

__all__ = [
    "INITIAL",
    "NONE_COMMITTED",
    "Committed",
    "Misread",
    "Read",
    "Sessions",
    "Transaction",
    "read_committed_transactions",
    "restricted",
]

INITIAL = 0
"""The number of the transaction that wrote null to every key, before all others."""

NONE_COMMITTED = "No transaction is known to have committed, so there is nothing to judge."
"""The sentence of a vacuous result."""

Sessions = Literal["process", "worker"]

_EXPECTED = (
    "transactions of [[r, k, null], [w, k, v], …], each value written to a key once, answered with the values read."
)

_Micro = tuple[str, Any, Any]


class Read(NamedTuple):
    """One external read: the key, and the number of the transaction whose write it saw."""

    key: Any
    writer: int


@dataclass(slots=True)
class Transaction:
    """A committed transaction: its row, its session and place in it, its external reads in order, its written keys.

    `invoked` and `completed` are indices of the history's common order, `completed` OPEN unless it is ok. `witness` is
    the row of a reader that shows an indeterminate one to be committed, -1 for one that is ok.
    """

    row: int
    session: int
    place: int
    invoked: int = -1
    completed: int = OPEN
    reads: list[Read] = field(default_factory=list)
    writes: dict[Any, Any] = field(default_factory=dict)
    witness: int = -1

    def rows(self) -> tuple[int, ...]:
        """Return the rows that show its steps: its own, and its witness's."""
        return (self.row,) if self.witness < 0 else (self.row, self.witness)


class Misread(NamedTuple):
    """A read that no level allows: its name, key and value, the reader's row, and the writer's if there is one."""

    anomaly: str
    key: Any
    value: Any
    reader: int
    writer: int | None


@dataclass(slots=True)
class Committed:
    """The committed transactions by number, number 0 being the initial one, and the misreads among them.

    `chains` has the writers of a key whose order is known, first to last, where there are any: lists show it. They come
    before all other writers of the key.
    """

    transactions: list[Transaction]
    sessions: list[list[int]]
    misreads: list[Misread]
    chains: dict[Any, list[int]] = field(default_factory=dict)

    def numbers(self) -> range:
        """Return the numbers of all but the initial transaction."""
        return range(1, len(self.transactions))

    def reads_from(self) -> Iterator[tuple[int, Read]]:
        """Return every external read with the number of its reader."""
        return ((number, read) for number in self.numbers() for read in self.transactions[number].reads)


def restricted(committed: Committed, members: Sequence[int]) -> Committed:
    """Return some of the transactions, numbered anew in the same order, without their reads of the others' writes.

    Their sessions are numbered anew too."""
    kept = sorted(members)
    number_of = {INITIAL: INITIAL} | {number: place for place, number in enumerate(kept, start=1)}
    transactions = [committed.transactions[INITIAL]]
    sessions: list[list[int]] = []
    session_of: dict[int, int] = {}
    for number in kept:
        old = committed.transactions[number]
        session = session_of.setdefault(old.session, len(sessions))
        if session == len(sessions):
            sessions.append([])
        reads = [Read(key, number_of[writer]) for key, writer in old.reads if writer in number_of]
        transactions.append(replace(old, session=session, place=len(sessions[session]), reads=reads))
        sessions[session].append(number_of[number])
    chains = {key: [number_of[n] for n in chain if n in number_of] for key, chain in committed.chains.items()}
    return Committed(transactions, sessions, [], {key: chain for key, chain in chains.items() if chain})


class _Write(NamedTuple):
    row: int
    is_final: bool


def read_committed_transactions(checker: str, history: History, sessions: Sessions = "process") -> Committed:
    """Read `history`; raise UsageError, in the name of `checker`, for any other operation than transactions on
    registers."""
    return _Reader(checker, history, sessions).read()


class _Reader:
    def __init__(self, checker: str, history: History, sessions: Sessions) -> None:
        self.checker, self.history = checker, history
        self.session_of = history.process if sessions == "process" else history.worker
        self.micro: list[list[_Micro]] = []
        self.writes: dict[tuple[Any, Any], _Write] = {}
        self.misreads: list[Misread] = []

    def read(self) -> Committed:
        for row in range(len(self.history)):
            self.micro.append(self._micro(row))
            self._index_writes(row)
        reads = {row: list(self._reads(row)) for row, kind in enumerate(self.history.outcome) if kind == "ok"}
        seen = {w: row for row, found in reversed(reads.items()) for _, w in found if w is not None}
        return self._committed(reads, seen)

    def _micro(self, row: int) -> list[_Micro]:
        history = self.history
        answered = history.outcome[row] == "ok" and history.result[row] is not None
        value = history.result[row] if answered else history.value[row]
        micro = micro_operations(self.checker, history, row, value, _EXPECTED)
        for f, _, written in micro:
            if f not in ("r", "w") or (f == "w" and written is None):
                raise wrong_shape(self.checker, history, row, f"has the micro-operation {f} of {written}", _EXPECTED)
        return [(f, token(key), token(value)) for f, key, value in micro]

    def _index_writes(self, row: int) -> None:
        last = {key: number for number, (f, key, _) in enumerate(self.micro[row]) if f == "w"}
        for number, (f, key, value) in enumerate(self.micro[row]):
            if f == "w":
                write = _Write(row, last[key] == number)
                if self.writes.setdefault((key, value), write) is not write:
                    problem = f"writes {value} to key {key}, as operation {self.writes[key, value].row} does"
                    raise wrong_shape(self.checker, self.history, row, problem, _EXPECTED)

    def _reads(self, row: int) -> Iterator[tuple[Any, int | None]]:
        """Yield the external reads of a row: key, and the writer's row or None for the initial state. Note
        misreads."""
        own: dict[Any, Any] = {}
        for f, key, value in self.micro[row]:
            if f == "w":
                own[key] = value
            elif key in own:
                if own[key] != value:
                    self._misread(row, "internal", key, value)
            elif value is None:
                yield key, None
            else:
                anomaly = self._wrong(row, key, value)
                if anomaly is not None:
                    self._misread(row, anomaly, key, value)
                if anomaly in (None, "intermediate-read"):
                    yield key, self.writes[key, value].row

    def _wrong(self, row: int, key: Any, value: Any) -> str | None:
        """Return the reason why no level allows this external read; None when one might."""
        write = self.writes.get((key, value))
        if write is None:
            return "garbage-read"
        if write.row == row:
            return "future-read"
        if self.history.outcome[write.row] == "fail":
            return "aborted-read"
        return None if write.is_final else "intermediate-read"

    def _misread(self, row: int, anomaly: str, key: Any, value: Any) -> None:
        write = self.writes.get((key, value))
        self.misreads.append(Misread(anomaly, key, value, row, None if write is None else write.row))

    def _committed(self, reads: dict[int, list[tuple[Any, int | None]]], seen: dict[int, int]) -> Committed:
        """Number the committed transactions in order of invocation."""
        rows = [row for row in range(len(self.history)) if row in reads or row in seen]
        number_of = {row: number for number, row in enumerate(rows, start=1)}
        sessions: list[list[int]] = []
        session_numbers: dict[int, int] = {}
        transactions = [Transaction(row=-1, session=-1, place=-1)]
        for row in rows:
            session = session_numbers.setdefault(self.session_of[row], len(session_numbers))
            if session == len(sessions):
                sessions.append([])
            transaction = Transaction(row, session, len(sessions[session]), self.history.invoke_index[row])
            transaction.completed = self.history.complete_index[row] if row in reads else OPEN
            transaction.reads = [Read(key, INITIAL if w is None else number_of[w]) for key, w in reads.get(row, ())]
            transaction.writes = _final_writes(self.micro[row])
            transaction.witness = -1 if row in reads else seen[row]
            sessions[session].append(number_of[row])
            transactions.append(transaction)
        return Committed(transactions, sessions, self.misreads)


def _final_writes(micro: Sequence[_Micro]) -> dict[Any, Any]:
    return {key: value for f, key, value in micro if f == "w"}
