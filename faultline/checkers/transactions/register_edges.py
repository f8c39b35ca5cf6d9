"""The dependencies that registers show, given the partial order of their versions.

`wr` is known whenever a read is: its value has one writer. `ww` and `rw` need two versions of which one is known to
follow the other. The later one need not be the very next: versions between them only make the path longer. The unset
version comes before all others: its readers precede all writers of that key, by way of the versions that have no other
known predecessor.
"""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import Integers, TransactionColumns
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind, EdgeList
from faultline.checkers.transactions.register_order import VersionOrder
from faultline.checkers.transactions.register_versions import RegisterVersions

__all__ = ["register_edges"]


def register_edges(columns: TransactionColumns, versions: RegisterVersions, order: VersionOrder) -> DependencyEdges:
    """Return all ww, wr and rw edges. The reason of an edge is a micro-operation: for ww the later write, else the
    read."""
    edges = EdgeList(len(columns))
    writer = versions.committed_writer(columns)
    read = versions.external_read
    seen = writer[versions.version[read]]
    edges.add_all(seen[seen >= 0], columns.owner[read[seen >= 0]], EdgeKind.WR, read[seen >= 0])
    pairs = _pairs(order)
    for kind, (earlier, later) in pairs.items():
        both = (writer[earlier] >= 0) & (writer[later] >= 0)
        edges.add_all(writer[earlier[both]], writer[later[both]], EdgeKind.WW | kind, versions.write[later[both]])
    readers = _by_version(versions.version[read], read)
    for kind, (earlier, later) in pairs.items():
        following = _by_version(earlier[writer[later] >= 0], later[writer[later] >= 0])
        _missed_writes(edges, columns, versions, following, readers, writer, EdgeKind.RW | kind)
    _missed_first_writes(edges, columns, versions, order, writer, readers)
    return edges.finish()


def _pairs(order: VersionOrder) -> dict[EdgeKind, tuple[Integers, Integers]]:
    """Return ordered pairs of versions, each once, by the order among transactions that is needed to know them."""
    orders = {"process": EdgeKind.PROCESS, "realtime": EdgeKind.REALTIME}
    needed = np.array([int(orders.get(name, 0)) for name in order.names], dtype=np.int64)
    size = int(max(order.later.max(initial=0), order.earlier.max(initial=0))) + 1
    code = order.earlier * size + order.later
    pairs: dict[EdgeKind, tuple[Integers, Integers]] = {}
    plain = np.zeros(0, dtype=np.int64)
    for kind in (EdgeKind(0), EdgeKind.PROCESS, EdgeKind.REALTIME):
        codes = np.setdiff1d(code[needed[order.source] == int(kind)], plain) if len(needed) else plain
        plain = plain if kind else codes
        pairs[kind] = (codes // size, codes % size)
    return pairs


def _by_version(version: Integers, micro: Integers) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for number, member in zip(version.tolist(), micro.tolist()):
        grouped.setdefault(number, []).append(member)
    return grouped


def _missed_writes(
    edges: EdgeList,
    columns: TransactionColumns,
    versions: RegisterVersions,
    following: dict[int, list[int]],
    readers: dict[int, list[int]],
    writer: Integers,
    kind: EdgeKind,
) -> None:
    """Draw the edges from readers of a version to writers of a later one."""
    owner, writers = columns.owner.tolist(), writer.tolist()
    for version, after in following.items():
        if version not in readers:
            continue
        if len(after) == 1:
            for micro in readers[version]:
                edges.add(owner[micro], writers[after[0]], kind, micro)
        else:
            reading = [(owner[micro], micro) for micro in readers[version]]
            edges.add_hub(reading, [(writers[later], int(versions.write[later])) for later in after], kind)


def _missed_first_writes(
    edges: EdgeList,
    columns: TransactionColumns,
    versions: RegisterVersions,
    order: VersionOrder,
    writer: Integers,
    readers: dict[int, list[int]],
) -> None:
    first = writer >= 0
    # A version whose only known predecessor has no committed writer is reached by no ww, so it counts as first as well.
    first[order.later[writer[order.earlier] >= 0]] = False
    external = np.zeros(len(first), dtype=np.bool_)
    external[versions.version[versions.external_write]] = True
    first &= external
    beginnings = _by_version(versions.key[first], np.flatnonzero(first))
    for version in np.flatnonzero(versions.unset).tolist():
        written = beginnings.get(int(versions.key[version]), [])
        if version in readers and written:
            reading = [(int(columns.owner[micro]), micro) for micro in readers[version]]
            edges.add_hub(reading, [(int(writer[later]), int(versions.write[later])) for later in written])
