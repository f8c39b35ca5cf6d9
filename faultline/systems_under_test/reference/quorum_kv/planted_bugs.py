"""The planted bugs of `quorum-kv`: each is a record, and a subclass put into the `Parts` of a node.

They break the store for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.version_vector import (
    VersionedValue,
    VersionVector,
    context_of,
)
from faultline.systems_under_test.reference.quorum_kv.client import QuorumKeyValueClient
from faultline.systems_under_test.reference.quorum_kv.node import OBSOLETE_VERSION, NoRepair, Parts
from faultline.systems_under_test.reference.quorum_kv.sibling_store import (
    Dotted,
    LastWriteWins,
    ServerIds,
    Siblings,
    SiblingStore,
    Update,
    Versioning,
)
from faultline.systems_under_test.reference.shared.planted_bugs import class_with_bugs, planted, with_bugs

__all__ = ["PLANTED_BUGS", "client_class", "mutated_parts"]


_planted = partial(planted, pattern="version-vector", campaign="siblings")

_RECORDS = (
    _planted(
        "overwrite-siblings",
        "VVC-M1",
        "a replica replaces what it has by what arrives, without comparing versions",
        "of two concurrent acknowledged writes one vanishes",
        "siblings",
        "VVC-I5",
    ),
    _planted(
        "unequal-nodes-are-older",
        "VVC-M2",
        "vectors are compared on the nodes they have in common only",
        "a value disappears for a concurrent one that knew nothing of it",
        "siblings",
        versions="server-id",
    ),
    _planted(
        "every-replica-counts",
        "VVC-M3",
        "a replica that stores a copy counts it as an update of its own",
        "the copies of one write look concurrent: a value is its own sibling",
        "siblings",
        versions="server-id",
    ),
    _planted(
        "no-read-repair",
        "VVC-M4",
        "a read does not bring the replicas it has asked to the same state",
        "after everything is healed, reads of one key go on disagreeing",
        "siblings",
    ),
    _planted(
        "one-sibling-context",
        "VVC-M5",
        "a read of several siblings returns the context of one of them",
        "a conflict comes back after it was resolved",
        "siblings",
    ),
    _planted(
        "obsolete-write-accepted",
        "VVC-M6",
        "a node takes a write that does not know its latest update, and numbers it as if it did",
        "an acknowledged write is replaced by one that never saw it",
        "siblings",
        versions="server-id",
    ),
    _planted(
        "prune-while-walking",
        "VVC-M7",
        "obsolete values are removed from the list that is being walked through, so some are skipped",
        "a value stays beside one that replaced it",
        "siblings",
        "VVC-I1",
    ),
    _planted(
        "fails-over-when-obsolete",
        "VVC-M8",
        "a client that is refused as obsolete sends the same write to the next replica",
        "the stale write becomes a sibling there, although its client was to read again first",
        "siblings",
        "VVC-R8",
        versions="server-id",
    ),
    _planted(
        "counter-lost-at-restart",
        "VVC-M9",
        "a node forgets in a crash how many updates it has numbered",
        "two values share a version, and one of them is silently lost",
        "siblings",
        "VVC-I2",
        "VVC-I6",
        campaign="siblings-durability",
    ),
    _planted(
        "clock-decides",
        "VVC-M10",
        "of concurrent values the one with the latest wall clock is kept, whatever the versions say",
        "of two concurrent acknowledged writes one vanishes",
        "siblings",
        "VVC-I5",
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _FailsOverWhenObsolete(QuorumKeyValueClient):
    def _handle_refusal(self, source: NodeId, error: str) -> None:
        if error == OBSOLETE_VERSION:
            # The same write, under the same number.
            self._updates[self._key] -= 1
            self._written = False
            self._turn_to_next_replica()
        else:
            super()._handle_refusal(source, error)


class _OverwriteSiblings(Dotted):
    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        return theirs or ours


def _common_nodes_only(one: VersionVector, other: VersionVector) -> bool:
    common = [node for node in one.counters if node in other.counters]
    if any(one.counter(node) != other.counter(node) for node in common):
        return all(one.counter(node) >= other.counter(node) for node in common)
    return sorted(one.counters.items()) >= sorted(other.counters.items())


class _UnequalNodesAreOlder(ServerIds):
    order = staticmethod(_common_nodes_only)


class _ObsoleteWriteAccepted(ServerIds):
    def _is_obsolete(self, node: str, counter: int, update: Update) -> bool:
        return False


class _PruneWhileWalking(Dotted):
    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        kept: list[VersionedValue] = []
        for value in (*ours, *theirs):
            if all(value.version != other.version for other in kept):
                kept.append(value)
        place = 0
        while place < len(kept):
            version: Any = kept[place].version
            if any(other is not kept[place] and self.order(other.version, version) for other in kept):
                del kept[place]
            place += 1
        return tuple(kept)


class _EveryReplicaCounts(SiblingStore):
    def merge(self, key: str, incoming: Siblings) -> bool:
        known = [sibling.version for sibling in self.get(key)]
        return super().merge(key, tuple(map(self._counted, (i for i in incoming if i.version not in known))))

    def _counted(self, sibling: VersionedValue) -> VersionedValue:
        version = sibling.version
        if isinstance(version, VersionVector) and version.counter(self._node_id) == 0:
            return VersionedValue(sibling.value, version.increment(self._node_id), sibling.time_us)
        return sibling


class _CounterLostAtRestart(SiblingStore):
    def recover(self) -> None:
        super().recover()
        self._counters.clear()


def _context_of_one(siblings: Siblings) -> VersionVector:
    return context_of(siblings[:1])


def _versioning(change: type[Versioning]) -> Callable[[Parts], Parts]:
    return lambda parts: replace(parts, versioning=lambda _: change())


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "overwrite-siblings": _versioning(_OverwriteSiblings),
    "unequal-nodes-are-older": _versioning(_UnequalNodesAreOlder),
    "every-replica-counts": lambda parts: replace(parts, store=_EveryReplicaCounts),
    "no-read-repair": lambda parts: replace(parts, repair=NoRepair),
    "one-sibling-context": lambda parts: replace(parts, context=_context_of_one),
    "obsolete-write-accepted": _versioning(_ObsoleteWriteAccepted),
    "prune-while-walking": _versioning(_PruneWhileWalking),
    "counter-lost-at-restart": lambda parts: replace(parts, store=_CounterLostAtRestart),
    "clock-decides": _versioning(LastWriteWins),
}

_CLIENTS = {"fails-over-when-obsolete": _FailsOverWhenObsolete}


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`; with none, the correct ones. Raises UsageError."""
    return with_bugs("quorum-kv", names, Parts(), _CHANGES, elsewhere=_CLIENTS)


def client_class(names: Iterable[str]) -> type[QuorumKeyValueClient]:
    """The client with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, QuorumKeyValueClient, _CLIENTS)
