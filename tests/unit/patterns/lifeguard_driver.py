"""Members that probe each other, in a little world of events with seeded delays, losses and slow members."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from gossip_driver import Draws

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.lifeguard_probing import (
    Ping,
    PingAnswer,
    PingRequest,
    Rumour,
    Standing,
    SwimMember,
    SwimTiming,
)

DELAY_US = 20_000


class SwimCluster:
    def __init__(self, size: int, kind: type[SwimMember] = SwimMember, loss: float = 0.0) -> None:
        self.names = [NodeId(f"member-{number:02}") for number in range(size)]
        self.kind = kind
        self.loss = loss
        self.now_us = 0
        self.order = itertools.count()
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.weather = random.Random(f"{size} {loss}")
        self.cut: set[tuple[str, str]] = set()
        self.delays_us: dict[str, int] = {}
        self.sent: list[tuple[str, str, Any]] = []
        self.believed: list[tuple[str, Rumour]] = []
        self.members: dict[NodeId, SwimMember] = {}
        for name in self.names:
            self.start(name, 0)

    def start(self, name: NodeId, incarnation: int) -> None:
        member = self.kind(
            name,
            self.names,
            _Timers(self, name),
            Draws(f"{name} {incarnation}"),
            lambda to, message: self.send(name, to, message),
            lambda rumour: self.believed.append((name, rumour)),
            SwimTiming(),
            incarnation,
        )
        self.members[name] = member
        member.start()

    def kill(self, name: NodeId) -> None:
        del self.members[name]

    def at(self, delay_us: int, event: Callable[[], None]) -> None:
        heappush(self.events, (self.now_us + delay_us, next(self.order), event))

    def send(self, source: str, to: NodeId, message: Any) -> None:
        self.sent.append((source, to, message))
        if (source, to) in self.cut or self.weather.random() < self.loss:
            return
        delay_us = self.weather.randrange(DELAY_US) + self.delays_us.get(source, 0) + self.delays_us.get(to, 0)
        self.at(delay_us, lambda: self.arrive(NodeId(source), to, message))

    def arrive(self, source: NodeId, to: NodeId, message: Any) -> None:
        member = self.members.get(to)
        if member is None:
            return
        if isinstance(message, Ping):
            member.handle_ping(source, message)
        elif isinstance(message, PingRequest):
            member.handle_ping_request(source, message)
        elif isinstance(message, PingAnswer):
            member.handle_ping_answer(source, message)

    def pass_time(self, duration_us: int) -> None:
        end_us = self.now_us + duration_us
        while self.events and self.events[0][0] <= end_us:
            self.now_us, _, event = heappop(self.events)
            event()
        self.now_us = end_us

    def dead_by_someone(self) -> set[str]:
        return {rumour.server for _, rumour in self.deaths()}

    def deaths(self) -> list[tuple[str, Rumour]]:
        return [(name, rumour) for name, rumour in self.believed if rumour.standing is Standing.DEAD]


class _Timers:
    """Timers of one life of one member: they do not ring once it is dead."""

    def __init__(self, cluster: SwimCluster, name: NodeId) -> None:
        self.cluster = cluster
        self.name = name
        self.life: SwimMember | None = None

    def after(self, delay_us: int, callback: Callable[[], None]) -> Any:
        if self.life is None:
            self.life = self.cluster.members.get(self.name)
        self.cluster.at(delay_us, lambda: self.ring(callback))

    def ring(self, callback: Callable[[], None]) -> None:
        if self.cluster.members.get(self.name) is self.life:
            callback()

    def every(self, interval_us: int, callback: Callable[[], None]) -> Any:
        raise NotImplementedError
