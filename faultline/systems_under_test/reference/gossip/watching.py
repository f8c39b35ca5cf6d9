"""Two judges of the members, each with messages of its own: gossiped heartbeats, and the probes of Lifeguard.

Both watch the members that the cluster was started with. The patterns' modules decide; these classes give them the
ports of a node, and report their decisions for the invariants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.gossip_heartbeats import (
    GossipedHeartbeats,
    GossipHeartBeats,
)
from faultline.systems_under_test.patterns.cluster_management.lifeguard_probing import (
    Ping,
    PingAnswer,
    PingRequest,
    Rumour,
    Standing,
    SwimMember,
    SwimTiming,
)
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatMonitor, LocalPause
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiAccrualFailureDetector, PhiParameters
from faultline.systems_under_test.reference.gossip.liveness import MemberWatch
from faultline.systems_under_test.reference.gossip.messages import (
    HeartbeatsTold,
    MemberDown,
    MembersJudged,
    MemberUp,
    PatienceBegun,
)
from faultline.systems_under_test.reference.gossip.options import GossipSettings
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["WATCH_MESSAGES", "HeartbeatWatch", "LifeguardWatch", "Watches"]

_ROUNDS_TO_BE_HEARD = 2
"""The rounds in which a peer's heartbeat is expected: not every round of others brings it."""

_PAUSE_ROUNDS = 5
"""The rounds that a node must have missed to take itself for the one that slept."""


WATCH_MESSAGES: tuple[type[msgspec.Struct], ...] = (GossipedHeartbeats, Ping, PingRequest, PingAnswer)
"""The messages of both."""


@dataclass(frozen=True, slots=True)
class Watches:
    """The classes that both judges are built from; implements `MemberWatches`."""

    heartbeats: type[GossipHeartBeats] = GossipHeartBeats
    monitor: type[HeartBeatMonitor] = HeartBeatMonitor
    lifeguard: type[SwimMember] = SwimMember

    def watch(
        self, ports: Ports, members: tuple[NodeId, ...], settings: GossipSettings, generation: int
    ) -> MemberWatch | None:
        """Return the judge that the options ask for; None when it is none of these."""
        match settings.detector:
            case "heartbeats":
                return HeartbeatWatch(ports, members, settings, generation, self.heartbeats, self.monitor)
            case "lifeguard":
                return LifeguardWatch(ports, members, settings, generation, self.lifeguard)
            case _:
                return None


