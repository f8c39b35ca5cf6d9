"""Many servers that gossip heartbeats, cranked interval by interval, with seeded losses."""

from __future__ import annotations

import random

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.cluster_management.gossip_heartbeats import (
    GossipedHeartbeats,
    GossipHeartBeats,
)
from faultline.systems_under_test.patterns.data_replication.heartbeat import HeartBeatMonitor, LocalPause
from faultline.systems_under_test.patterns.data_replication.phi_accrual import (
    PhiAccrualFailureDetector,
    PhiParameters,
)
from faultline.testing.fake_ports import FakePorts

INTERVAL_US = 1_000_000


class Draws:
    """A seeded random source; implements `RandomSource`."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return self._random.randrange(low_us, high_us)


class GossipingCluster:
    def __init__(self, size: int, kind: type[GossipHeartBeats] = GossipHeartBeats, loss: float = 0.0) -> None:
        self.names = [NodeId(f"server-{number:03}") for number in range(size)]
        self.clock = FakePorts()
        self.kind = kind
        self.loss = loss
        self.weather = random.Random(f"weather {size} {loss}")
        self.mail: list[tuple[NodeId, GossipedHeartbeats]] = []
        self.sent: dict[NodeId, list[GossipedHeartbeats]] = {name: [] for name in self.names}
        self.downs: list[tuple[str, str]] = []
        self.monitors: dict[NodeId, HeartBeatMonitor] = {}
        self.servers: dict[NodeId, GossipHeartBeats] = {}
        for name in self.names:
            self.start(name, 1)

    def start(self, name: NodeId, generation: int) -> None:
        parameters = PhiParameters.of(2 * INTERVAL_US)
        others = [other for other in self.names if other != name]
        self.monitors[name] = HeartBeatMonitor(
            others,
            lambda: PhiAccrualFailureDetector(self.clock, 0, parameters),
            LocalPause(self.clock, 5 * INTERVAL_US),
            INTERVAL_US,
            lambda server, up: None if up else self.downs.append((name, server)),
        )
        self.servers[name] = self.kind(
            name, generation, self.names, Draws(f"{name}/{generation}"), self.sender(name), self.monitors[name]
        )

    def sender(self, name: NodeId):
        def send(to: NodeId, message: GossipedHeartbeats) -> None:
            self.sent[name].append(message)
            if self.weather.random() >= self.loss:
                self.mail.append((to, message))

        return send

    def interval(self, count: int = 1) -> None:
        for _ in range(count):
            self.clock.now_us += INTERVAL_US
            self.sent = {name: [] for name in self.names}
            for server in self.servers.values():
                server.tick()
            mail, self.mail = self.mail, []
            for to, message in mail:
                if to in self.servers:
                    self.servers[to].handle_gossip(message)

    def kill(self, name: NodeId) -> None:
        del self.servers[name]

    def all_know_that_is_down(self, name: NodeId) -> bool:
        return all(name in self.monitors[server].down() for server in self.servers)
