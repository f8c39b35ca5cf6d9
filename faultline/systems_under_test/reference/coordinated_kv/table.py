"""The partition table of `coordinated-kv`, and its controller's decisions about it: pure functions, no messages.

Each partition has a few *replicas*. One of them is its *leader*. Those that have all acknowledged writes are *in sync*,
the leader among them. An entry changes in two ways, and each has a number of its own:

- the **generation** grows when a leader is appointed; replicas refuse messages from leaders of lower generations;
- the **revision** grows at every change, also of the set in sync. A request for a change names the revision that the
  leader has seen, so that a late request changes nothing.

A leader is named together with the *incarnation of its lease* as a member. A node that lost its lease and has a new one
counts as another node: it must be appointed again, and no node can take its place while the lease named here lives.
This lets a leader answer reads by its lease alone, and the controller appoint another once the lease is gone.

Changes of an entry, in the order in which the controller looks for them:

    the leader's lease is gone          ─▶ a live replica in sync leads, in the next generation; else none
    a follower's lease is gone          ─▶ it is not in sync any more
    the leader asks                     ─▶ a follower that caught up is in sync, one that lags behind is not
    the leader gives up for its heir    ─▶ the heir leads, in the next generation
    too few replicas live               ─▶ another member becomes a replica, and catches up
    a member leads too many             ─▶ a member that leads fewer is made a replica, and then heir
    a replica too many is in sync       ─▶ one of them is let go

Sources: PacificA (Lin, Yang, Zhang and Zhou 2008) §2, whose configuration manager is the core here; Kafka's controller
(KIP-497 for the leader's requests, KIP-631 for the epochs of brokers, which are the incarnations here).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import (
    FIRST_GENERATION,
    assign_round_robin,
    plan_rebalancing,
)

__all__ = [
    "NO_NODE",
    "Appointments",
    "ClusterTable",
    "Entry",
    "Members",
    "balanced",
    "first_entries",
    "leads",
    "table_of",
    "value_of",
]

NO_NODE = ""
"""The leader of a partition that has none."""

Members = Mapping[str, int]
"""The live members, in the order of their names, and the incarnation of each one's lease."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One partition: its replicas, those in sync, the leader and the incarnation of its lease, and the next leader."""

    replicas: tuple[str, ...]
    in_sync: tuple[str, ...]
    leader: str
    incarnation: int
    generation: int
    revision: int = 0
    heir: str = NO_NODE


class ClusterTable(msgspec.Struct, frozen=True, array_like=True):
    """The table as the core keeps it: its version, the controller that wrote it and its token, and the entries."""

    version: int = 0
    controller: str = NO_NODE
    token: int = 0
    entries: tuple[Entry, ...] = ()


def value_of(table: ClusterTable) -> Any:
    """Return the table as a value of the core's store: nested lists."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(table))


def table_of(value: Any) -> ClusterTable:
    """Return the table in a value of the core's store; the empty one where none is stored yet."""
    return ClusterTable() if value is None else msgspec.convert(value, ClusterTable)


def first_entries(partitions: int, members: Members, replication_factor: int) -> tuple[Entry, ...]:
    """Return entries with leaders in turn, each followed by its neighbours. Raise `NotEnoughClusterNodes`."""
    names = list(members)
    leaders = assign_round_robin(partitions, names, replication_factor)
    return tuple(_first_entry(leader, names, members, replication_factor) for leader in leaders)


def _first_entry(leader: str, names: list[str], members: Members, replication_factor: int) -> Entry:
    at = names.index(leader)
    replicas = tuple(names[(at + step) % len(names)] for step in range(replication_factor))
    return Entry(replicas, replicas, leader, members[leader], FIRST_GENERATION)


