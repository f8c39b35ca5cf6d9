"""A node of `gossip`: it makes its own statements, and exchanges its knowledge with a few peers in each round."""

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
from faultline.systems_under_test.reference.gossip.liveness import HEARTBEAT, HeartbeatView, MemberWatches
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
"""The key of the first statement of every node: where it can be reached."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a node is built from; a planted bug changes one of them."""

    metadata: Callable[[str, int], ClusterMetadata] = ClusterMetadata
    generation: Callable[[GenerationClock], int] = lambda clock: clock.generation
    choose: Callable[..., list[str]] = chosen_peers
    watches: MemberWatches | None = None


class GossipNode:
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: GossipSettings, parts: Parts) -> None:
        self.ports = ports
        self._members = members
        self._seeds = [member for member in members[: settings.seeds] if member != ports.node_id]
        self._settings = settings
        self._parts = parts
        self._rounds = 0
        self._contacts: dict[str, int] = {}
        self._heard_of: set[str] = set()
        self._last_number: dict[NodeId, int] = {}
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

    def start(self) -> None:
        """Begin a new generation, state the address, and start the rounds."""
        clock = GenerationClock(self.ports.storage, "generation")
        clock.recover()
        clock.adopt(clock.generation + 1)
        generation = self._parts.generation(clock)
        self.metadata = self._parts.metadata(self.ports.node_id, generation)
        self.ports.trace.emit(NodeStarted(generation))
        self.say(ADDRESS, f"{self.ports.node_id}:{generation}")
        self._view = HeartbeatView(self.ports, self._settings)
        self._probing = Probing(self.ports, self._settings, generation, self._peers_by_chance)
        watches = self._parts.watches
        self._watch = watches.watch(self.ports, self._members, self._settings, generation) if watches else None
        if self._watch is not None:
            self._handlers.update(self._watch.handlers)
            self._watch.start()
        self.ports.timers.every(self._settings.gossip_interval_us, self._begin_round)

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from a peer or a client."""
        self._handlers[type(message)](source, message)

    def status(self) -> NodeStatus:
        """Return `ready`: no node leads, and each can be asked from its start on."""
        return NodeStatus(role=READY, generation=self.metadata.states[self.ports.node_id].generation)

    def say(self, key: str, value: Any) -> None:
        """Make a statement of this node under `key`, to be spread to all nodes."""
        entry = self.metadata.put(key, value)
        generation = self.metadata.states[self.ports.node_id].generation
        self.ports.trace.emit(EntrySaid(key, generation, entry.version, _checksum(entry)))

    def up(self) -> list[str]:
        """Return the nodes that this node takes for up, itself included."""
        judge = self._probing if self._settings.detector == "swim" else self._watch or self._view
        return [node for node in self.metadata.nodes() if node == self.ports.node_id or judge.is_up(node)]

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
        if self._watch is not None:
            self._watch.begin_round()
        elif self._settings.detector == "swim":
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
        """Return the peers of a round: known nodes, or the seeds while none is known, and now and then a seed."""
        known = sorted(node for node in self._heard_of.union(self.metadata.states) if node != self.ports.node_id)
        peers = self._peers_by_chance(known or self._seeds, self._settings.fanout)
        # Two groups that know nothing of each other meet only at a seed that both of them ask.
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

    def _handle_digest(self, source: NodeId, message: GossipDigest) -> None:
        self._probing.hear(message.news)
        # With `exchange=digest` no digest comes back: a node that is only asked must learn its peers from the question.
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
        # Before the merge: afterwards the sender's own entries would be sent back to it.
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
        self._mark_special_cases(states)
        for owner, key, entry in self.metadata.merge(states):
            generation = self.metadata.states[owner].generation
            self.ports.trace.emit(EntryLearned(owner, key, generation, entry.version, _checksum(entry)))
            if self._watch is None and key in (HEARTBEAT, ADDRESS):
                self._view.heard(owner)

    def _mark_special_cases(self, states: Mapping[str, Delta]) -> None:
        for node, delta in states.items():
            known = self.metadata.states.get(node)
            if node == self.ports.node_id:
                self.ports.trace.sometimes("own-past-refused")
            elif known is not None and delta.generation > known.generation:
                self.ports.trace.sometimes("generation-replaced")
            elif delta.after > (known.max_version if known is not None else 0):
                self.ports.trace.sometimes("delta-with-gap-refused")

    def _handle_write(self, source: NodeId, request: WriteMetadata) -> None:
        # A repetition by the network would undo what was said since. Its client has its answer, or will not wait.
        if request.request_number <= self._last_number.get(source, 0):
            return
        self._last_number[source] = request.request_number
        self.say(request.key, request.value)
        self.ports.network.send(source, ViewResponse(request.request_number))

    def _handle_read(self, source: NodeId, request: ReadMetadata) -> None:
        value = self.metadata.get(request.owner, request.key)
        self.ports.network.send(source, ViewResponse(request.request_number, value))

    def _handle_view(self, source: NodeId, request: ReadView) -> None:
        self.ports.network.send(source, ViewResponse(request.request_number, self.up()))


def _checksum(entry: Entry) -> int:
    return crc32(msgspec.msgpack.encode([entry.value, entry.deleted]))
