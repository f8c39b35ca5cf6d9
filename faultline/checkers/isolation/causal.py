"""The order of writes that causal consistency forces.

The axiom (Biswas & Enea 2019, figure 2): when a transaction reads key x from T1, and T2, which wrote x too, *happened
before* it, through any chain of sessions and reads, then T2 comes before T1: a transaction that knows of a write knows
of all its causes.

What happened before a transaction is a vector: for each session the number of its transactions that did (Plume,
OOPSLA 2024, and AWDIT use the same clocks). For each read and each session, only the *last* of its writers of x that
happened before matters; the others precede that one in their session. All of these are found at once, by one binary
search over the writes sorted by key, session and place: O(n k log n) for k sessions, in arrays. Edges that happened-
before implies already are dropped.

Limit: the vectors take 4 bytes for each transaction and session; beyond `CELLS_MAX` of them the checker says unknown.
Sessions are many where many clients crash, because each crash begins a new process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from faultline.checkers.isolation.committed import INITIAL, Committed
from faultline.checkers.isolation.order import Edge

__all__ = ["CELLS_MAX", "forced_by_causality", "happened_before"]

CELLS_MAX = 250_000_000
"""The largest number of cells of clocks: a gigabyte."""

_READS_AT_ONCE = 1 << 16

_Clocks = npt.NDArray[np.int32]


def happened_before(committed: Committed) -> _Clocks | None:
    """Return, by transaction and session, how many of the session's transactions happened before it, itself included.

    Return None when sessions and reads form a cycle, so that happened-before is undefined.
    """
    transactions = committed.transactions
    clocks = np.zeros((len(transactions), max(1, len(committed.sessions))), dtype=np.int32)
    done = [False] * len(transactions)
    done[INITIAL] = True
    waiting: dict[int, list[int]] = {}
    ready = list(range(len(committed.sessions)))
    places = [0] * len(committed.sessions)
    finished = 1
    while ready:
        session = ready.pop()
        members = committed.sessions[session]
        while places[session] < len(members):
            number = members[places[session]]
            missing = next((w for _, w in transactions[number].reads if not done[w]), None)
            if missing is not None:
                waiting.setdefault(missing, []).append(session)
                break
            _advance(clocks, committed, number)
            done[number] = True
            finished += 1
            places[session] += 1
            ready += waiting.pop(number, ())
    return clocks if finished == len(transactions) else None


def _advance(clocks: _Clocks, committed: Committed, number: int) -> None:
    transaction = committed.transactions[number]
    clock = clocks[number]
    if transaction.place:
        clock[:] = clocks[committed.sessions[transaction.session][transaction.place - 1]]
    for writer in {writer for _, writer in transaction.reads if writer != INITIAL}:
        np.maximum(clock, clocks[writer], out=clock)
    clock[transaction.session] = transaction.place + 1


def forced_by_causality(committed: Committed, clocks: _Clocks) -> Iterator[Edge]:
    """Yield edges between writers that causal consistency forces, beyond happened-before."""
    keys: dict[Any, int] = {}
    writes = _writes(committed, keys)
    reads = [(number, keys[key], writer) for number, (key, writer) in committed.reads_from() if key in keys]
    names = list(keys)
    for start in range(0, len(reads), _READS_AT_ONCE):
        for seen, writer, key, reader in _forced(committed, clocks, writes, reads[start : start + _READS_AT_ONCE]):
            yield Edge(int(seen), int(writer), "forced", names[key], int(reader))


def _writes(committed: Committed, keys: dict[Any, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return sorted codes of key, session and place of all writes, with their transactions, and the code's stride."""
    sessions = max(1, len(committed.sessions))
    stride = max(map(len, committed.sessions), default=0) + 2
    codes, numbers = [], []
    for number in committed.numbers():
        transaction = committed.transactions[number]
        for key in transaction.writes:
            group = keys.setdefault(key, len(keys)) * sessions + transaction.session
            codes.append(group * stride + transaction.place + 1)
            numbers.append(number)
    order = np.argsort(np.array(codes, dtype=np.int64), kind="stable")
    return np.array(codes, dtype=np.int64)[order], np.array(numbers, dtype=np.int64)[order], stride


def _forced(
    committed: Committed,
    clocks: _Clocks,
    writes: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int],
    reads: Sequence[tuple[int, int, int]],
) -> Iterator[tuple[Any, ...]]:
    codes, numbers, stride = writes
    sessions = clocks.shape[1]
    readers, keys, writers = np.array(reads, dtype=np.int64).T
    # A reader's own write of the key comes after its external read, so its own clock is taken one back.
    known = clocks[readers].astype(np.int64)
    own = np.array([committed.transactions[number].session for number in readers])
    known[np.arange(len(readers)), own] -= 1
    groups = keys[:, None] * sessions + np.arange(sessions)
    places = np.searchsorted(codes, groups * stride + known, side="right") - 1
    found = places >= 0
    found[found] = codes[places[found]] >= (groups * stride)[found]
    which, _ = np.nonzero(found)
    seen, reader, writer, key = numbers[places[found]], readers[which], writers[which], keys[which]
    needed = seen != writer
    needed[needed] &= ~_implied(committed, clocks, seen[needed], writer[needed])
    edges = np.stack((seen[needed], writer[needed], key[needed], reader[needed]))
    _, first = np.unique(edges[0] * len(committed.transactions) + edges[1], return_index=True)
    return iter(map(tuple, edges[:, first].T.tolist()))


def _implied(
    committed: Committed, clocks: _Clocks, seen: npt.NDArray[np.int64], writer: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return whether each `seen` happened before its `writer` anyway."""
    session = np.array([committed.transactions[number].session for number in seen], dtype=np.int64)
    place = np.array([committed.transactions[number].place for number in seen], dtype=np.int64)
    return clocks[writer, session] > place if len(seen) else np.zeros(0, dtype=np.bool_)
