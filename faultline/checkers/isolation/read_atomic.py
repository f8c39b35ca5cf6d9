"""The order of writes that read atomicity forces.

The axiom (Biswas & Enea 2019, figure 2; the level is Bailis et al., "Scalable Atomic Visibility with RAMP
Transactions", SIGMOD 2014, with sessions): when a transaction reads key x from T1, and reads anything from T2, or T2
precedes it in its session, and T2 wrote x too, then T2 comes before T1. The writes of another transaction are
seen altogether or not at all, in any order of the reads.

Each reader examines the keys that it read and that the transactions it read from wrote, by going through the smaller
set: O(n^1.5). Of its session's earlier writers only the last of each key matters, which is remembered on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultline.checkers.isolation.committed import Committed
from faultline.checkers.isolation.order import Edge

__all__ = ["forced_by_read_atomicity"]


def forced_by_read_atomicity(committed: Committed, *, session_order: bool = True) -> Iterator[Edge]:
    """Yield edges between writers that read atomicity forces, beyond those of reading itself."""
    for session in committed.sessions:
        last_writer: dict[Any, int] = {}
        for number in session:
            sources = _sources(committed, number)
            yield from _forced_by_reads(committed, number, sources)
            if session_order:
                yield from _forced_by_session(number, sources, last_writer)
                last_writer.update(dict.fromkeys(committed.transactions[number].writes, number))


def _sources(committed: Committed, number: int) -> dict[Any, list[int]]:
    """Return, for each key that was read, the writers that were seen: more than one when reads were not repeatable."""
    sources: dict[Any, list[int]] = {}
    for key, writer in committed.transactions[number].reads:
        writers = sources.setdefault(key, [])
        if writer not in writers:
            writers.append(writer)
    return sources


def _forced_by_reads(committed: Committed, number: int, sources: dict[Any, list[int]]) -> Iterator[Edge]:
    for seen in dict.fromkeys(writer for _, writer in committed.transactions[number].reads):
        writes = committed.transactions[seen].writes
        for key in writes if len(writes) < len(sources) else sources:
            if key in writes:
                yield from (
                    Edge(seen, writer, "forced", key, number) for writer in sources.get(key, ()) if writer != seen
                )


def _forced_by_session(number: int, sources: dict[Any, list[int]], last_writer: dict[Any, int]) -> Iterator[Edge]:
    for key, writers in sources.items():
        before = last_writer.get(key)
        if before is not None:
            yield from (Edge(before, writer, "forced", key, number) for writer in writers if writer != before)
