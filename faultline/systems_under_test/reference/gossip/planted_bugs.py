"""The planted bugs of `gossip`: each a class that changes one of its `Parts`, or the node.

They break it for good: never use them outside the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.gossip_dissemination import (
    ClusterMetadata,
    Delta,
    Entry,
    NodeState,
    chosen_peers,
)
from faultline.systems_under_test.patterns.cluster_management.gossip_heartbeats import (
    GossipedHeartbeat,
    GossipHeartBeats,
)
from faultline.systems_under_test.patterns.cluster_management.lifeguard_probing import Rumour, Standing, SwimMember
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatMonitor
from faultline.systems_under_test.reference.gossip.messages import GossipStates
from faultline.systems_under_test.reference.gossip.node import GossipNode, Parts
from faultline.systems_under_test.reference.gossip.watching import Watches
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

BUGS = PlantedBugs(
    "gossip",
    lambda: Parts(watches=Watches()),
    pattern="gossip-dissemination",
    campaign="gossip",
    caught_by=("convergence",),
)
_RESTARTS = BUGS.group(campaign="gossip-restarts")
_HEARTBEATS = BUGS.group(pattern="heartbeat", campaign="gossip-heartbeats", options={"detector": "heartbeats"})
_LIFEGUARD = BUGS.group(pattern="heartbeat", campaign="gossip-lifeguard", options={"detector": "lifeguard"})


class _ByArrivalState(NodeState):
    __slots__ = ()

    def take(self, key: str, entry: Entry) -> bool:
        changed = self.entries.get(key) != entry
        self.entries[key] = entry
        self.max_version = max(self.max_version, entry.version)
        return changed


@BUGS.plant(
    "merge-by-arrival", "GO-M1", part="metadata", caught_by=("GO-I1", "convergence"), options={"exchange": "full"}
)
class _MergeByArrival(ClusterMetadata):
    """The entry that arrives last is kept, whatever its version.

    Shows as: knowledge gets older when messages are late.
    """

    def _begin_generation(self, node: str, generation: int) -> NodeState:
        self.states[node] = _ByArrivalState(generation)
        return self.states[node]


@BUGS.plant("reply-not-merged", "GO-M2", part="node", options={"exchange": "digest"})
class _ReplyNotMerged(GossipNode):
    """A node that opened an exchange does not merge the entries that come back.

    Shows as: where only replies carry values, no node ever learns anything.
    """

    def _handle_states(self, _: NodeId, message: GossipStates) -> None:
        """Throw the entries away."""


@_RESTARTS.plant("no-generation", "GO-M3", part="generation", caught_by=("GO-I2", "convergence"))
def _always_the_first(_: GenerationClock) -> int:
    """A restarted node counts its versions from one again, in the old generation.

    Shows as: the statements of the node from before its restart are believed for ever.
    """
    return 1


@_RESTARTS.plant(
    "own-entry-overwritten",
    "GO-M4",
    part="metadata",
    caught_by=("GO-I1", "GO-I2", "convergence"),
    options={"seeds": "3"},
)
class _OwnEntryOverwritten(ClusterMetadata):
    """A node believes what others tell it about itself.

    Shows as: a restarted node takes its old statements for its own.
    """

    def merge(self, deltas: Mapping[str, Delta]) -> list[tuple[str, str, Entry]]:
        taken = super().merge(deltas)
        if self.own in deltas:
            taken += self._merge_own(deltas[self.own])
        return taken

    def _merge_own(self, delta: Delta) -> list[tuple[str, str, Entry]]:
        state = self.states[self.own]
        return [(self.own, key, entry) for key, entry in delta.entries.items() if state.take(key, entry)]

    def newer_than(self, digest: Mapping[str, Sequence[int]], entries_max: int) -> dict[str, Delta]:
        """Return also the older generation of a node that asks, as if its new generation did not supersede it."""
        found = super().newer_than(digest, entries_max)
        for node, state in self.states.items():
            if node not in found and node in digest and digest[node][0] > state.generation:
                found[node] = Delta(state.generation, 0, dict(state.entries))
        return found


@BUGS.plant(
    "always-the-first-peers",
    "GO-M5",
    part="choose",
    campaign="gossip-seeds",
    options={"fanout": "1", "seed_every": "0", "exchange": "digest"},
)
def _first_peers(pool: Sequence[str], fanout: int, _: Callable[[int, int], int]) -> list[str]:
    """A node asks the same peers in every round.

    Shows as: when they are down nothing spreads.
    """
    return chosen_peers(pool, fanout, lambda _draw, _bound: 0)


@BUGS.plant("digest-off-by-one", "GO-M6", part="metadata")
class _OffByOne(ClusterMetadata):
    """An entry just above the digest is taken for known.

    Shows as: the last thing a node said never spreads.
    """

    def _shared_version(self, state: NodeState, known: Sequence[int] | None) -> int | None:
        shared = super()._shared_version(state, known)
        return None if shared is None else shared + 1


@BUGS.plant("one-key-erases-the-other", "GO-M7", part="metadata")
class _OneKeyErasesTheOther(ClusterMetadata):
    """A node's second statement replaces its first, under whatever key.

    Shows as: the owner does not know its own statement, and other nodes do.
    """

    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        self.states[self.own].entries.clear()
        return super()._say(key, value, deleted=deleted)


@BUGS.plant("version-not-incremented", "GO-M10", part="metadata", caught_by=("GO-I2", "convergence"))
class _SameVersion(ClusterMetadata):
    """A changed entry keeps the version of the entry that it replaces.

    Shows as: changes never spread; one version has two values.
    """

    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        state = self.states[self.own]
        known = state.entries.get(key)
        if known is None:
            return super()._say(key, value, deleted=deleted)
        state.entries[key] = Entry(known.version, value, deleted)
        return state.entries[key]


@BUGS.plant("versions-counted-per-key", "GO-M11", part="metadata")
class _PerKeyVersions(ClusterMetadata):
    """Versions are counted per key, while the digest has one per node.

    Shows as: a key that changed less often than another one never spreads.
    """

    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        state = self.states[self.own]
        known = state.entries.get(key)
        entry = Entry(known.version + 1 if known else 1, value, deleted)
        state.take(key, entry)
        return entry


@_RESTARTS.plant("generations-merged", "GO-M12", part="metadata", caught_by=("convergence", "GO-I1", "GO-I2"))
class _GenerationsMerged(ClusterMetadata):
    """The entries of a lower generation are kept when a higher one begins.

    Shows as: statements that a node no longer makes are still believed.
    """

    def _begin_generation(self, node: str, generation: int) -> NodeState:
        before = self.states.get(node)
        state = super()._begin_generation(node, generation)
        if before is not None:
            state.entries = {key: Entry(0, entry.value, entry.deleted) for key, entry in before.entries.items()}
        return state


@_RESTARTS.plant("gap-accepted", "GO-R15", part="metadata")
class _GapAccepted(ClusterMetadata):
    """A delta is merged although the entries below it were never received.

    Shows as: the digest claims entries that the node lacks, and it never gets them.
    """

    def _merge_node(self, node: str, delta: Delta) -> list[tuple[str, str, Entry]]:
        return super()._merge_node(node, Delta(delta.generation, 0, delta.entries))


@_HEARTBEATS.plant("generation-not-compared", "HB-M8", part="watches.heartbeats")
class _GenerationNotCompared(GossipHeartBeats):
    """The counts of heartbeats are compared, and the generation of their server is not.

    Shows as: a node that was restarted counts as down until it has counted as far as in its former life.
    """

    def _is_newer(self, heartbeat: GossipedHeartbeat, known: GossipedHeartbeat) -> bool:
        return heartbeat.count > known.count


@_HEARTBEATS.plant("heartbeats-to-all", "HB-M7", part="watches.heartbeats", caught_by=("HB-I4",))
class _HeartbeatsToAll(GossipHeartBeats):
    """A node sends its heartbeats to all others, not to some.

    Shows as: the number of its messages grows with the cluster.
    """

    def _chosen_peers(self) -> list[NodeId]:
        return list(self._peers)


@_HEARTBEATS.plant("down-for-good", "HB-M6", part="watches.monitor")
class _DownForGood(HeartBeatMonitor):
    """A node that was once taken for down is never taken for up again.

    Shows as: nodes that are back are missing in the views of others.
    """

    def _mark_up(self, server: str) -> None:
        """Leave the mark."""


@_LIFEGUARD.plant("no-refutation", "HB-M9", part="watches.lifeguard")
class _NoRefutation(SwimMember):
    """A member that hears that it is suspected or dead does not contradict.

    Shows as: a node that was slow or away for a while is missing in the views of others for ever.
    """

    def _hear_of_oneself(self, rumour: Rumour) -> None:
        """Leave the rumour as it is."""


@_LIFEGUARD.plant("suspicion-never-ends", "HB-M10", part="watches.lifeguard", caught_by=("HB-I1",))
class _SuspicionNeverEnds(SwimMember):
    """A suspected member is never declared dead.

    Shows as: a node that is down stays in the views of others.
    """

    def _condemn(self, suspicion: Rumour) -> None:
        """Go on suspecting."""


@_LIFEGUARD.plant("condemned-by-old-suspicion", "HB-M11", part="watches.lifeguard", caught_by=("HB-I3",))
class _CondemnedByOldSuspicion(SwimMember):
    """The time of a suspicion is not ended by its refutation: it condemns the member all the same.

    Shows as: a node that refuted a suspicion is declared dead, although it is not suspected or was only now.
    """

    def _condemn(self, suspicion: Rumour) -> None:
        known = self._known[suspicion.server]
        self._learn(Rumour(known.server, known.incarnation, Standing.DEAD))
