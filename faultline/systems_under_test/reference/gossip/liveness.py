"""Who is up, judged by each node for itself from the heartbeats that gossip brings.

Every node says a heartbeat that grows with each of its rounds. A peer whose heartbeat grew is heard; how long a silence
may be is up to a detector of the heartbeat pattern, one per peer. Views of two nodes may differ at any time.
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    FailureDetector,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiAccrualFailureDetector, PhiParameters
from faultline.systems_under_test.reference.gossip.options import GossipSettings

__all__ = ["HEARTBEAT", "HeartbeatView"]

HEARTBEAT = "heartbeat"
"""The key under which a node says how many rounds it has begun."""


class HeartbeatView:
    """Which peers are up, as far as `ports`' node can tell."""

    def __init__(self, ports: Ports, settings: GossipSettings) -> None:
        self._ports = ports
        self._new_detector = _detector(ports, settings)
        self._detectors: dict[str, FailureDetector] = {}
        self._down: set[str] = set()

    def heard(self, node: str) -> None:
        """The heartbeat of `node` grew."""
        if node not in self._detectors:
            self._detectors[node] = self._new_detector()
        self._detectors[node].heartbeat_received()
        if node in self._down:
            self._down.discard(node)
            self._ports.trace.sometimes("node-marked-up")

    def judge(self) -> None:
        """Take for down whoever has been silent for too long."""
        for node, detector in self._detectors.items():
            if node not in self._down and detector.check() == 0:
                self._down.add(node)
                self._ports.trace.sometimes("node-marked-down")

    def is_up(self, node: str) -> bool:
        """Whether `node` is taken for up."""
        return node not in self._down


def _detector(ports: Ports, settings: GossipSettings) -> Callable[[], FailureDetector]:
    def phi() -> FailureDetector:
        parameters = PhiParameters.of(settings.gossip_interval_us, settings.phi_threshold)
        return PhiAccrualFailureDetector(ports.clock, settings.gossip_interval_us, parameters)

    def fixed() -> FailureDetector:
        return TimeoutBasedFailureDetector(ports.clock, settings.down_after_us)

    inner = phi if settings.detector == "phi-accrual" else fixed
    return lambda: PauseAwareFailureDetector(inner(), ports.clock, settings.down_after_us)
