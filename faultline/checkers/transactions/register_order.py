"""The partial order of a register's versions (Elle), from five sources.

- *initial*: the unset version comes before all others;
- *writes follow reads*: a transaction that read one version and wrote another put the latter after the former;
- *store*: the store itself reports the order in which it installed the versions of a key;
- *process*: a version that a process used later is no older than one that it used before;
- *real time*: nor is a version that was used after another use had completed.

Writes-follow-reads needs only read committed: in the other order, the write would depend on a read of a version that
came after it, which is G1c. Process and real-time order hold in the models which promise them for whole
transactions, since a version older than one used before would close a cycle with that order; in other models they are
promises of their own about single keys, to be asked for (`sequential_keys`, `linearizable_keys`).

Sources are added one after another. One that would put the versions of a key in a circle is reported
(`cyclic-versions`) and not used for that key. Versions in between that are unknown or aborted break the chain there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from faultline.checkers.common.words import hashable
from faultline.checkers.transactions.columns import NEVER, OK, Integers, TransactionColumns
from faultline.checkers.transactions.components import strongly_connected
from faultline.checkers.transactions.observations import Observations, shown
from faultline.checkers.transactions.order import raise_targets
from faultline.checkers.transactions.register_versions import RegisterVersions

__all__ = ["VersionOrder", "VersionSources", "order_versions"]


@dataclass(frozen=True, slots=True)
class VersionSources:
    """The sources to use beside *initial*: all but `store` are switches, `store` has values by key, oldest first."""

    writes_follow_reads: bool = True
    sequential_keys: bool = False
    linearizable_keys: bool = False
    store: Mapping[Any, Sequence[Any]] | None = None


@dataclass(frozen=True, slots=True)
class VersionOrder:
    """Pairs of versions, `earlier` before `later`, each with the number in `names` of the `source` that gave it."""

    earlier: Integers
    later: Integers
    source: Integers
    names: tuple[str, ...]


Pairs = tuple[Integers, Integers]


def order_versions(
    columns: TransactionColumns, versions: RegisterVersions, sources: VersionSources, found: Observations
) -> VersionOrder:
    """Merge the sources; report those that contradict earlier ones to `found`."""
    accepted = [(np.zeros(0, dtype=np.int64),) * 2]
    names: list[str] = []
    origin: list[Integers] = []
    for name, (earlier, later) in _candidates(columns, versions, sources):
        kept = (earlier != later) & ~versions.unset[later] & ~versions.unset[earlier]
        earlier, later = earlier[kept], later[kept]
        all_earlier = np.concatenate((*(pair[0] for pair in accepted), earlier))
        all_later = np.concatenate((*(pair[1] for pair in accepted), later))
        broken = _cyclic_keys(columns, versions, all_earlier, all_later)
        for key, circle in broken.items():
            _report(columns, versions, name, key, circle, found)
        kept = ~np.isin(versions.key[earlier], np.array(list(broken), dtype=np.int64))
        accepted.append((earlier[kept], later[kept]))
        origin.append(np.full(int(kept.sum()), len(names), dtype=np.int64))
        names.append(name)
    return VersionOrder(
        np.concatenate([pair[0] for pair in accepted]),
        np.concatenate([pair[1] for pair in accepted]),
        np.concatenate([np.zeros(0, dtype=np.int64), *origin]),
        tuple(names),
    )


def _candidates(
    columns: TransactionColumns, versions: RegisterVersions, sources: VersionSources
) -> list[tuple[str, Pairs]]:
    candidates = []
    if sources.store is not None:
        candidates.append(("store", _said_by_store(columns, versions, sources.store)))
    if sources.writes_follow_reads:
        candidates.append(("writes-follow-reads", _writes_follow_reads(columns, versions)))
    if sources.sequential_keys or sources.linearizable_keys:
        uses = _Uses(columns, versions)
        if sources.sequential_keys:
            candidates.append(("process", uses.in_process_order()))
        if sources.linearizable_keys:
            candidates.append(("realtime", uses.in_real_time()))
    return candidates


def _said_by_store(
    columns: TransactionColumns, versions: RegisterVersions, store: Mapping[Any, Sequence[Any]]
) -> Pairs:
    numbers = {hashable(key): number for number, key in enumerate(columns.keys)}
    earlier: list[int] = []
    later: list[int] = []
    for key, values in store.items():
        number = numbers.get(hashable(key), -1)
        known = [versions.numbers.get((number, hashable(value)), -1) for value in values]
        chain = [version for version in known if version >= 0]
        earlier += chain[:-1]
        later += chain[1:]
    return np.array(earlier, dtype=np.int64), np.array(later, dtype=np.int64)


def _writes_follow_reads(columns: TransactionColumns, versions: RegisterVersions) -> Pairs:
    read, write = versions.external_read, versions.external_write
    keys = len(columns.keys)
    read_code = columns.owner[read] * keys + columns.key[read]
    write_code = columns.owner[write] * keys + columns.key[write]
    _, reading, writing = np.intersect1d(read_code, write_code, assume_unique=True, return_indices=True)
    return versions.version[read[reading]], versions.version[write[writing]]


class _Uses:
    """The uses of keys: one entry for each transaction and key, with the first and the last version it met there.

    A transaction that is not known to have happened counts if one of its writes was read.
    """

    def __init__(self, columns: TransactionColumns, versions: RegisterVersions) -> None:
        self._columns = columns
        committed = versions.committed_writer(columns)
        write = versions.external_write
        write = write[committed[versions.version[write]] >= 0]
        micro = np.concatenate((versions.external_read, write))
        code = columns.owner[micro] * len(columns.keys) + columns.key[micro]
        order = np.lexsort((micro, code))
        micro, code = micro[order], code[order]
        opens = np.concatenate(([True], code[1:] != code[:-1])) if len(code) else np.zeros(0, dtype=np.bool_)
        ends = np.append(opens[1:], True) if len(code) else opens
        self.first, self.last = versions.version[micro[opens]], versions.version[micro[ends]]
        self.owner, self.key = columns.owner[micro[opens]], columns.key[micro[opens]]

    def in_process_order(self) -> Pairs:
        """Return each use with the next one of its key by the same process."""
        columns = self._columns
        order = np.lexsort((columns.invoke[self.owner], columns.process[self.owner], self.key))
        before, after = order[:-1], order[1:]
        same = (self.key[before] == self.key[after]) & (
            columns.process[self.owner[before]] == columns.process[self.owner[after]]
        )
        same &= columns.complete[self.owner[before]] < columns.invoke[self.owner[after]]
        return self.last[before[same]], self.first[after[same]]

    def in_real_time(self) -> Pairs:
        """Return each use with those before it in real time that no other use lies between.

        `frontier` holds the uses that have completed and were not yet followed by a whole other use.
        """
        columns = self._columns
        count = len(self.owner)
        moment = np.concatenate((columns.invoke[self.owner], columns.complete[self.owner]))
        key = np.concatenate((self.key, self.key))
        happened = np.flatnonzero(moment < NEVER)
        order = happened[np.lexsort((moment[happened], key[happened]))]
        keys, last, first = key[order].tolist(), self.last.tolist(), self.first.tolist()
        earlier: list[int] = []
        later: list[int] = []
        frontier: list[int] = []
        known: dict[int, list[int]] = {}
        current = -1
        for event, its_key in zip(order.tolist(), keys):
            if its_key != current:
                current, frontier = its_key, []
            if event < count:
                known[event] = frontier
                version = first[event]
                earlier += [last[use] for use in frontier]
                later += [version] * len(frontier)
            else:
                use = event - count
                before = known.pop(use)
                frontier = [other for other in frontier if other not in before]
                frontier.append(use)
        return np.array(earlier, dtype=np.int64), np.array(later, dtype=np.int64)


def _cyclic_keys(
    columns: TransactionColumns, versions: RegisterVersions, earlier: Integers, later: Integers
) -> dict[int, list[int]]:
    """Return the keys whose versions are in a circle, each with one."""
    writer = versions.writer(columns)
    guess = np.where(writer < 0, 0, columns.invoke[writer]) << 10
    raise_targets(guess, earlier, later)
    if not (guess[earlier] >= guess[later]).any():
        return {}
    broken: dict[int, list[int]] = {}
    for circle in strongly_connected(len(guess), earlier, later):
        broken.setdefault(int(versions.key[circle[0]]), sorted(circle))
    return broken


def _report(
    columns: TransactionColumns,
    versions: RegisterVersions,
    source: str,
    key: int,
    circle: list[int],
    found: Observations,
) -> None:
    suffix = f"-{source}" if source in ("process", "realtime") else ""
    if not found.wants(f"cyclic-versions{suffix}"):
        found.count(f"cyclic-versions{suffix}")
        return
    uses = np.flatnonzero(np.isin(versions.version, np.array(circle, dtype=np.int64)))
    values = {int(versions.version[micro]): columns.values[micro] for micro in uses.tolist()}
    ok = columns.outcome[columns.owner[uses]] == OK
    means = {
        "store": "the order that the store reports contradicts itself",
        "writes-follow-reads": "transactions read one and wrote another of them in a circle",
        "process": "single processes used them, one after another, in orders that cannot all be right",
        "realtime": "they were used, one after another in real time, in orders that cannot all be right",
    }
    found.add(
        f"cyclic-versions{suffix}",
        sorted(set(columns.owner[uses[ok] if ok.any() else uses].tolist()))[:16],
        f"The values {', '.join(shown(values[version]) for version in circle[:8])} of {columns.keys[key]} "
        f"have no order: {means[source]}.",
        columns.keys[key],
        source=source,
    )
