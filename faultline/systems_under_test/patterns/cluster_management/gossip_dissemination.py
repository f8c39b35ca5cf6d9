"""Gossip dissemination: every node tells a few random others what it knows, and soon all nodes know everything.

*Problem.* Each node of a large cluster has something to tell all others: its address, its partitions, its load. If each
node told each other node, messages would grow with the square of the cluster. If a single node told all, the whole
cluster would depend on that node.

*Idea.* At a fixed interval each node exchanges what it knows with a few random peers. A node gives each of its values a
version, from a counter of its own. So every node can tell which value is newer, in whatever order and however often
messages arrive. The number of a node's messages does not depend on the size of the cluster, and a value reaches all
nodes after some log n rounds, even if some of them die meanwhile. (The size of messages does depend on it, because a
digest names every node, with some 14 bytes each. In a calm cluster a checksum in place of the digest has the same size
everywhere.)

To exchange everything each time would be a waste. A *digest* says for each node the highest version that the sender
knows, and the receiver answers with the versions above it. That is sound only if versions are passed on without gaps: a
node that has version 7 must have every entry below 7 that still counts. So a reply that is cut short loses its highest
versions, and a delta says above which version it is complete (`after`). A node that does not know that version yet does
not take the delta, because it may have been restarted since it sent its digest.

    athens {a:5, b:2}                        byzantium {a:3, b:9}
       │── digest a:5 b:2 ─────────────────────▶│
       │◀── b above 2, digest a:3 b:9 ──────────│
       │── a above 3 ──────────────────────────▶│

A node that restarts has lost its memory and counts from one again. A durable *generation* outranks all versions: a node
that meets a higher generation of another forgets all that it knew of that node. And no node takes a statement about
itself from others, because such a statement dates from before its restart.

*Invariants.* GO-I1 what a node knows of a key never gets older, unless it restarts. GO-I2 every known value was said by
its owner, and one version is one value. GO-I3 no node knows a higher version than the owner. GO-I4 some rounds after
the last change, and after the network has healed, all nodes know the same. GO-I5 a round has at most `fanout` requests,
and one more when a seed is asked; equal digests exchange no values.

*Tolerates.* Lost, repeated, late and reordered messages; dead and mute peers; restarts; cut networks, after they heal.

*Does not tolerate.* Use in place of agreement: two nodes may know different things at any moment, so a decision that
only one node may take needs a consistent core. A disk that forgets the generation.

*Workloads.* `metadata`.

*Checkers.* `convergence`; the invariants.

*Planted bugs.* They stand in `reference/gossip/planted_bugs.py`.

Sources: Patterns of Distributed Systems ch. 28; Demers et al., "Epidemic Algorithms for Replicated Database
Maintenance" (PODC 1987); van Renesse, Dumitriu, Gough and Thomas, "Efficient Reconciliation and Flow Control for
Anti-Entropy Protocols" (LADIS 2008), whose scuttlebutt exchange is Cassandra's three-way one. Deviations from the
printed code: targets are distinct, and a node never chooses itself; deletions are entries (tombstones), which the text
does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec

__all__ = ["ClusterMetadata", "Delta", "Digest", "Entry", "NodeState", "chosen_peers"]

Digest = dict[str, tuple[int, int]]
"""For each node its generation and the highest version that is known of it."""

_FIRST_VERSION = 1


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One statement of a node: a version of its counter, and the value of a key, or that the key is gone."""

    version: int
    value: Any
    deleted: bool = False


class Delta(msgspec.Struct, frozen=True, array_like=True):
    """Entries of one node, complete above the version `after`, of the given generation."""

    generation: int
    after: int
    entries: dict[str, Entry]


class NodeState:
    """All that is known of one node."""

    __slots__ = ("entries", "generation", "max_version")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.entries: dict[str, Entry] = {}
        self.max_version = 0

    def take(self, key: str, entry: Entry) -> bool:
        """Keep the entry if it is newer than the known one; return whether it was."""
        known = self.entries.get(key)
        if known is not None and known.version >= entry.version:
            return False
        self.entries[key] = entry
        self.max_version = max(self.max_version, entry.version)
        return True

    def above(self, version: int) -> list[tuple[str, Entry]]:
        """Return the entries above `version`, oldest first."""
        if version >= self.max_version:
            return []
        newer = [(key, entry) for key, entry in self.entries.items() if entry.version > version]
        return sorted(newer, key=lambda item: item[1].version)


