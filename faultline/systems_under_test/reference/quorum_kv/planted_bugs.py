"""The planted bugs of `quorum-kv`: each a class that changes one of the `Parts` of a node, or the client.

They break the store for good: never use them outside the harness.
"""

from __future__ import annotations

from typing import Any

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
)
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs("quorum-kv", Parts, pattern="version-vector", campaign="siblings", caught_by=("siblings",))
_SERVER_IDS = BUGS.group(options={"versions": "server-id"})


@BUGS.plant("overwrite-siblings", "VVC-M1", part="versionings.*", replaces=True, caught_by=("siblings", "VVC-I5"))
class _OverwriteSiblings(Dotted):
    """A replica replaces its siblings by those that arrive, without comparing versions.

    Shows as: of two concurrent acknowledged writes one vanishes.
    """

    def merged(self, ours: Siblings, theirs: Siblings) -> Siblings:
        return theirs or ours


def _common_nodes_only(one: VersionVector, other: VersionVector) -> bool:
    common = [node for node in one.counters if node in other.counters]
    if any(one.counter(node) != other.counter(node) for node in common):
        return all(one.counter(node) >= other.counter(node) for node in common)
    return sorted(one.counters.items()) >= sorted(other.counters.items())


@_SERVER_IDS.plant("unequal-nodes-are-older", "VVC-M2", part="versionings.*", replaces=True)
class _UnequalNodesAreOlder(ServerIds):
    """Vectors are compared on the nodes they have in common only.

    Shows as: a value disappears for a concurrent one that was written without knowledge of it.
    """

    order = staticmethod(_common_nodes_only)


@_SERVER_IDS.plant("every-replica-counts", "VVC-M3", part="store")
class _EveryReplicaCounts(SiblingStore):
    """A replica that stores a copy counts it as an update of its own.

    Shows as: the copies of one write look concurrent: a value is its own sibling.
    """

    def merge(self, key: str, incoming: Siblings) -> bool:
        known = [sibling.version for sibling in self.get(key)]
        return super().merge(key, tuple(map(self._counted, (i for i in incoming if i.version not in known))))

    def _counted(self, sibling: VersionedValue) -> VersionedValue:
        version = sibling.version
        if isinstance(version, VersionVector) and version.counter(self._node_id) == 0:
            return VersionedValue(sibling.value, version.increment(self._node_id), sibling.time_us)
        return sibling


@BUGS.plant("no-read-repair", "VVC-M4", part="repair", replaces=True)
class _NoReadRepair(NoRepair):
    """A read does not bring the replicas it has asked to the same state.

    Shows as: after everything is healed, reads of one key go on disagreeing.
    """


@BUGS.plant("one-sibling-context", "VVC-M5", part="context")
def _context_of_one(siblings: Siblings) -> VersionVector:
    """A read of several siblings returns the context of one of them.

    Shows as: a conflict comes back after it was resolved.
    """
    return context_of(siblings[:1])


@_SERVER_IDS.plant("obsolete-write-accepted", "VVC-M6", part="versionings.*", replaces=True)
class _ObsoleteWriteAccepted(ServerIds):
    """A node takes a write that does not know its latest update, and numbers it as if it did.

    Shows as: an acknowledged write is replaced by one that never saw it.
    """

    def _is_obsolete(self, node: str, counter: int, update: Update) -> bool:
        return False


@BUGS.plant("prune-while-walking", "VVC-M7", part="versionings.*", replaces=True, caught_by=("siblings", "VVC-I1"))
class _PruneWhileWalking(Dotted):
    """Obsolete values are removed from the list during the walk through it, so some are skipped.

    Shows as: a value stays beside one that replaced it.
    """

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


@_SERVER_IDS.plant("fails-over-when-obsolete", "VVC-M8", part="client", caught_by=("siblings", "VVC-R8"))
class _FailsOverWhenObsolete(QuorumKeyValueClient):
    """A client that is refused as obsolete sends the same write to the next replica.

    Shows as: the stale write becomes a sibling there, although its client was to read again first.
    """

    def _handle_refusal(self, source: NodeId, error: str) -> None:
        if error == OBSOLETE_VERSION:
            # The same write, under the same number.
            self._updates[self._key] -= 1
            self._written = False
            self._turn_to_next_replica()
        else:
            super()._handle_refusal(source, error)


@BUGS.plant(
    "counter-lost-at-restart",
    "VVC-M9",
    part="store",
    campaign="siblings-durability",
    caught_by=("siblings", "VVC-I2", "VVC-I6"),
)
class _CounterLostAtRestart(SiblingStore):
    """A node forgets in a crash how many updates it has numbered.

    Shows as: two values share a version, and one of them is silently lost.
    """

    def recover(self) -> None:
        super().recover()
        self._counters.clear()


@BUGS.plant("clock-decides", "VVC-M10", part="versionings.*", replaces=True, caught_by=("siblings", "VVC-I5"))
class _ClockDecides(LastWriteWins):
    """Of concurrent values the one with the latest wall clock is kept, whatever the versions say.

    Shows as: of two concurrent acknowledged writes one vanishes.
    """
