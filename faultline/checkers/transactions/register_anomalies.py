"""Anomalies of registers that need no cycle."""

from __future__ import annotations

import numpy as np

from faultline.checkers.transactions.columns import FAIL, OK, Booleans, TransactionColumns
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.register_versions import RegisterVersions
from faultline.checkers.transactions.updates import lost_updates

__all__ = ["observe_registers"]


def observe_registers(columns: TransactionColumns, versions: RegisterVersions, found: Observations) -> None:
    """Report all anomalies of registers that need no cycle to `found`."""
    read = np.flatnonzero(columns.is_read & (columns.outcome[columns.owner] == OK))
    version = versions.version[read]
    writer = versions.writer(columns)[version]
    for micro in read[(writer < 0) & ~versions.unset[version]].tolist():
        _garbage(columns, micro, found)
    for micro in read[(writer >= 0) & (columns.outcome[writer] == FAIL)].tolist():
        _aborted(columns, versions, micro, found)
    others = (writer >= 0) & (writer != columns.owner[read])
    for micro in read[others & ~_external(versions)[version]].tolist():
        _intermediate(columns, versions, micro, found)
    _internal(columns, versions, found)
    state = np.full(len(columns.key), -1, dtype=np.int64)
    state[read] = version
    lost_updates(columns, state, found)


def _external(versions: RegisterVersions) -> Booleans:
    external = np.zeros(len(versions.key), dtype=np.bool_)
    external[versions.version[versions.external_write]] = True
    return external


def _garbage(columns: TransactionColumns, micro: int, found: Observations) -> None:
    key, reader = columns.keys[columns.key[micro]], int(columns.owner[micro])
    found.add(
        "garbage-read",
        [reader],
        f"{found.name(reader).capitalize()} read {shown(columns.values[micro])} from {key}, which no transaction had "
        "written.",
        key,
    )


def _aborted(columns: TransactionColumns, versions: RegisterVersions, micro: int, found: Observations) -> None:
    key, reader = columns.keys[columns.key[micro]], int(columns.owner[micro])
    writer = int(columns.owner[versions.write[versions.version[micro]]])
    value = shown(columns.values[micro])
    found.add(
        "G1a",
        [writer, reader],
        f"{found.name(writer).capitalize()} failed, yet {found.name(reader)} read {value}, which it had meant to write "
        f"to {key}.",
        key,
    )
    steps = range(micro + 1, int(columns.start[reader + 1]))
    if any(columns.key[step] == columns.key[micro] and not columns.is_read[step] for step in steps):
        found.add(
            "dirty-update",
            [writer, reader],
            f"{found.name(reader).capitalize()} read {value} from {key}, which a failed transaction had written, and "
            "wrote to the same key on top of it.",
            key,
        )


def _intermediate(columns: TransactionColumns, versions: RegisterVersions, micro: int, found: Observations) -> None:
    key, reader = columns.keys[columns.key[micro]], int(columns.owner[micro])
    writer = int(columns.owner[versions.write[versions.version[micro]]])
    found.add(
        "G1b",
        [writer, reader],
        f"{found.name(reader).capitalize()} read {shown(columns.values[micro])} from {key}, but {found.name(writer)} "
        "wrote to it again after that, and no read may see half a transaction.",
        key,
    )


def _internal(columns: TransactionColumns, versions: RegisterVersions, found: Observations) -> None:
    """Report reads that differ from the step before on the same key, and reads of the transaction's own later
    writes."""
    alive = np.flatnonzero(columns.outcome[columns.owner] == OK)
    order = alive[np.argsort(columns.owner[alive] * len(columns.keys) + columns.key[alive], kind="stable")]
    before, after = order[:-1], order[1:]
    same = (columns.owner[before] == columns.owner[after]) & (columns.key[before] == columns.key[after])
    wrong = same & columns.is_read[after] & (versions.version[before] != versions.version[after])
    for earlier, micro in zip(before[wrong].tolist(), after[wrong].tolist()):
        key, owner = columns.keys[columns.key[micro]], int(columns.owner[micro])
        found.add(
            "internal",
            [owner],
            f"{found.name(owner).capitalize()} read {shown(columns.values[micro])} from {key}, but by its own step "
            f"before that the value was {shown(columns.values[earlier])}.",
            key,
        )
    read = order[columns.is_read[order]]
    write = versions.write[versions.version[read]]
    for micro in read[(write > read) & (columns.owner[write] == columns.owner[read])].tolist():
        key, owner = columns.keys[columns.key[micro]], int(columns.owner[micro])
        found.add(
            "future-read",
            [owner],
            f"{found.name(owner).capitalize()} read {shown(columns.values[micro])} from {key} before it "
            "wrote that itself.",
            key,
        )
