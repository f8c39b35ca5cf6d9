"""A node of `gossip`: says what it has to say, and exchanges what it knows with a few peers each round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.cluster_management.gossip_dissemination import (
    ClusterMetadata,
    Delta,
    Entry,
    chosen_peers,
)
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.reference.gossip.liveness import HEARTBEAT, HeartbeatView
from faultline.systems_under_test.reference.gossip.messages import (
    Acknowledgement,
    EntryLearned,
    EntrySaid,
    GossipChecksum,
    GossipDigest,
    GossipReply,
    GossipStates,
    GossipWhole,
    NewsMessage,
    NodeStarted,
    Ping,
    PingRequest,
    ReadMetadata,
    ReadView,
    RoundBegun,
    ViewResponse,
    WriteMetadata,
)
from faultline.systems_under_test.reference.gossip.options import GossipSettings
from faultline.systems_under_test.reference.gossip.probing import Probing
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

__all__ = ["ADDRESS", "GossipNode", "Parts"]

ADDRESS = "address"
"""The key under which every node says where it can be reached: the first thing it says."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node is built from; a planted bug replaces one of them."""

    metadata: Callable[[str, int], ClusterMetadata] = ClusterMetadata
    generation: Callable[[GenerationClock], int] = lambda clock: clock.generation
    choose: Callable[..., list[str]] = chosen_peers


