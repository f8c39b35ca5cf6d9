"""Lists and registers as the committed transactions of the search for an order, with the writer of each read.

A transaction of unknown outcome counts when one of its writes was read, and then with all its writes. Where a read
shows the order of writes, as in lists, that order is given as a chain; unread appends are in no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from faultline.checkers.common.words import token
from faultline.checkers.isolation.committed import INITIAL, Committed, Read, Transaction
from faultline.checkers.transactions.columns import NEVER, OK, Booleans, Integers, TransactionColumns
from faultline.checkers.transactions.list_versions import GARBAGE, ListVersions
from faultline.checkers.transactions.register_versions import RegisterVersions
from faultline.harness.history import OPEN

__all__ = ["committed_lists", "committed_registers"]

_NOT_READ = -2


def committed_registers(columns: TransactionColumns, versions: RegisterVersions) -> Committed:
    """Return the committed transactions on registers."""
    writer = versions.committed_writer(columns)
    read = _reads_of_others(columns)
    seen = versions.version[read]
    source = np.where(versions.unset[seen], -1, np.where(writer[seen] >= 0, writer[seen], _NOT_READ))
    happened = columns.outcome == OK
    happened[writer[writer >= 0]] = True
    # Any read shows that its writer happened, also the second one of a key.
    answered = np.flatnonzero(columns.is_read & (columns.outcome[columns.owner] == OK))[::-1]
    shown_by = dict(zip(writer[versions.version[answered]].tolist(), columns.owner[answered].tolist()))
    return _committed(columns, happened, read, source, shown_by, {})


def committed_lists(columns: TransactionColumns, versions: ListVersions) -> Committed:
    """Return the committed transactions on lists, with the order of the writers of each key that was read."""
    writer, standing = versions.writer(columns), np.flatnonzero(versions.committed(columns))
    length = np.full(len(columns.key), _NOT_READ, dtype=np.int64)
    length[versions.read[versions.fits]] = versions.length[versions.fits]
    read = _first_uses(columns)
    read = read[length[read] >= 0]
    place = versions.first[columns.key[read]] + length[read] - 1
    source = np.where(length[read] == 0, -1, writer[place] if len(writer) else _NOT_READ)
    source[(length[read] > 0) & (source == GARBAGE)] = _NOT_READ
    key_of = np.repeat(np.arange(len(versions.first) - 1), np.diff(versions.first))
    chains: dict[int, list[int]] = {}
    witness: dict[int, int] = {}
    for position in standing.tolist():
        key, transaction = int(key_of[position]), int(writer[position])
        chain = chains.setdefault(key, [])
        if not chain or chain[-1] != transaction:
            chain.append(transaction)
            witness.setdefault(transaction, int(columns.owner[versions.longest[key]]))
    return _committed(columns, versions.happened(columns), read, source, witness, chains)


def _reads_of_others(columns: TransactionColumns) -> Integers:
    """Return the reads, in order, before which their transaction wrote nothing to their key."""
    code = (columns.owner * len(columns.keys) + columns.key).tolist()
    first_write = {code[micro]: micro for micro in np.flatnonzero(~columns.is_read)[::-1].tolist()}
    reads = np.flatnonzero(columns.is_read & (columns.outcome[columns.owner] == OK)).tolist()
    return np.array([m for m in reads if m < first_write.get(code[m], len(code))], dtype=np.int64)


def _first_uses(columns: TransactionColumns) -> Integers:
    """Return the micro-operations that are the first of their transaction on their key, where that is a read."""
    code = columns.owner * len(columns.keys) + columns.key
    _, first = np.unique(code, return_index=True)
    first = np.sort(first)
    picked: Integers = first[columns.is_read[first] & (columns.outcome[columns.owner[first]] == OK)]
    return picked


def _committed(
    columns: TransactionColumns,
    happened: Booleans,
    reads: Integers,
    source: Integers,
    witness: Mapping[int, int],
    chains: Mapping[int, Iterable[int]],
) -> Committed:
    """Number the transactions that `happened`; `source` has the writer that each of `reads` saw, -1 for none.

    Reads of transactions that did not happen are left out: inference reports them.
    """
    kept = np.flatnonzero(happened).tolist()
    number_of = {transaction: number for number, transaction in enumerate(kept, start=1)} | {-1: INITIAL}
    names = list(map(token, columns.keys))
    rows, invoke, complete = columns.rows.tolist(), columns.invoke.tolist(), columns.complete.tolist()
    process, outcome = columns.process.tolist(), columns.outcome.tolist()
    transactions = [Transaction(row=-1, session=-1, place=-1)]
    sessions: list[list[int]] = []
    session_of: dict[int, int] = {}
    for number, one in enumerate(kept, start=1):
        session = session_of.setdefault(process[one], len(sessions))
        if session == len(sessions):
            sessions.append([])
        transaction = Transaction(rows[one], session, len(sessions[session]), invoke[one])
        transaction.completed = OPEN if complete[one] >= NEVER else complete[one]
        transaction.witness = rows[witness[one]] if outcome[one] != OK and one in witness else -1
        sessions[session].append(number)
        transactions.append(transaction)
    owner, key = columns.owner.tolist(), columns.key.tolist()
    for micro, writer in zip(reads.tolist(), source.tolist()):
        if writer in number_of:
            transactions[number_of[owner[micro]]].reads.append(Read(names[key[micro]], number_of[writer]))
    for micro in np.flatnonzero(~columns.is_read & happened[columns.owner]).tolist():
        transactions[number_of[owner[micro]]].writes[names[key[micro]]] = columns.values[micro]
    ordered = {names[number]: [number_of[one] for one in chain] for number, chain in chains.items()}
    return Committed(transactions, sessions, [], ordered)
