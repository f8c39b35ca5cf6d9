"""Ending and stopping processes: `kill` and `pause`.

A killed node loses its memory and what it had not fsynced, and starts again from its storage when the fault ends. A
paused one keeps everything and goes on as if no time had passed: a leader that wakes up believing it still leads is the
classic (Kleppmann, "How to do distributed locking", 2016).

Only nodes that are up and running can be hit: the target is resolved among those. When there are none the injection
does nothing and says so; what it would have done is in force already. An injection brings back the nodes it took down
itself, so that a kill within another kill does not end it early.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId
from faultline.nemesis.targets import Resolution, fault_chance, resolve

__all__ = ["Kill", "Pause", "described", "resolved"]


def resolved(port: FaultPort, fault: PlannedFault, seed: int) -> Resolution:
    """The target among all nodes, less those that are down or paused; another one when that leaves nobody."""
    up = tuple(node for node in port.nodes if port.is_alive(node) and not port.is_paused(node))
    if not up:
        return Resolution((), "no node was up")
    chance, leader = fault_chance(fault, seed), port.leader()
    resolution = resolve(fault.target, nodes=port.nodes, leader=leader, chance=chance)
    hit = tuple(node for node in resolution.nodes if node in up)
    if hit or fault.target in port.nodes:
        return Resolution(hit, resolution.note or ("" if hit else f"{fault.target} was not up"))
    return Resolution(resolve("one", nodes=up, leader=leader, chance=chance).nodes, f"no {fault.target} was up")


def described(verb: str, resolution: Resolution) -> str:
    """What was done, to whom, and how the target had to be understood."""
    return f"{verb} {' '.join(resolution.nodes) or 'nobody'}{resolution.remark}"


class Kill:
    """The nemesis `kill`: ends processes, and starts them again when the fault ends."""

    kind = "kill"
    summary = "kills processes and restarts them from their storage"
    mark = "nodes-killed"
    needs = frozenset({"kill"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Kill the nodes of the target."""
        resolution = resolved(port, fault, seed)
        for node in resolution.nodes:
            port.kill(NodeId(node))
        return Injection(nodes=resolution.nodes, description=described("killed", resolution))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every process."""
        alive = [node for node in injection.nodes if port.is_alive(NodeId(node))]
        return f"still alive: {' '.join(alive)}" if alive else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """The dead stay dead."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Start the nodes this injection killed."""
        for node in injection.nodes:
            port.restart(NodeId(node))


class Pause:
    """The nemesis `pause`: stops processes where they stand, and lets them go on when the fault ends."""

    kind = "pause"
    summary = "stops processes where they stand and lets them go on later"
    mark = "nodes-paused"
    needs = frozenset({"pause"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Pause the nodes of the target."""
        resolution = resolved(port, fault, seed)
        for node in resolution.nodes:
            port.pause(NodeId(node))
        return Injection(nodes=resolution.nodes, description=described("paused", resolution))

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every process."""
        running = [node for node in injection.nodes if not port.is_paused(NodeId(node))]
        return f"still running: {' '.join(running)}" if running else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """The paused stay paused."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Let the nodes this injection paused go on, those that were killed meanwhile excepted."""
        for node in injection.nodes:
            if port.is_alive(NodeId(node)):
                port.resume(NodeId(node))
