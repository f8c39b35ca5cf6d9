"""A history of registers as accesses of sessions: who did what in which order, and whose write each read saw.

An access is a transaction of one operation, so that the orders and searches of `isolation` serve here too. A
compare-and-set that succeeded reads and writes; one that was refused is no observation. A `get` and a `put` are a read
and a write of a key that holds an empty string at first.

A session is what one process did, in its order. An operation whose outcome is unknown happened when its value was read,
and is left out otherwise: it may then be put behind everything else, where it changes nothing. It is the last of its
session. Where its process went on nevertheless, it has a session of its own, since it may take effect at any later
time.

Values that were written once identify the write that a read saw. A value that several writes put leaves the read a
*choice* between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.isolation.committed import INITIAL, Committed, Misread, Read, Transaction, restricted
from faultline.checkers.linearizability.operations import canonical
from faultline.harness.history import OPEN, History

__all__ = ["Access", "Accesses", "Choice", "read_accesses"]

_EXPECTED = "`read` and `write` (or `get` and `put`) of single keys, and `cas` of [expected, new]."
_FUNCTIONS = ("read", "write", "cas", "get", "put")
_READS, _WRITES = ("read", "get", "cas"), ("write", "put", "cas")


class Access(NamedTuple):
    """One operation: it saw `demand` if it `reads`, and put `produce` if it `writes`; None is the initial value."""

    key: Any
    reads: bool
    demand: Any
    writes: bool
    produce: Any


class Choice(NamedTuple):
    """A read of `key` that may have seen any of `writers`, which put the same value."""

    reader: int
    key: Any
    writers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses that happened: `committed` has their sessions, and the writer of each read that leaves no choice.

    `by_number` has each access by its number there; the first stands for the initial state. `misreads` saw a value that
    no operation can have put.
    """

    committed: Committed
    by_number: list[Access]
    choices: list[Choice]
    misreads: list[Misread]

    def chosen(self, writers: Sequence[int]) -> Committed:
        """Return the accesses with one writer for each choice."""
        transactions = list(self.committed.transactions)
        for (reader, key, _), writer in zip(self.choices, writers, strict=True):
            old = transactions[reader]
            transactions[reader] = replace(old, reads=[*old.reads, Read(key, writer)])
        return replace(self.committed, transactions=transactions)

    def among(self, members: Sequence[int]) -> Accesses:
        """Return some of the accesses, numbered anew; a read that may have seen a write left out says nothing."""
        kept = sorted(members)
        number_of = {INITIAL: INITIAL} | {number: place for place, number in enumerate(kept, start=1)}
        committed = restricted(self.committed, kept)
        choices = [
            Choice(number_of[reader], key, tuple(number_of[writer] for writer in writers))
            for reader, key, writers in self.choices
            if reader in number_of and number_of.keys() >= set(writers)
        ]
        saying = {choice.reader for choice in choices} | {number for number, _ in committed.reads_from()}
        by_number = [self.by_number[INITIAL]]
        by_number += [self.by_number[old]._replace(reads=number_of[old] in saying) for old in kept]
        return Accesses(committed, by_number, choices, [])


def read_accesses(checker: str, history: History) -> Accesses:
    """Read `history`; raise UsageError, in the name of `checker`, for operations on anything but registers."""
    expect_functions(checker, history, _FUNCTIONS, _EXPECTED)
    by_row = [_access(checker, history, row) for row in range(len(history))]
    writers: dict[tuple[Any, Any], list[int]] = {}
    failed: dict[tuple[Any, Any], int] = {}
    for row, access in enumerate(by_row):
        if access.writes and history.outcome[row] == "fail":
            failed.setdefault((access.key, access.produce), row)
        elif access.writes:
            writers.setdefault((access.key, access.produce), []).append(row)
    happened = _happened(history, by_row, writers)
    committed, number_of = _numbered(history, by_row, happened)
    choices: list[Choice] = []
    misreads: list[Misread] = []
    for row, witness in happened.items():
        access, number = by_row[row], number_of[row]
        committed.transactions[number].witness = witness
        if not access.reads:
            continue
        candidates = [INITIAL] * (access.demand is None)
        candidates += [number_of[each] for each in writers.get((access.key, access.demand), ())]
        if len(candidates) == 1:
            committed.transactions[number].reads.append(Read(access.key, candidates[0]))
        elif candidates:
            choices.append(Choice(number, access.key, tuple(candidates)))
        else:
            aborted = failed.get((access.key, access.demand))
            name = "garbage-read" if aborted is None else "aborted-read"
            misreads.append(Misread(name, access.key, access.demand, row, aborted))
    by_number = [Access(None, False, None, False, None), *(by_row[row] for row in happened)]
    return Accesses(committed, by_number, choices, misreads)


def _access(checker: str, history: History, row: int) -> Access:
    f, key, value = history.f[row], history.key[row], history.value[row]
    demand = produce = None
    is_ok = history.outcome[row] == "ok"
    if f == "cas":
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise wrong_shape(checker, history, row, f"has {value!r} where [expected, new] belongs", _EXPECTED)
        demand, produce = canonical(value[0]), canonical(value[1])
        # Replacing a value by itself changes nothing: it is a read when it succeeded.
        return Access(key, is_ok or demand != produce, demand, demand != produce, produce)
    if f in _WRITES:
        produce = _or_initial(f, canonical(value))
    elif is_ok:
        demand = _or_initial(f, canonical(history.result[row]))
    return Access(key, f in _READS and is_ok, demand, f in _WRITES, produce)


def _or_initial(f: str, value: Any) -> Any:
    return None if f in ("get", "put") and value == "" else value


def _happened(history: History, by_row: Sequence[Access], writers: dict[tuple[Any, Any], list[int]]) -> dict[int, int]:
    """Return the rows that happened, in order, each with the row of the read that shows it, -1 when it was answered.

    A compare-and-set without an answer that was read saw what it expected, so its own demand shows others.
    """
    happened = {row: -1 for row, outcome in enumerate(history.outcome) if outcome == "ok"}
    looking = list(happened)
    while looking:
        reader = looking.pop()
        access = by_row[reader]
        for row in writers.get((access.key, access.demand), ()) if access.reads else ():
            if row not in happened:
                happened[row] = reader
                looking.append(row)
    return dict(sorted(happened.items()))


def _numbered(history: History, by_row: Sequence[Access], happened: dict[int, int]) -> tuple[Committed, dict[int, int]]:
    """Return the accesses in order of invocation, without their reads, and the number of each row."""
    transactions = [Transaction(row=-1, session=-1, place=-1)]
    sessions: list[list[int]] = []
    session_of: dict[Any, int] = {}
    last = {history.process[row]: row for row in happened}
    for row in happened:
        process = history.process[row]
        goes_on = history.outcome[row] != "ok" and last[process] != row
        session = session_of.setdefault(("alone", row) if goes_on else process, len(sessions))
        if session == len(sessions):
            sessions.append([])
        made = Transaction(row, session, len(sessions[session]), history.invoke_index[row])
        made.completed = history.complete_index[row] if history.outcome[row] == "ok" else OPEN
        made.writes = {by_row[row].key: by_row[row].produce} if by_row[row].writes else {}
        sessions[session].append(len(transactions))
        transactions.append(made)
    return Committed(transactions, sessions, []), {row: number for number, row in enumerate(happened, start=1)}
