"""The dependencies that append-only lists show (Elle).

With the version order of each key known, every dependency is a neighbour in it: `ww` from the writer of one version to
the writer of the next, `wr` from a version's writer to its readers, `rw` from the readers of a version to the writer of
the next. Appends that were never read come after all that were read, so that the last version's writer and its readers
precede them; among each other they are in no order.

Versions of failed transactions, and elements that were never written, are skipped: Adya's version order has committed
versions only. Reads that are no prefix of the version order draw no edges; they are an anomaly themselves.
The reason of an edge is a micro-operation: for `ww` the later append, for `wr` and `rw` the read.
"""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import Integers, TransactionColumns
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind, EdgeList
from faultline.checkers.transactions.list_versions import ListVersions

__all__ = ["list_edges"]


def list_edges(columns: TransactionColumns, versions: ListVersions) -> DependencyEdges:
    """Return all ww, wr and rw edges."""
    edges = EdgeList(len(columns))
    writer = versions.writer(columns)
    standing = np.flatnonzero(versions.committed(columns))
    key_of = np.repeat(np.arange(len(versions.first) - 1), np.diff(versions.first))
    _write_edges(edges, versions, writer, standing, key_of)
    fitting = np.flatnonzero(versions.fits)
    read, key = versions.read[fitting], columns.key[versions.read[fitting]]
    seen = versions.first[key] + versions.length[fitting] - 1
    reader = columns.owner[read]
    some = versions.length[fitting] > 0
    counts = np.zeros(len(writer), dtype=np.bool_)
    counts[standing] = True
    from_writer = np.flatnonzero(some)[counts[seen[some]]]
    edges.add_all(writer[seen[from_writer]], reader[from_writer], EdgeKind.WR, read[from_writer])
    following = np.append(standing, len(writer))[np.searchsorted(standing, seen + 1)]
    inside = following < versions.first[key + 1]
    edges.add_all(reader[inside], writer[following[inside]], EdgeKind.RW, read[inside])
    _unread_edges(edges, columns, versions, read[~inside])
    return edges.finish()


def _write_edges(
    edges: EdgeList, versions: ListVersions, writer: Integers, standing: Integers, key_of: Integers
) -> None:
    before, after = standing[:-1], standing[1:]
    same = key_of[before] == key_of[after]
    edges.add_all(writer[before[same]], writer[after[same]], EdgeKind.WW, versions.append[after[same]])


def _unread_edges(edges: EdgeList, columns: TransactionColumns, versions: ListVersions, last_reads: Integers) -> None:
    """Draw edges to the appends that were never read; `last_reads` are the reads of the last committed versions."""
    happened = versions.happened(columns)[columns.owner]
    unread = np.flatnonzero(~columns.is_read & (versions.position < 0) & happened)
    broken = np.isin(columns.key[unread], np.array(versions.repeated, dtype=np.int64))
    unread = unread[~broken]
    if not len(unread):
        return
    writer = versions.writer(columns)
    standing = np.flatnonzero(versions.committed(columns))
    keys = columns.key[unread]
    last = np.searchsorted(standing, versions.first[keys + 1]) - 1
    place = np.where(last >= 0, standing[np.maximum(last, 0)], -1) if len(standing) else np.full(len(keys), -1)
    known = place >= versions.first[keys]
    edges.add_all(writer[place[known]], columns.owner[unread[known]], EdgeKind.WW, unread[known])
    wanted = last_reads[np.isin(columns.key[last_reads], keys)]
    readers = _by_key(columns, wanted)
    for key, writers in _by_key(columns, unread).items():
        if key in readers:
            edges.add_hub(readers[key], writers)


def _by_key(columns: TransactionColumns, micros: Integers) -> dict[int, list[tuple[int, int]]]:
    """Return the transaction and micro-operation of each, by key, each transaction once."""
    by_key: dict[int, dict[int, int]] = {}
    for key, owner, micro in zip(columns.key[micros].tolist(), columns.owner[micros].tolist(), micros.tolist()):
        by_key.setdefault(key, {}).setdefault(owner, micro)
    return {key: list(pairs.items()) for key, pairs in by_key.items()}
