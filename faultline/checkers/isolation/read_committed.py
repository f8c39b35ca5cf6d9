"""The order of writes that read committed forces.

The axiom (Biswas & Enea, "On the Complexity of Checking Transactional Consistency", OOPSLA 2019, figure 2): when a
transaction reads key x from T1, after it has read anything from T2, which wrote x too, then T2 comes before T1. Reading
is monotone: having seen T2 it may not fall back to a version that T2 overwrote.

A minimal set of such edges suffices (AWDIT, PLDI 2025, section 3): the reads of a transaction are taken backwards, and
each transaction it reads from is put, at its first read, before the writers of the *next* reads of the keys that it
wrote; the writers of later reads follow by transitivity. Per reader this costs the smaller of the writes of each T2 and
the later reads, O(n^1.5) altogether, where n counts micro-operations; no algorithm does better by a power (conditional
lower bound)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultline.checkers.isolation.committed import INITIAL, Committed, Transaction
from faultline.checkers.isolation.order import Edge

__all__ = ["forced_by_read_committed"]

_Near = tuple[int, int | None]
"""The writer that the next read of a key sees, and the next different one."""


def forced_by_read_committed(committed: Committed) -> Iterator[Edge]:
    """Yield edges between writers that read committed forces, beyond those of reading itself."""
    for number in committed.numbers():
        if len(committed.transactions[number].reads) > 1:
            yield from _forced_by(committed, number, committed.transactions[number])


def _forced_by(committed: Committed, number: int, reader: Transaction) -> Iterator[Edge]:
    first = {read.writer: place for place, read in reversed(list(enumerate(reader.reads)))}
    later: dict[Any, _Near] = {}
    for place in range(len(reader.reads) - 1, -1, -1):
        key, writer = reader.reads[place]
        if first[writer] == place and writer != INITIAL:
            writes = committed.transactions[writer].writes
            for shared in writes if len(writes) < len(later) else later:
                if shared in writes and shared in later:
                    near, next_one = later[shared]
                    target = near if near != writer else next_one
                    if target is not None:
                        yield Edge(writer, target, "forced", shared, number)
        near, next_one = later.get(key, (writer, None))
        later[key] = (writer, next_one if near == writer else near)
