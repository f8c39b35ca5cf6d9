"""The planted bugs of `gossip`: each a record, and a change to one of its `Parts`.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from faultline.harness.system import PlantedBug
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.gossip_dissemination import (
    ClusterMetadata,
    Delta,
    Entry,
    NodeState,
    chosen_peers,
)
from faultline.systems_under_test.reference.gossip.messages import GossipStates
from faultline.systems_under_test.reference.gossip.node import GossipNode, Parts
from faultline.systems_under_test.reference.shared.planted_bugs import class_with_bugs, layered, with_bugs

__all__ = ["PLANTED_BUGS", "mutated_parts", "node_class"]

_PATTERN = "gossip-dissemination"

_RECORDS = (
    PlantedBug(
        name="merge-by-arrival",
        pattern=_PATTERN,
        id="GO-M1",
        summary="what arrives last is kept, whatever its version",
        shows_as="knowledge gets older when messages are late",
        campaign="gossip",
        caught_by=("GO-I1", "convergence"),
        options={"exchange": "full"},
    ),
    PlantedBug(
        name="reply-not-merged",
        pattern=_PATTERN,
        id="GO-M2",
        summary="who opened an exchange does not take what the other sends back",
        shows_as="where replies are all that carries values, nobody ever learns anything",
        campaign="gossip",
        caught_by=("convergence",),
        options={"exchange": "digest"},
    ),
    PlantedBug(
        name="no-generation",
        pattern=_PATTERN,
        id="GO-M3",
        summary="a restarted node counts its versions from one again, in the old generation",
        shows_as="what the node said before it was restarted is believed for ever",
        campaign="gossip-restarts",
        caught_by=("GO-I2", "convergence"),
    ),
    PlantedBug(
        name="own-entry-overwritten",
        pattern=_PATTERN,
        id="GO-M4",
        summary="a node believes what others tell it about itself",
        shows_as="a restarted node takes its old statements for its own",
        campaign="gossip-restarts",
        caught_by=("GO-I1", "GO-I2", "convergence"),
        options={"seeds": "3"},
    ),
    PlantedBug(
        name="always-the-first-peers",
        pattern=_PATTERN,
        id="GO-M5",
        summary="the same peers are asked in every round",
        shows_as="when they are away nothing spreads",
        campaign="gossip-seeds",
        caught_by=("convergence",),
        options={"fanout": "1", "seed_every": "0", "exchange": "digest"},
    ),
    PlantedBug(
        name="digest-off-by-one",
        pattern=_PATTERN,
        id="GO-M6",
        summary="an entry just above the digest is taken for known",
        shows_as="the last thing a node said never spreads",
        campaign="gossip",
        caught_by=("convergence",),
    ),
    PlantedBug(
        name="one-key-erases-the-other",
        pattern=_PATTERN,
        id="GO-M7",
        summary="a node's second statement replaces its first, under whatever key",
        shows_as="the owner does not know what it has said, and others do",
        campaign="gossip",
        caught_by=("convergence",),
    ),
    PlantedBug(
        name="version-not-incremented",
        pattern=_PATTERN,
        id="GO-M10",
        summary="a change is said under the version of what it changes",
        shows_as="changes never spread; one version has two values",
        campaign="gossip",
        caught_by=("GO-I2", "convergence"),
    ),
    PlantedBug(
        name="versions-counted-per-key",
        pattern=_PATTERN,
        id="GO-M11",
        summary="versions are counted per key, while the digest has one per node",
        shows_as="what was changed less often than something else never spreads",
        campaign="gossip",
        caught_by=("convergence",),
    ),
    PlantedBug(
        name="generations-merged",
        pattern=_PATTERN,
        id="GO-M12",
        summary="a higher generation is merged with what was known of the lower one",
        shows_as="what a node does not say any more is still believed",
        campaign="gossip-restarts",
        caught_by=("convergence", "GO-I1", "GO-I2"),
    ),
    PlantedBug(
        name="gap-accepted",
        pattern=_PATTERN,
        id="GO-R15",
        summary="a delta is taken although what lies below it was never received",
        shows_as="the digest claims entries that the node has not, and it never gets them",
        campaign="gossip-restarts",
        caught_by=("convergence",),
    ),
)

PLANTED_BUGS: dict[str, PlantedBug] = {record.name: record for record in _RECORDS}
"""Every planted bug by name."""


class _ByArrivalState(NodeState):
    __slots__ = ()

    def take(self, key: str, entry: Entry) -> bool:
        changed = self.entries.get(key) != entry
        self.entries[key] = entry
        self.max_version = max(self.max_version, entry.version)
        return changed


class _MergeByArrival(ClusterMetadata):
    def _begin_generation(self, node: str, generation: int) -> NodeState:
        self.states[node] = _ByArrivalState(generation)
        return self.states[node]


class _OwnEntryOverwritten(ClusterMetadata):
    def merge(self, deltas: Mapping[str, Delta]) -> list[tuple[str, str, Entry]]:
        taken = super().merge(deltas)
        if self.own in deltas:
            taken += self._merge_own(deltas[self.own])
        return taken

    def _merge_own(self, delta: Delta) -> list[tuple[str, str, Entry]]:
        state = self.states[self.own]
        return [(self.own, key, entry) for key, entry in delta.entries.items() if state.take(key, entry)]

    def newer_than(self, digest: Mapping[str, Sequence[int]], entries_max: int) -> dict[str, Delta]:
        """An older generation of the other itself is sent too, as if generations were no reason to keep silent."""
        found = super().newer_than(digest, entries_max)
        for node, state in self.states.items():
            if node not in found and node in digest and digest[node][0] > state.generation:
                found[node] = Delta(state.generation, 0, dict(state.entries))
        return found


class _OffByOne(ClusterMetadata):
    def _shared_version(self, state: NodeState, known: Sequence[int] | None) -> int | None:
        shared = super()._shared_version(state, known)
        return None if shared is None else shared + 1


class _OneKeyErasesTheOther(ClusterMetadata):
    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        self.states[self.own].entries.clear()
        return super()._say(key, value, deleted=deleted)


class _SameVersion(ClusterMetadata):
    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        state = self.states[self.own]
        known = state.entries.get(key)
        if known is None:
            return super()._say(key, value, deleted=deleted)
        state.entries[key] = Entry(known.version, value, deleted)
        return state.entries[key]


class _PerKeyVersions(ClusterMetadata):
    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        state = self.states[self.own]
        known = state.entries.get(key)
        entry = Entry(known.version + 1 if known else 1, value, deleted)
        state.take(key, entry)
        return entry


class _GenerationsMerged(ClusterMetadata):
    def _begin_generation(self, node: str, generation: int) -> NodeState:
        before = self.states.get(node)
        state = super()._begin_generation(node, generation)
        if before is not None:
            state.entries = {key: Entry(0, entry.value, entry.deleted) for key, entry in before.entries.items()}
        return state


class _GapAccepted(ClusterMetadata):
    def _merge_node(self, node: str, delta: Delta) -> list[tuple[str, str, Entry]]:
        return super()._merge_node(node, Delta(delta.generation, 0, delta.entries))


class _ReplyNotMerged(GossipNode):
    def _handle_states(self, _: NodeId, message: GossipStates) -> None:
        """What comes back is thrown away."""


def _first_peers(pool: Sequence[str], fanout: int, _: Callable[[int, int], int]) -> list[str]:
    return chosen_peers(pool, fanout, lambda _draw, _bound: 0)


def _metadata(change: type[ClusterMetadata]) -> Callable[[Parts], Parts]:
    changed: Callable[[Parts], Parts] = layered("metadata", change)
    return changed


_CHANGES: dict[str, Callable[[Parts], Parts]] = {
    "merge-by-arrival": _metadata(_MergeByArrival),
    "no-generation": lambda parts: replace(parts, generation=lambda _: 1),
    "own-entry-overwritten": _metadata(_OwnEntryOverwritten),
    "always-the-first-peers": lambda parts: replace(parts, choose=_first_peers),
    "digest-off-by-one": _metadata(_OffByOne),
    "one-key-erases-the-other": _metadata(_OneKeyErasesTheOther),
    "version-not-incremented": _metadata(_SameVersion),
    "versions-counted-per-key": _metadata(_PerKeyVersions),
    "generations-merged": _metadata(_GenerationsMerged),
    "gap-accepted": _metadata(_GapAccepted),
}


_NODES: dict[str, type[GossipNode]] = {"reply-not-merged": _ReplyNotMerged}


def node_class(names: Iterable[str]) -> type[GossipNode]:
    """The node with those of the planted bugs `names` that sit in it."""
    return class_with_bugs(names, GossipNode, _NODES)


def mutated_parts(names: Iterable[str]) -> Parts:
    """The parts of a node with the planted bugs `names`, the correct ones with none. Raises UsageError."""
    return with_bugs("gossip", names, Parts(), _CHANGES, elsewhere=_NODES)
