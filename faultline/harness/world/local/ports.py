"""The ports of real nodes and of the clients the harness hosts, put together."""

from __future__ import annotations

from dataclasses import dataclass

from faultline.harness.world.ports import Clock, Network, NodeId, RandomSource, Storage, Timers, Trace

__all__ = ["RealPorts"]


@dataclass(slots=True)
class RealPorts:
    """All the ports of one node or client in the real world."""

    node_id: NodeId
    clock: Clock
    network: Network
    timers: Timers
    storage: Storage
    random: RandomSource
    trace: Trace
