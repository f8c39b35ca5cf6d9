"""The nodes that are up, as each node judges for itself by the heartbeats that gossip brings.

Every node says a heartbeat that grows with each of its rounds. A peer counts as heard when its heartbeat grew. A
failure detector for each peer decides how long a silence may be. The views of two nodes may differ at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    FailureDetector,
    PauseAwareFailureDetector,
    TimeoutBasedFailureDetector,
)
from faultline.systems_under_test.patterns.data_replication.phi_accrual import PhiAccrualFailureDetector, PhiParameters
from faultline.systems_under_test.reference.gossip.options import GossipSettings
from faultline.systems_under_test.reference.shared.handler_table import Handlers

__all__ = ["HEARTBEAT", "HeartbeatView", "MemberWatch", "MemberWatches"]

HEARTBEAT = "heartbeat"
"""The key under which a node says how many rounds it has begun."""


class MemberWatch(Protocol):
    """A judge of the members that has messages of its own, with their handlers."""

    handlers: Handlers

    def start(self) -> None:
        """Begin to watch."""

    def begin_round(self) -> None:
        """Do what is due once in a round of the node."""

    def is_up(self, node: str) -> bool:
        """Return whether `node` is taken for up."""


class MemberWatches(Protocol):
    """The maker of such judges."""

    def watch(
        self, ports: Ports, members: tuple[NodeId, ...], settings: GossipSettings, generation: int
    ) -> MemberWatch | None:
        """Return the judge that the options ask for; None when it has no messages of its own."""


class HeartbeatView:
    """The peers that are up, as far as the node of `ports` can tell."""

    def __init__(self, ports: Ports, settings: GossipSettings) -> None:
        self._ports = ports
        self._new_detector = _detector(ports, settings)
        self._detectors: dict[str, FailureDetector] = {}
        self._down: set[str] = set()

    def heard(self, node: str) -> None:
        """Note that the heartbeat of `node` grew."""
        if node not in self._detectors:
            self._detectors[node] = self._new_detector()
        self._detectors[node].heartbeat_received()
        if node in self._down:
            self._down.discard(node)
            self._ports.trace.sometimes("node-marked-up")

    def judge(self) -> None:
        """Mark as down each peer that has been silent for too long."""
        for node, detector in self._detectors.items():
            if node not in self._down and detector.check() == 0:
                self._down.add(node)
                self._ports.trace.sometimes("node-marked-down")

    def is_up(self, node: str) -> bool:
        """Return whether `node` is taken for up."""
        return node not in self._down


def _detector(ports: Ports, settings: GossipSettings) -> Callable[[], FailureDetector]:
    def phi() -> FailureDetector:
        parameters = PhiParameters.of(settings.gossip_interval_us, settings.phi_threshold)
        return PhiAccrualFailureDetector(ports.clock, settings.gossip_interval_us, parameters)

    def fixed() -> FailureDetector:
        return TimeoutBasedFailureDetector(ports.clock, settings.down_after_us)

    # A node that was paused heard no heartbeats: without the outer detector it would take all its peers for down.
    inner = phi if settings.detector == "phi-accrual" else fixed
    return lambda: PauseAwareFailureDetector(inner(), ports.clock, settings.down_after_us)