class Appointments:
    """The decisions on leaders and on sets in sync, for the members that live."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def after_failures(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return the entries without leaders and followers in sync whose leases are gone."""
        loads = {name: sum(entry.leader == name for entry in entries) for name in self._members}
        return tuple(self._after_failure(entry, loads) for entry in entries)

    def _after_failure(self, entry: Entry, loads: dict[str, int]) -> Entry:
        if not leads(entry, self._members):
            return self._appointed(entry, loads)
        alive = self._alive_in_sync(entry)
        return entry if alive == entry.in_sync else _changed(entry, in_sync=alive)

    def _alive_in_sync(self, entry: Entry) -> tuple[str, ...]:
        return tuple(name for name in entry.in_sync if name in self._members)

    def electable(self, entry: Entry) -> tuple[str, ...]:
        """Return the replicas that may lead: those in sync that live."""
        return self._alive_in_sync(entry)

    def handed_over(self, entry: Entry) -> Entry:
        """Return the entry after its leader resigned: its heir leads, or another if that one has died."""
        return self._appointed(entry, {})

    def _appointed(self, entry: Entry, loads: dict[str, int]) -> Entry:
        """Return the entry with a new leader, in a new generation: the heir, or the candidate that leads fewest.

        Without a candidate the partition has no leader, and those in sync stay so: the first of them that comes back
        has all acknowledged writes.
        """
        candidates = self.electable(entry)
        if not candidates:
            return entry if entry.leader == NO_NODE else _changed(entry, leader=NO_NODE, heir=NO_NODE)
        leader = entry.heir if entry.heir in candidates else min(candidates, key=lambda name: loads.get(name, 0))
        loads[leader] = loads.get(leader, 0) + 1
        return _changed(
            entry,
            in_sync=candidates,
            leader=leader,
            incarnation=self._members[leader],
            generation=entry.generation + 1,
            heir=NO_NODE,
        )

    def in_sync_altered(self, entry: Entry, in_sync: Sequence[str]) -> Entry:
        """Return the entry with those of `in_sync` that live; a new revision also if that changes nothing."""
        members = self._members
        kept = (name for name in entry.replicas if name == entry.leader or (name in in_sync and name in members))
        return _changed(entry, in_sync=tuple(kept))


def leads(entry: Entry, members: Members) -> bool:
    """Return whether the lease lives under which the leader was appointed."""
    return entry.leader != NO_NODE and members.get(entry.leader) == entry.incarnation


def balanced(entries: Sequence[Entry], members: Members, replication_factor: int) -> tuple[Entry, ...]:
    """Return the entries one step nearer to enough replicas, and to loads that differ by one at most."""
    changed = list(entries)
    for partition, entry in enumerate(changed):
        if leads(entry, members):
            changed[partition] = _with_enough_replicas(entry, changed, members, replication_factor)
    owners = [entry.leader if leads(entry, members) else NO_NODE for entry in changed]
    for move in plan_rebalancing(owners, list(members)):
        changed[move.partition] = _towards(changed[move.partition], move.target, replication_factor)
    return tuple(_without_surplus(entry, changed, members, replication_factor) for entry in changed)


def _with_enough_replicas(entry: Entry, entries: Sequence[Entry], members: Members, wanted: int) -> Entry:
    alive = [name for name in entry.replicas if name in members]
    while len(alive) < wanted:
        others = [name for name in members if name not in alive]
        if not others:
            return entry
        alive.append(min(others, key=_hosted(entries, members).__getitem__))
    return entry if set(alive) >= set(entry.replicas) else _changed(entry, replicas=tuple(alive))


def _towards(entry: Entry, target: str, replication_factor: int) -> Entry:
    """Return the entry one step nearer to `target` as leader: a replica first, then in sync by itself, then heir."""
    if entry.heir != NO_NODE:
        return entry
    if target in entry.in_sync:
        return _changed(entry, heir=target)
    if target not in entry.replicas and len(entry.replicas) <= replication_factor:
        return _changed(entry, replicas=(*entry.replicas, target))
    return entry


def _without_surplus(entry: Entry, entries: Sequence[Entry], members: Members, wanted: int) -> Entry:
    spare = [name for name in entry.in_sync if name != entry.leader]
    if not leads(entry, members) or entry.heir != NO_NODE or len(entry.in_sync) <= wanted or not spare:
        return entry
    hosted = _hosted(entries, members)
    goes = max(spare, key=lambda name: hosted.get(name, 0))
    return _changed(
        entry,
        replicas=tuple(name for name in entry.replicas if name != goes),
        in_sync=tuple(name for name in entry.in_sync if name != goes),
    )


def _hosted(entries: Sequence[Entry], members: Members) -> dict[str, int]:
    return {name: sum(name in entry.replicas for entry in entries) for name in members}


def _changed(entry: Entry, **fields: Any) -> Entry:
    return msgspec.structs.replace(entry, revision=entry.revision + 1, **fields)