class HeartbeatWatch:
    """Heartbeats by gossip (`detector=heartbeats`), judged by phi accrual."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: GossipSettings,
        generation: int,
        heartbeats: type[GossipHeartBeats],
        monitor: type[HeartBeatMonitor],
    ) -> None:
        self._ports = ports
        self._settings = settings
        self.handlers: Handlers = {GossipedHeartbeats: self._receive}
        self._told: list[NodeId] = []
        self._rows = 0
        interval_us = settings.gossip_interval_us
        parameters = PhiParameters.of(_ROUNDS_TO_BE_HEARD * interval_us, settings.phi_threshold)
        self._peers = [member for member in members if member != ports.node_id]
        self._monitor = monitor(
            self._peers,
            lambda: PhiAccrualFailureDetector(ports.clock, 0, parameters),
            LocalPause(ports.clock, _PAUSE_ROUNDS * interval_us),
            interval_us,
            self._mark,
        )
        self._heartbeats = heartbeats(
            ports.node_id,
            generation,
            members,
            ports.random,
            self._send,
            self._monitor,
            fanout=settings.fanout,
            entries_max=settings.entries_max,
        )

    def start(self) -> None:
        """Report how long each peer may be silent at first."""
        for peer in self._peers:
            self._report_heard(peer)

    def begin_round(self) -> None:
        """Count a heartbeat, tell some peers of those heard, and judge the silent ones."""
        self._told.clear()
        self._rows = 0
        self._heartbeats.tick()
        limits = self._settings.fanout, self._settings.entries_max
        self._ports.trace.emit(HeartbeatsTold(tuple(self._told), self._rows, *limits))
        self._ports.trace.emit(MembersJudged(self._settings.gossip_interval_us, self._ports.clock.monotonic_us()))

    def is_up(self, node: str) -> bool:
        """Return whether the silence of `node` is not suspicious."""
        return node not in self._monitor.down()

    def _receive(self, _: NodeId, message: GossipedHeartbeats) -> None:
        known = {peer: self._heartbeats.known(peer) for peer in self._peers if peer in message.heartbeats}
        self._heartbeats.handle_gossip(message)
        for server, before in known.items():
            if self._heartbeats.known(server) != before:
                self._report_heard(server)
            elif before is not None and message.heartbeats[server].generation < before.generation:
                self._ports.trace.sometimes("earlier-life-ignored")

    def _send(self, peer: NodeId, message: GossipedHeartbeats) -> None:
        self._told.append(peer)
        self._rows = max(self._rows, len(message.heartbeats))
        self._ports.network.send(peer, message)

    def _report_heard(self, server: str) -> None:
        now_us = self._ports.clock.monotonic_us()
        self._ports.trace.emit(PatienceBegun(server, self._monitor.patience_us(server), now_us))

    def _mark(self, server: str, up: bool) -> None:
        self._ports.trace.emit(MemberUp(server) if up else MemberDown(server, self._ports.clock.monotonic_us()))
        self._ports.trace.sometimes("node-marked-up" if up else "node-marked-down")


class LifeguardWatch:
    """SWIM with suspicion and Lifeguard's health score (`detector=lifeguard`); a period is a round of the node."""

    def __init__(
        self,
        ports: Ports,
        members: tuple[NodeId, ...],
        settings: GossipSettings,
        generation: int,
        member: type[SwimMember],
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._down: set[str] = set()
        self._is_told = False
        timing = SwimTiming(
            period_us=settings.gossip_interval_us,
            answer_us=settings.gossip_interval_us // 2,
            suspicion_us=settings.down_after_us,
        )
        self._member = member(
            ports.node_id, members, ports.timers, ports.random, ports.network.send, self._believe, timing, generation
        )
        self.handlers: Handlers = {
            Ping: self._hearing(self._member.handle_ping),
            PingRequest: self._hearing(self._member.handle_ping_request),
            PingAnswer: self._hearing(self._member.handle_ping_answer),
        }

    def start(self) -> None:
        """Begin to probe."""
        self._member.start()

    def begin_round(self) -> None:
        """Report the time; the member has timers of its own, which are slower when it is slow."""
        self._ports.trace.emit(MembersJudged(self._settings.gossip_interval_us, self._ports.clock.monotonic_us()))

    def is_up(self, node: str) -> bool:
        """Return whether `node` is not dead, as far as rumours have come; one that is suspected is up."""
        return self._member.standing(node) is not Standing.DEAD

    def _hearing(self, handle: Callable[[NodeId, Any], None]) -> Callable[[NodeId, Any], None]:
        def handler(source: NodeId, message: Any) -> None:
            incarnation = self._member.incarnation
            self._is_told = True
            handle(source, message)
            self._is_told = False
            if self._member.incarnation > incarnation:
                self._ports.trace.sometimes("suspicion-refuted")

        return handler

    def _believe(self, rumour: Rumour) -> None:
        trace, server, now_us = self._ports.trace, rumour.server, self._ports.clock.monotonic_us()
        match rumour.standing:
            case Standing.SUSPECTED:
                trace.emit(PatienceBegun(server, self._member.suspicion_us, now_us))
                trace.sometimes("member-suspected")
            case Standing.DEAD:
                trace.emit(MemberDown(server, now_us, self._is_told))
            case Standing.ALIVE:
                trace.emit(MemberUp(server))
        is_dead = rumour.standing is Standing.DEAD
        if is_dead != (server in self._down):
            self._down ^= {server}
            trace.sometimes("node-marked-down" if is_dead else "node-marked-up")
