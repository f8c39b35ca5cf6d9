"""Heartbeats by gossip: in a large cluster, hear of all servers by hearing from a few.

*Problem.* When each of a thousand servers sends heartbeats to all others, a million messages are under way in every
interval, and a switch that is busy for a moment makes every server suspect every other.

*Idea.* (van Renesse's gossip-style failure detection.) Each server counts its own heartbeats and keeps the highest
count it has heard of each other server. Once in an interval it raises its own count and sends a part of its table to a
few servers drawn at random. A server that hears a higher count takes it over, and counts it as a heartbeat of the
server to which it belongs. News spreads like an epidemic: it reaches all of n servers in some multiple of log n
intervals, while each server sends the same few messages whatever n is. Each message holds at most `entries_max` rows of
the table, the next part of it each time, so that every row is sent in turn.

The normal silence of a server depends on n, on the fanout, and on losses. So a fixed timeout does not judge it. A
suspicion number does, which is computed from the earlier silences of that server (`phi_accrual`). It prefers a correct
verdict to a fast one, and its delay is still bounded.

A server that restarts begins to count anew. Its generation, which is higher after each start, is compared before the
count, so all servers discard news of its former life (the restart generation of Apache Cassandra).

*Invariants.* HB-I1 a server that died is marked down by all live ones. HB-I2 a server that lives ends up marked up.
HB-I4 each server sends at most `fanout` messages of at most `entries_max` rows in an interval. HB-I5 verdicts are
opinions.

*Tolerates.* Lost, late, repeated and reordered messages: a table only ever grows. Pauses of the judging server, and
restarts.

*Does not tolerate.* A generation that a restart forgets: keep it in a `GenerationClock` of its own. Members that join:
the list is fixed here; Gossip Dissemination is for membership that changes.

*Workloads.* `metadata` with `detector=heartbeats`, on up to nine nodes; the tests crank several hundred servers.

*Checkers.* `convergence` (the views after the heal); the invariants HB-I1, HB-I3 and HB-I4; the tests of HB-S12.

*Planted bugs.* `generation-not-compared`, `heartbeats-to-all` and `down-for-good` of `gossip`.

Sources: Patterns of Distributed Systems ch. 7 (large clusters) and 11 (Cassandra); van Renesse, Minsky and Hayden, "A
Gossip-Style Failure Detection Service" (1998) 3; Hayashibara et al. (2004) for the suspicion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from faultline.harness.world.ports import NodeId, RandomSource
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatMonitor

__all__ = ["FANOUT", "GossipHeartBeats", "GossipedHeartbeat", "GossipedHeartbeats"]

FANOUT = 3
"""The number of servers to which each server sends its news in an interval."""


class GossipedHeartbeat(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The count of a server within one of its lives; the generation is compared first."""

    generation: int
    count: int


class GossipedHeartbeats(msgspec.Struct, frozen=True, tag="gossiped-heartbeats"):
    """A part of the table of `server_id`."""

    server_id: str
    heartbeats: dict[str, GossipedHeartbeat]


class GossipHeartBeats:
    """One server's part: `tick` once in an interval, `handle_gossip` for what comes in.

    `generation` is that of this server, higher at each start. `monitor` is told of each server that was heard of, and
    judges the silent ones.
    """

    def __init__(
        self,
        me: NodeId,
        generation: int,
        members: Iterable[NodeId],
        random: RandomSource,
        send: Callable[[NodeId, GossipedHeartbeats], None],
        monitor: HeartBeatMonitor,
        *,
        fanout: int = FANOUT,
        entries_max: int = 64,
    ) -> None:
        self._me = me
        self._peers = sorted(set(members) - {me})
        self._random = random
        self._send = send
        self._monitor = monitor
        self._fanout = fanout
        self._entries_max = entries_max
        self._table: dict[str, GossipedHeartbeat] = {me: GossipedHeartbeat(generation, 0)}
        self._told = 0

    def tick(self) -> None:
        """Count one more heartbeat, send news to a few servers, and judge the silent ones."""
        own = self._table[self._me]
        self._table[self._me] = GossipedHeartbeat(own.generation, own.count + 1)
        news = GossipedHeartbeats(self._me, self._next_part())
        for peer in self._chosen_peers():
            self._send(peer, news)
        self._monitor.heartbeat_check()

    def handle_gossip(self, message: GossipedHeartbeats) -> None:
        """Take over each count that is newer than the known one, and note a heartbeat of its server."""
        for server, heartbeat in message.heartbeats.items():
            known = self._table.get(server)
            if server != self._me and (known is None or self._is_newer(heartbeat, known)):
                self._table[server] = heartbeat
                self._monitor.heartbeat_received(server)

    def known(self, server: str) -> GossipedHeartbeat | None:
        """Return the newest heartbeat that was heard of `server`."""
        return self._table.get(server)

    def _next_part(self) -> dict[str, GossipedHeartbeat]:
        """Return this server's own row, and the rows that are next in turn."""
        others = [server for server in sorted(self._table) if server != self._me]
        count = min(self._entries_max - 1, len(others))
        part = [others[(self._told + step) % len(others)] for step in range(count)]
        self._told += count
        return {server: self._table[server] for server in (self._me, *part)}

    # Each step below is a method of its own, so that a planted bug can override it.

    def _chosen_peers(self) -> list[NodeId]:
        """Return `fanout` different servers, drawn at random."""
        left = list(self._peers)
        chosen: list[NodeId] = []
        while left and len(chosen) < self._fanout:
            chosen.append(left.pop(self._random.uniform_us(f"gossip-peer-{len(chosen)}", 0, len(left))))
        return chosen

    def _is_newer(self, heartbeat: GossipedHeartbeat, known: GossipedHeartbeat) -> bool:
        """Return whether `heartbeat` is newer: generation before count, since an earlier life is over (GEN-S6)."""
        return heartbeat > known
