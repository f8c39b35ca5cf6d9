"""Gossip dissemination: every node tells a few random others what it knows, and soon everybody knows everything.

*Problem.* Each node of a large cluster has something to tell all others: its address, what it owns, how busy it is. If
each told each, messages would grow with the square of the cluster; if one told all, it would be the one that fails.

*Idea.* At a fixed interval each node exchanges what it knows with a few peers chosen at random. What a node says of
itself carries a version from a counter of its own, so it is clear everywhere what is newer, in whatever order and
however often messages arrive. The number of a node's messages does not depend on the size of the cluster, and news
reach everybody after some log n rounds, whoever dies meanwhile. (Their size does depend on it, as a digest names every
node, with some 14 bytes each; in a calm cluster a checksum in its place costs the same everywhere.)

To exchange everything each time would be a waste. A *digest* says for each node which version one has come to; the
other answers with what is above it. That is sound only if versions are passed on without gaps: who has version 7 must
have every entry below 7 that still counts. So a reply that is cut short loses its highest versions, and a delta says
above which version it is complete (`after`); who has not come so far, perhaps because he was restarted since he sent
his digest, does not take it.

    athens {a:5, b:2}                        byzantium {a:3, b:9}
       │── digest a:5 b:2 ─────────────────────▶│
       │◀── b above 2, digest a:3 b:9 ──────────│
       │── a above 3 ──────────────────────────▶│

A node that restarts has lost its memory and counts from one again. A durable *generation* outranks all versions:
whoever meets a higher one forgets all that was said before it. And nobody takes a statement about himself from others:
what comes back is the time before the restart.

*Invariants.* GO-I1 what a node knows of a key never gets older, unless it restarts. GO-I2 nothing is known that its
owner has not said; one version is one value. GO-I3 nobody knows a higher version than the owner. GO-I4 some rounds
after the last change, and after the network has healed, all know the same. GO-I5 a round has at most `fanout` requests,
one more where a seed is asked; equal digests exchange no values.

*Tolerates.* Lost, repeated, late and reordered messages; dead and mute peers; restarts; cut networks, after they heal.

*Does not tolerate.* Being taken for agreement: two nodes may know different things at any moment, so a decision that
only one may take needs a consistent core. A disk that forgets the generation.

*Workloads.* `metadata`.

*Checkers.* `convergence`; the invariants.

*Planted bugs.* See `reference/gossip/planted_bugs.py`.

Sources: Patterns of Distributed Systems ch. 28; Demers et al., "Epidemic Algorithms for Replicated Database
Maintenance" (PODC 1987); van Renesse, Dumitriu, Gough and Thomas, "Efficient Reconciliation and Flow Control for
Anti-Entropy Protocols" (LADIS 2008), whose scuttlebutt exchange is Cassandra's three-way one. Deviations from the
printed code: targets are distinct and never oneself; deletions are entries (tombstones), which the text has none of.
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
    """What a node says under one key: a version of its counter, and a value; or that the key is gone."""

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
        """Keep the entry if it is newer than what is there; whether it was."""
        known = self.entries.get(key)
        if known is not None and known.version >= entry.version:
            return False
        self.entries[key] = entry
        self.max_version = max(self.max_version, entry.version)
        return True

    def above(self, version: int) -> list[tuple[str, Entry]]:
        """The entries above `version`, oldest first."""
        if version >= self.max_version:
            return []
        newer = [(key, entry) for key, entry in self.entries.items() if entry.version > version]
        return sorted(newer, key=lambda item: item[1].version)


class ClusterMetadata:
    """What one node knows of all, itself included. `own` is its name, `generation` that of this incarnation."""

    def __init__(self, own: str, generation: int) -> None:
        self.own = own
        self.states: dict[str, NodeState] = {own: NodeState(generation)}
        self._next_version = _FIRST_VERSION

    # -- what this node says of itself --------------------------------------------------------------------------------

    def put(self, key: str, value: Any) -> Entry:
        """Say `value` under `key`."""
        return self._say(key, value, deleted=False)

    def delete(self, key: str) -> Entry:
        """Say that `key` is gone. The statement stays: forgotten, the key would come back from somebody else."""
        return self._say(key, None, deleted=True)

    def _say(self, key: str, value: Any, *, deleted: bool) -> Entry:
        entry = Entry(self._version(), value, deleted)
        self.states[self.own].take(key, entry)
        return entry

    def _version(self) -> int:
        version = self._next_version
        self._next_version += 1
        return version

    # -- what it knows of others --------------------------------------------------------------------------------------

    def get(self, node: str, key: str) -> Any:
        """What `node` said last under `key`, as far as it has come here; None when nothing, or that it is gone."""
        state = self.states.get(node)
        entry = state.entries.get(key) if state is not None else None
        return None if entry is None or entry.deleted else entry.value

    def nodes(self) -> Iterator[str]:
        """Every node that has been heard of, in order."""
        return iter(sorted(self.states))

    # -- exchange -----------------------------------------------------------------------------------------------------

    def digest(self) -> Digest:
        """How far this node has come with each."""
        return {node: (state.generation, state.max_version) for node, state in self.states.items()}

    def checksum(self) -> int:
        """A number that is equal where everything known is equal, and almost surely different elsewhere."""
        parts = (f"{node}:{state.generation}:{state.max_version}" for node, state in sorted(self.states.items()))
        return crc32(" ".join(parts).encode())

    def newer_than(self, digest: Mapping[str, Sequence[int]], entries_max: int) -> dict[str, Delta]:
        """What is known here beyond `digest`, at most `entries_max` entries; a node that is not in it, whole.

        What does not fit are the highest versions of the last nodes: the other then asks again from there.
        """
        found: dict[str, Delta] = {}
        left = entries_max
        for node, state in self.states.items():
            after = self._shared_version(state, digest.get(node))
            newer = state.above(after)[: max(0, left)] if after is not None else []
            if newer and after is not None:
                found[node] = Delta(state.generation, after, dict(newer))
                left -= len(newer)
        return found

    def _shared_version(self, state: NodeState, known: Sequence[int] | None) -> int | None:
        """Up to which version the other has what `state` holds; None when the other is ahead by a generation."""
        if known is None or known[0] < state.generation:
            return 0
        return known[1] if known[0] == state.generation else None

    def whole(self) -> dict[str, Delta]:
        """Everything that is known here."""
        return {node: Delta(state.generation, 0, dict(state.entries)) for node, state in self.states.items()}

    def merge(self, deltas: Mapping[str, Delta]) -> list[tuple[str, str, Entry]]:
        """Take what is newer; the (node, key, entry) that were."""
        taken: list[tuple[str, str, Entry]] = []
        for node, delta in deltas.items():
            if node != self.own:
                taken += self._merge_node(node, delta)
        return taken

    def _merge_node(self, node: str, delta: Delta) -> list[tuple[str, str, Entry]]:
        state = self.states.get(node)
        if state is None or delta.generation > state.generation:
            if delta.after > 0:
                return []
            state = self._begin_generation(node, delta.generation)
        elif delta.generation < state.generation or delta.after > state.max_version:
            return []
        return [(node, key, entry) for key, entry in delta.entries.items() if state.take(key, entry)]

    def _begin_generation(self, node: str, generation: int) -> NodeState:
        """The node was restarted: what it had said before counts no more."""
        self.states[node] = NodeState(generation)
        return self.states[node]


def chosen_peers(pool: Sequence[str], fanout: int, below: Callable[[int, int], int]) -> list[str]:
    """`fanout` distinct nodes of `pool`; `below(draw, bound)` gives the chance of each draw."""
    left = list(pool)
    return [left.pop(below(draw, len(left))) for draw in range(min(fanout, len(left)))]
