"""The versions of registers: the writer and the readers of each, without any order yet (Elle).

A register shows only its last value, so each value must be written once to a key; then a value is a version. The
version of an unwritten key is *unset*, and reads as null.

The steps of a transaction on a key count in two places only. Its first step there, if that is a read, shows a version
of others (*external read*), and its last write is the version that others should see (*external write*). Steps in
between do not concern other transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import (
    FAIL,
    OK,
    Booleans,
    Integers,
    TransactionColumns,
    malformed_transaction,
)

__all__ = ["UNKNOWN", "RegisterVersions", "find_register_versions"]

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class RegisterVersions:
    """Versions of a register history, numbered over all keys.

    Per micro-operation: `version`, which it wrote or read (`UNKNOWN` for reads that never answered). Per version:
    `key`, `unset` (the first version of its key), `write` (the micro-operation that wrote it, or -1). `external_read`
    and `external_write` are micro-operations, in order of transactions and keys; reads are of transactions that are ok.
    `numbers` finds a version by key and value.
    """

    version: Integers
    key: Integers
    unset: Booleans
    write: Integers
    external_read: Integers
    external_write: Integers
    numbers: dict[tuple[int, Any], int]

    def writer(self, columns: TransactionColumns) -> Integers:
        """Return the transaction that wrote each version, -1 for none."""
        return np.where(self.write < 0, -1, columns.owner[self.write])

    def committed_writer(self, columns: TransactionColumns) -> Integers:
        """Return the same as `writer`, and -1 also where the writer failed, or is not known to have taken effect.

        A transaction whose outcome is unknown has taken effect, with all its writes, once any of them was read.
        """
        writer = self.writer(columns)
        reads = columns.is_read & (columns.outcome[columns.owner] == OK)
        happened = columns.outcome == OK
        read_from = writer[self.version[reads]]
        happened[read_from[read_from >= 0]] = True
        stands = (writer >= 0) & happened[writer] & (columns.outcome[writer] != FAIL)
        return np.where(stands, writer, -1)


def find_register_versions(columns: TransactionColumns) -> RegisterVersions:
    """Number the versions. Raise UsageError for a value that is written to a key twice, and for a write of null."""
    known = ~columns.is_read | (columns.outcome[columns.owner] == OK)
    micros = np.flatnonzero(known)
    pairs = list(zip(columns.key[micros].tolist(), _values(columns, micros)))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    version = np.full(len(columns.key), UNKNOWN, dtype=np.int64)
    version[micros] = np.fromiter(map(numbers.__getitem__, pairs), np.int64, len(pairs))
    write = np.full(len(numbers), -1, dtype=np.int64)
    writes = np.flatnonzero(~columns.is_read)
    write[version[writes]] = writes
    _refuse_ambiguous(columns, version, write, writes)
    reads, last_writes = _external(columns)
    return RegisterVersions(
        version=version,
        key=np.fromiter((key for key, _ in numbers), np.int64, len(numbers)),
        unset=np.fromiter((value is None for _, value in numbers), np.bool_, len(numbers)),
        write=write,
        external_read=reads,
        external_write=last_writes,
        numbers=numbers,
    )


def _values(columns: TransactionColumns, micros: Integers) -> list[Any]:
    values = [columns.values[micro] for micro in micros.tolist()]
    try:
        set(values)
    except TypeError:
        return list(map(hashable, values))
    return values


def _refuse_ambiguous(columns: TransactionColumns, version: Integers, write: Integers, writes: Integers) -> None:
    again = writes[write[version[writes]] != writes]
    if len(again):
        micro, other = int(again[0]), int(write[version[again[0]]])
        key, rows = (
            columns.keys[columns.key[micro]],
            sorted(int(columns.rows[columns.owner[m]]) for m in (micro, other)),
        )
        raise malformed_transaction(
            rows[1],
            f"writes {str(columns.values[micro])[:80]} to {key!r}, which row {rows[0]} writes already: "
            "no read can tell which",
        )
    for micro in writes.tolist():
        if columns.values[micro] is None:
            key = columns.keys[columns.key[micro]]
            raise malformed_transaction(
                int(columns.rows[columns.owner[micro]]), f"writes null to {key!r}, which stands for a key never written"
            )


def _external(columns: TransactionColumns) -> tuple[Integers, Integers]:
    order = np.argsort(columns.owner * len(columns.keys) + columns.key, kind="stable")
    code = columns.owner[order] * len(columns.keys) + columns.key[order]
    opens = np.concatenate(([True], code[1:] != code[:-1])) if len(code) else np.zeros(0, dtype=np.bool_)
    first = order[opens]
    reads = first[columns.is_read[first] & (columns.outcome[columns.owner[first]] == OK)]
    writing = ~columns.is_read[order]
    written, written_code = order[writing], code[writing]
    ends = np.ones(len(written), dtype=np.bool_)
    ends[:-1] = written_code[1:] != written_code[:-1]
    return reads, written[ends]
