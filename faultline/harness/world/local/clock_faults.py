"""Faults of clocks in real worlds, where nodes take the time from a clock port that the harness sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from faultline.harness.world.faults import Actuators, one_by_one
from faultline.harness.world.local.clock import ClockSetting, machine_monotonic_us
from faultline.harness.world.local.cluster import NodeCluster
from faultline.harness.world.local.control import ClockReading
from faultline.harness.world.ports import NodeId

__all__ = ["Clocks", "NodeClocks", "clock_actuators"]

CLOCK_TIMEOUT_S = 2.0
Result = TypeVar("Result")


class Clocks(Protocol):
    """The clocks of a cluster, whatever the means by which they are set."""

    def step(self, node: NodeId, delta_us: int) -> None:
        """Move the node's wall clock by `delta_us`, back when negative."""

    def drift(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks of the node run fast by `rate_ppm` parts per million, slow when negative; 0 ends it."""

    def reset(self, node: NodeId) -> None:
        """Put the node's wall clock right and end its drift."""

    def offset_us(self, node: NodeId) -> int:
        """Return the node's wall clock minus true time."""

    def rate_ppm(self, node: NodeId) -> int:
        """Return the drift in force."""


def clock_actuators(clocks: Clocks) -> Actuators:
    """Return the actuators of `clocks`. Mending either kind of fault puts the whole clock right."""
    return {
        "clock-step": one_by_one(clocks.step, clocks.offset_us, clocks.reset),
        "clock-drift": one_by_one(clocks.drift, clocks.rate_ppm, clocks.reset),
    }


class NodeClocks:
    """The clock ports of the nodes of `cluster`."""

    def __init__(self, cluster: NodeCluster) -> None:
        self._cluster = cluster

    def step(self, node: NodeId, delta_us: int) -> None:
        """Move the node's wall clock by `delta_us`."""
        self._set(node, self._cluster.clocks[node].stepped(delta_us))

    def drift(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks of the node run fast by `rate_ppm`."""
        self._set(node, self._cluster.clocks[node].drifting(rate_ppm, machine_monotonic_us()))

    def reset(self, node: NodeId) -> None:
        """Put the node's wall clock right and end its drift."""
        self._set(node, ClockSetting())

    def offset_us(self, node: NodeId) -> int:
        """Return wall clock minus true time, as the node reads both; from its setting when it cannot answer."""
        reading = self._reading(node)
        if reading is None:
            return self._cluster.clocks[node].skew_us(machine_monotonic_us())
        return reading.wall_us - reading.true_us

    def rate_ppm(self, node: NodeId) -> int:
        """Return the drift in force, as the node says; from its setting when it cannot answer."""
        reading = self._reading(node)
        return reading.rate_ppm if reading is not None else self._cluster.clocks[node].rate_ppm

    def _set(self, node: NodeId, setting: ClockSetting) -> None:
        # A dead or stopped node cannot confirm: it starts under the setting, or reads it when it goes on.
        self._cluster.clocks[node] = setting
        process = self._cluster.processes[node]
        if process.is_alive():
            timeout_s = 0.0 if process.is_paused() else CLOCK_TIMEOUT_S
            _tolerate(lambda: process.control.set_clock(setting, timeout_s))

    def _reading(self, node: NodeId) -> ClockReading | None:
        process = self._cluster.processes[node]
        if not process.is_alive() or process.is_paused():
            return None
        return _tolerate(lambda: process.control.clock(CLOCK_TIMEOUT_S))


def _tolerate(question: Callable[[], Result]) -> Result | None:
    try:
        return question()
    except (TimeoutError, OSError):
        return None