class ClusterMetadata:
    """The knowledge of one node about all nodes, itself included.

    `own` is its name, `generation` that of this incarnation.
    """

    def __init__(self, own: str, generation: int) -> None:
        self.own = own
        self.states: dict[str, NodeState] = {own: NodeState(generation)}
        self._next_version = _FIRST_VERSION

    def put(self, key: str, value: Any) -> Entry:
        """Say `value` under `key`."""
        return self._say(key, value, deleted=False)

    def delete(self, key: str) -> Entry:
        """Say that `key` is gone.

        The statement is kept: without it, the key would come back from another node.
        """
        return self._say(key, None, deleted=True)

    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        entry = Entry(self._version(), value, deleted)
        self.states[self.own].take(key, entry)
        return entry

    def _version(self) -> int:
        version = self._next_version
        self._next_version += 1
        return version

    def get(self, node: str, key: str) -> Any:
        """Return the last value of `key` that `node` said, as far as it is known here.

        None without one, or when it is gone.
        """
        state = self.states.get(node)
        entry = state.entries.get(key) if state is not None else None
        return None if entry is None or entry.deleted else entry.value

    def nodes(self) -> Iterator[str]:
        """Return every node that has been heard of, in order."""
        return iter(sorted(self.states))

    def digest(self) -> Digest:
        """Return the generation and the highest known version of every node."""
        return {node: (state.generation, state.max_version) for node, state in self.states.items()}

    def checksum(self) -> int:
        """Return a number that is equal where everything known is equal, and almost surely different elsewhere."""
        parts = (f"{node}:{state.generation}:{state.max_version}" for node, state in sorted(self.states.items()))
        return crc32(" ".join(parts).encode())

    def newer_than(self, digest: Mapping[str, Sequence[int]], entries_max: int) -> dict[str, Delta]:
        """Return what is known here beyond `digest`, at most `entries_max` entries.

        All entries of a node that is not in the digest count. The highest versions of the last nodes are left out when
        there is no room for them; the other node then asks again from there.
        """
        found: dict[str, Delta] = {}
        left = entries_max
        for node, state in self.states.items():
            after = self._shared_version(state, digest.get(node))
            # Oldest first, so that cutting the list short leaves no gap below the highest version that is sent.
            newer = state.above(after)[: max(0, left)] if after is not None else []
            if newer and after is not None:
                found[node] = Delta(state.generation, after, dict(newer))
                left -= len(newer)
        return found

    def _shared_version(self, state: NodeState, known: Sequence[int] | None) -> int | None:
        """Return the version up to which the other node has what `state` holds.

        None when it is ahead by a generation.
        """
        if known is None or known[0] < state.generation:
            return 0
        return known[1] if known[0] == state.generation else None

    def whole(self) -> dict[str, Delta]:
        """Return everything that is known here."""
        return {node: Delta(state.generation, 0, dict(state.entries)) for node, state in self.states.items()}

    def merge(self, deltas: Mapping[str, Delta]) -> list[tuple[str, str, Entry]]:
        """Take the entries that are newer, and return them as (node, key, entry)."""
        taken: list[tuple[str, str, Entry]] = []
        for node, delta in deltas.items():
            # A statement of this node that comes back may be from before its restart; it would outrank the new ones.
            if node != self.own:
                taken += self._merge_node(node, delta)
        return taken

    def _merge_node(self, node: str, delta: Delta) -> list[tuple[str, str, Entry]]:
        state = self.states.get(node)
        if state is None or delta.generation > state.generation:
            # A new generation is taken only from its beginning: the delta leaves out what stands at or below `after`.
            if delta.after > 0:
                return []
            state = self._begin_generation(node, delta.generation)
        # Taking a delta with a gap before it would raise `max_version`, and the entries in the gap would never be asked
        # for again.
        elif delta.generation < state.generation or delta.after > state.max_version:
            return []
        return [(node, key, entry) for key, entry in delta.entries.items() if state.take(key, entry)]

    def _begin_generation(self, node: str, generation: int) -> NodeState:
        """Forget what `node` had said before it was restarted: none of it counts any more."""
        self.states[node] = NodeState(generation)
        return self.states[node]


def chosen_peers(pool: Sequence[str], fanout: int, below: Callable[[int, int], int]) -> list[str]:
    """Return `fanout` distinct nodes of `pool`; `below(draw, bound)` gives the random number of each draw."""
    left = list(pool)
    return [left.pop(below(draw, len(left))) for draw in range(min(fanout, len(left)))]
