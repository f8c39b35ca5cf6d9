"""The invariants of `partitioned-kv`, checked on the reports of its nodes while a run goes on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import PartitionTable
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import partition_of
from faultline.systems_under_test.patterns.data_partitioning.partition_host import SERVING
from faultline.systems_under_test.patterns.data_partitioning.token_ring import first_point, tokens_of
from faultline.systems_under_test.reference.partitioned_kv.messages import (
    HostStarted,
    KeyStored,
    PartitionsAssigned,
    PartitionsHosted,
    PartitionsMoving,
    PartitionTaken,
    RingMoves,
    RingSettled,
    TableApplied,
    WriteAccepted,
)
from faultline.systems_under_test.reference.raft.invariants.agreement import raft_invariants

__all__ = [
    "DataIsTakenInOnce",
    "HostingFollowsTheTable",
    "KeysKeepTheirPartition",
    "LoadsAreEven",
    "OneJoinsAtATime",
    "OneOwnerAtATime",
    "OwnersFollowTheRing",
    "PartitionsHoldTheirOwnKeys",
    "TablesCoverAllPartitions",
    "partition_invariants",
]

_SETTLED_US = 2_500_000


class KeysKeepTheirPartition(ReportingInvariant):
    """FXP-I1, on each key that a node stores."""

    id = "FXP-I1"
    statement = "A key is in the same partition at all times and on all nodes."
    events = (KeyStored,)

    def __init__(self) -> None:
        self._partitions: dict[str, int] = {}

    def observe(self, time_us: int, node: str, event: KeyStored, report: Report) -> None:
        """Compare with the partition in which the key was stored first."""
        before = self._partitions.setdefault(event.key, event.partition)
        if before != event.partition:
            sentence = f"{node} stored {event.key!r} in partition {event.partition}; it was in {before} before."
            self._breach(report, time_us, node, sentence)


class TablesCoverAllPartitions(ReportingInvariant):
    """FXP-I2, on the tables of the directory."""

    id = "FXP-I2"
    statement = "A table that is not empty has one owner for each partition, and no generation of an entry goes back."
    events = (TableApplied, HostStarted)

    def __init__(self) -> None:
        self._tables: dict[str, PartitionTable] = {}

    def observe(self, time_us: int, node: str, event: TableApplied | HostStarted, report: Report) -> None:
        """Count the entries; compare the generations with those this replica had before."""
        if isinstance(event, HostStarted):
            self._tables.pop(node, None)
            return
        entries, before = event.table.entries, self._tables.get(node)
        self._tables[node] = event.table
        if before is not None and before.version == event.table.version:
            return
        if entries and len(entries) != event.partitions:
            sentence = f"The table at {node} has {len(entries)} entries for {event.partitions} partitions."
            self._breach(report, time_us, node, sentence)
        for partition, (old, new) in enumerate(zip(before.entries if before else (), entries, strict=False)):
            if (new.generation, new.owner) != (old.generation, old.owner) and new.generation <= old.generation:
                sentence = f"Partition {partition} went from {old.owner} to {new.owner} without a higher generation."
                self._breach(report, time_us, node, sentence)


class OneOwnerAtATime(ReportingInvariant):
    """FXP-I2, on the nodes: writes of a partition run under generations that do not go back, each on one node."""

    id = "FXP-I2"
    statement = "Each generation of a partition has one node that executes writes, and none after a later one began."
    events = (WriteAccepted,)
    needs_order = True

    def __init__(self) -> None:
        self._writers: dict[int, tuple[int, str]] = {}

    def observe(self, time_us: int, node: str, event: WriteAccepted, report: Report) -> None:
        """Compare with the last write in the partition."""
        generation, writer = self._writers.get(event.partition, (0, node))
        if event.generation < generation or (event.generation == generation and node != writer):
            sentence = (
                f"{node} executed a write in partition {event.partition} under generation {event.generation} after"
                f" {writer} had under {generation}."
            )
            self._breach(report, time_us, node, sentence)
        self._writers[event.partition] = max((generation, writer), (event.generation, node))


class DataIsTakenInOnce(ReportingInvariant):
    """FXP-R27: the first MovePartition counts; after a crash only if it had not become durable."""

    id = "FXP-R27"
    statement = "The data with which a generation of a partition begins is taken in once, and no older data after it."
    events = (PartitionTaken, HostStarted)

    def __init__(self) -> None:
        self._taken: dict[str, dict[int, int]] = {}

    def observe(self, time_us: int, node: str, event: PartitionTaken | HostStarted, report: Report) -> None:
        """Compare with the data that this node took in before; it may take again what its disk did not keep."""
        if isinstance(event, HostStarted):
            self._taken[node] = dict(event.partitions)
            return
        taken = self._taken.setdefault(node, {})
        before = taken.get(event.partition, 0)
        if event.generation <= before:
            sentence = (
                f"{node} took in partition {event.partition} of generation {event.generation}"
                f" after it had had generation {before}."
            )
            self._breach(report, time_us, node, sentence)
        taken[event.partition] = max(before, event.generation)


class HostingFollowsTheTable(ReportingInvariant):
    """FXP-I4: looked at once, at the end of a run that was healed a while ago. Simulated world only."""

    id = "FXP-I4"
    statement = (
        "When nothing has moved for a while, the owners in the table serve their partitions, and no other node does."
    )
    events = (TableApplied, PartitionsMoving, PartitionsHosted, HostStarted)

    def __init__(self) -> None:
        self._table = PartitionTable()
        self._pending = 0
        self._began_us = 0
        self._hosted: dict[str, dict[int, tuple[int, str]]] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Remember the newest table, the moves and the time they began, and the partitions that each node hosts."""
        if isinstance(event, TableApplied):
            self._newest = event.table.version >= self._table.version
            if self._newest:
                self._table = event.table
        elif isinstance(event, PartitionsMoving):
            if self._newest and bool(event.pending) != bool(self._pending):
                self._began_us = time_us
            self._pending = event.pending if self._newest else self._pending
        elif isinstance(event, PartitionsHosted):
            self._hosted.setdefault(node, {})[event.partition] = (event.generation, event.state)
        else:
            self._hosted.setdefault(node, {})

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Compare the table with the hosted partitions, unless a move has just begun."""
        if self._pending:
            if max(self._began_us, healed_us) + _SETTLED_US < end_us:
                since_ms = self._began_us // 1_000
                self._breach(report, end_us, "", f"{self._pending} moves begun at {since_ms} ms never ended.")
            return
        for partition, entry in enumerate(self._table.entries):
            for node, hosted in sorted(self._hosted.items()):
                state = hosted.get(partition, (0, ""))
                serves = state == (entry.generation, SERVING)
                if entry.online and node == entry.owner and not serves:
                    sentence = f"{node} owns partition {partition} in the table and does not serve it: {state}."
                    self._breach(report, end_us, node, sentence)
                if node != entry.owner and state[0] >= entry.generation and state[1] == SERVING:
                    sentence = f"{node} serves partition {partition}, which the table gives to {entry.owner}."
                    self._breach(report, end_us, node, sentence)


class LoadsAreEven(ReportingInvariant):
    """FXP-I5, on each plan of the coordinator."""

    id = "FXP-I5"
    statement = "After a round-robin assignment and after a rebalancing, loads differ by one at most."
    events = (PartitionsAssigned,)

    def observe(self, time_us: int, node: str, event: PartitionsAssigned, report: Report) -> None:
        """Compare the largest load with the smallest."""
        if max(event.loads) - min(event.loads) > 1:
            loads = ", ".join(map(str, event.loads))
            self._breach(report, time_us, node, f"{node} planned for members with {loads} partitions.")


@lru_cache(maxsize=64)
def _circle(members: frozenset[str], tokens_per_node: int) -> list[tuple[int, str]]:
    """Return the tokens of `members` in order, found without the ring that is judged."""
    return sorted((token, member) for member in members for token in tokens_of(member, 0, tokens_per_node))


def _owner_by_tokens(members: Iterable[str], tokens_per_node: int, partition: int, partitions: int) -> str:
    """Return the member whose token comes next around the circle from the first point of `partition`."""
    circle = _circle(frozenset(members), tokens_per_node)
    place = bisect_left(circle, (first_point(partition, partitions), ""))
    return circle[place % len(circle)][1]


class OwnersFollowTheRing(ReportingInvariant):
    """FXP-R32, on a ring in which all have joined."""

    id = "FXP-R32"
    statement = "When all have joined, a partition is owned by the node with the first token around the circle."
    events = (RingSettled,)

    def observe(self, time_us: int, node: str, event: RingSettled, report: Report) -> None:
        """Find the owner of every partition on the circle, and compare."""
        members, count = set(event.owners), len(event.owners)
        for partition, owner in enumerate(event.owners):
            right = _owner_by_tokens(members, event.tokens_per_node, partition, count)
            if owner != right:
                sentence = f"{owner} owns partition {partition}; the next token around the circle is {right}'s."
                self._breach(report, time_us, node, sentence)


class OneJoinsAtATime(ReportingInvariant):
    """FXP-R35: a member joins when it gets partitions that its tokens take; other moves are no join."""

    id = "FXP-R35"
    statement = "Of the members of a ring, one at a time gets partitions that its tokens take."
    events = (RingMoves,)

    def observe(self, time_us: int, node: str, event: RingMoves, report: Report) -> None:
        """Count the members that get partitions by their tokens."""
        if len({target for _, target in event.moves}) < 2:
            return
        joining = sorted({target for partition, target in event.moves if self._is_its_own(event, partition, target)})
        if len(joining) > 1:
            self._breach(report, time_us, node, f"{' and '.join(joining)} get partitions at the same time.")

    def _is_its_own(self, event: RingMoves, partition: int, target: str) -> bool:
        members = {*event.owners, target}
        return _owner_by_tokens(members, event.tokens_per_node, partition, len(event.owners)) == target


class PartitionsHoldTheirOwnKeys(ReportingInvariant):
    """FXP-I6, on each key that a node stores."""

    id = "FXP-I6"
    statement = "A partition holds only keys that hash to it."
    events = (KeyStored,)

    def observe(self, time_us: int, node: str, event: KeyStored, report: Report) -> None:
        """Hash the key again."""
        right = partition_of(event.key, event.partitions)
        if right != event.partition:
            sentence = f"{node} stored {event.key!r} in partition {event.partition}; it hashes to {right}."
            self._breach(report, time_us, node, sentence)


def partition_invariants() -> list[Invariant]:
    """Return new instances, for one run; the core's own come with them."""
    return [
        KeysKeepTheirPartition(),
        TablesCoverAllPartitions(),
        OneOwnerAtATime(),
        DataIsTakenInOnce(),
        HostingFollowsTheTable(),
        LoadsAreEven(),
        PartitionsHoldTheirOwnKeys(),
        OwnersFollowTheRing(),
        OneJoinsAtATime(),
        *raft_invariants(),
    ]