class GossipNode:
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: GossipSettings, parts: Parts) -> None:
        self.ports = ports
        self._seeds = [member for member in members[: settings.seeds] if member != ports.node_id]
        self._settings = settings
        self._parts = parts
        self._rounds = 0
        self._contacts: dict[str, int] = {}
        self._heard_of: set[str] = set()
        self._handlers = HandlerTable(
            {
                GossipDigest: self._handle_digest,
                GossipReply: self._handle_reply,
                GossipWhole: self._handle_whole,
                GossipStates: self._handle_states,
                GossipChecksum: self._handle_checksum,
                Ping: lambda source, message: self._probing.handle_ping(source, message),
                PingRequest: lambda source, message: self._probing.handle_request(source, message),
                Acknowledgement: lambda _, message: self._probing.handle_acknowledgement(message),
                NewsMessage: lambda _, message: self._probing.hear(message.news),
                WriteMetadata: self._handle_write,
                ReadMetadata: self._handle_read,
                ReadView: self._handle_view,
            }
        )

    # -- Node ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Count up the generation, say where to be found, and begin the rounds."""
        clock = GenerationClock(self.ports.storage, "generation")
        clock.recover()
        clock.adopt(clock.generation + 1)
        generation = self._parts.generation(clock)
        self.metadata = self._parts.metadata(self.ports.node_id, generation)
        self.ports.trace.emit(NodeStarted(generation))
        self.say(ADDRESS, f"{self.ports.node_id}:{generation}")
        self._view = HeartbeatView(self.ports, self._settings)
        self._probing = Probing(self.ports, self._settings, generation, self._peers_by_chance)
        self.ports.timers.every(self._settings.gossip_interval_us, self._begin_round)

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from a peer or a client."""
        self._handlers.take(source, message)

    def status(self) -> NodeStatus:
        """Nobody leads; everybody can be asked from the start."""
        return NodeStatus(role=READY, generation=self.metadata.states[self.ports.node_id].generation)

    def say(self, key: str, value: Any) -> None:
        """Say something of this node, for everybody to know."""
        entry = self.metadata.put(key, value)
        generation = self.metadata.states[self.ports.node_id].generation
        self.ports.trace.emit(EntrySaid(key, generation, entry.version, _checksum(entry)))

    def up(self) -> list[str]:
        """The nodes that are taken for up here, this one included."""
        judge = self._probing.is_up if self._settings.detector == "swim" else self._view.is_up
        return [node for node in self.metadata.nodes() if node == self.ports.node_id or judge(node)]

    # -- rounds -------------------------------------------------------------------------------------------------------

    def _begin_round(self) -> None:
        self._rounds += 1
        self._judge_and_be_heard()
        peers = self._peers()
        most = self._settings.fanout + (1 if self._settings.seed_every else 0)
        self.ports.trace.emit(RoundBegun(tuple(peers), most))
        for peer in peers:
            self._contacts[peer] = self._contacts.get(peer, 0) + 1
            self.ports.network.send(NodeId(peer), self._opening())

    def _judge_and_be_heard(self) -> None:
        if self._settings.detector == "swim":
            self._probing.begin_period(self.metadata.nodes())
        elif self._settings.detector != "none":
            self.say(HEARTBEAT, self._rounds)
            self._view.judge()

    def _opening(self) -> msgspec.Struct:
        news = self._probing.news()
        match self._settings.exchange:
            case "full":
                return GossipWhole(self.metadata.whole(), news)
            case "checksum":
                return GossipChecksum(self.metadata.checksum(), news)
            case "digest":
                return GossipDigest(self.metadata.digest(), wants_reply_only=True, news=news)
            case _:
                return GossipDigest(self.metadata.digest(), news=news)

    def _peers(self) -> list[str]:
        """Known nodes, or the seeds while none is known; and now and then a seed, so that islands meet."""
        known = sorted(node for node in self._heard_of.union(self.metadata.states) if node != self.ports.node_id)
        peers = self._peers_by_chance(known or self._seeds, self._settings.fanout)
        if self._seeds and self._settings.seed_every and self._rounds % self._settings.seed_every == 0:
            peers += [seed for seed in self._peers_by_chance(self._seeds, 1, "seed") if seed not in peers]
        return peers

    def _peers_by_chance(self, pool: Sequence[str], count: int, purpose: str = "peer") -> list[str]:
        def below(draw: int, bound: int) -> int:
            return self.ports.random.uniform_us(f"gossip-{purpose}-{draw}", 0, bound)

        if self._settings.peers == "least-contacted" and purpose == "peer":
            least = sorted(self._contacts.get(node, 0) for node in pool)[: count or 1]
            pool = [node for node in pool if self._contacts.get(node, 0) <= least[-1]] if least else pool
        return self._parts.choose(pool, count, below)

    # -- exchange -----------------------------------------------------------------------------------------------------

    def _handle_digest(self, source: NodeId, message: GossipDigest) -> None:
        self._probing.hear(message.news)
        # Where a digest is answered with values and nothing is asked back, who is only asked must learn whom to ask.
        self._heard_of.update(message.digest)
        states = self._newer_than(message.digest)
        own = self.metadata.digest()
        if not states and own == message.digest:
            self.ports.trace.sometimes("digests-equal")
        elif message.wants_reply_only:
            self._send_states(source, states)
        else:
            self.ports.network.send(source, GossipReply(states, own))

    def _handle_reply(self, source: NodeId, message: GossipReply) -> None:
        self._merge(message.states)
        self._send_states(source, self._newer_than(message.digest))

    def _handle_whole(self, source: NodeId, message: GossipWhole) -> None:
        self._probing.hear(message.news)
        known = {
            node: (delta.generation, max((entry.version for entry in delta.entries.values()), default=0))
            for node, delta in message.states.items()
        }
        missing = self._newer_than(known)
        self._merge(message.states)
        self._send_states(source, missing)

    def _handle_states(self, _: NodeId, message: GossipStates) -> None:
        self._merge(message.states)

    def _handle_checksum(self, source: NodeId, message: GossipChecksum) -> None:
        self._probing.hear(message.news)
        if message.checksum == self.metadata.checksum():
            self.ports.trace.sometimes("digests-equal")
        else:
            self.ports.network.send(source, GossipDigest(self.metadata.digest()))

    def _send_states(self, to: NodeId, states: dict[str, Delta]) -> None:
        if states:
            self.ports.network.send(to, GossipStates(states))

    def _newer_than(self, digest: Mapping[str, tuple[int, int]]) -> dict[str, Delta]:
        states = self.metadata.newer_than(digest, self._settings.entries_max)
        if sum(len(delta.entries) for delta in states.values()) == self._settings.entries_max:
            self.ports.trace.sometimes("reply-cut-short")
        return states

    def _merge(self, states: Mapping[str, Delta]) -> None:
        self._note_what_is_special(states)
        for owner, key, entry in self.metadata.merge(states):
            generation = self.metadata.states[owner].generation
            self.ports.trace.emit(EntryLearned(owner, key, generation, entry.version, _checksum(entry)))
            if key in (HEARTBEAT, ADDRESS):
                self._view.heard(owner)

    def _note_what_is_special(self, states: Mapping[str, Delta]) -> None:
        for node, delta in states.items():
            known = self.metadata.states.get(node)
            if node == self.ports.node_id:
                self.ports.trace.sometimes("own-past-refused")
            elif known is not None and delta.generation > known.generation:
                self.ports.trace.sometimes("generation-replaced")
            elif delta.after > (known.max_version if known is not None else 0):
                self.ports.trace.sometimes("delta-with-gap-refused")

    # -- clients ------------------------------------------------------------------------------------------------------

    def _handle_write(self, source: NodeId, request: WriteMetadata) -> None:
        self.say(request.key, request.value)
        self.ports.network.send(source, ViewResponse(request.request_number))

    def _handle_read(self, source: NodeId, request: ReadMetadata) -> None:
        value = self.metadata.get(request.owner, request.key)
        self.ports.network.send(source, ViewResponse(request.request_number, value))

    def _handle_view(self, source: NodeId, request: ReadView) -> None:
        self.ports.network.send(source, ViewResponse(request.request_number, self.up()))


def _checksum(entry: Entry) -> int:
    return crc32(msgspec.msgpack.encode([entry.value, entry.deleted]))
