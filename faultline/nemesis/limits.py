"""Processes under limits: `freeze`, `cpu-squeeze` and `memory-squeeze`. Only hosts have them.

A frozen node is a paused one that cannot know: all its processes stand still at the same moment. A squeezed node is the
more common trouble, the one that is neither up nor down: heartbeats come late, leases run out while they are renewed,
and everybody waits for it (Huang et al., "Gray Failure: The Achilles' Heel of Cloud-Scale Systems", HotOS 2017). A node
that may take no more memory gives back what it can, and is killed by the kernel when that is not enough; it is then
started again when the fault ends, and its end is no finding.
"""

from __future__ import annotations

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import NodeId
from faultline.nemesis.process import described, resolved

__all__ = ["CpuSqueeze", "Freeze", "MemorySqueeze"]

SHARE = 0.1
HEADROOM_KIB = 4096
_KIB = 1024


class Freeze:
    """The nemesis `freeze`: stops all processes of a node at once, and lets them go on when the fault ends."""

    kind = "freeze"
    summary = "freezes all processes of a node at the same moment, without their noticing"
    mark = "nodes-frozen"
    needs = frozenset({"freeze"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Freeze the nodes of the target; the description says by which means."""
        resolution = resolved(port, fault, seed)
        means = sorted({port.freeze(NodeId(node)) for node in resolution.nodes})
        by = f" by {', '.join(means)}" if means else ""
        return Injection(nodes=resolution.nodes, description=described("froze", resolution) + by)

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every node."""
        running = [node for node in injection.nodes if not port.is_frozen(NodeId(node))]
        return f"still running: {' '.join(running)}" if running else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """The frozen stay frozen."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Let the nodes go on."""
        for node in injection.nodes:
            port.thaw(NodeId(node))


class CpuSqueeze:
    """The nemesis `cpu-squeeze`. Argument: `share` of one processor (default a tenth)."""

    kind = "cpu-squeeze"
    summary = "gives nodes only a share of a processor"
    mark = "processors-squeezed"
    needs = frozenset({"cpu-squeeze"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Squeeze the nodes of the target."""
        resolution = resolved(port, fault, seed)
        share = float(fault.argument.get("share", SHARE))
        for node in resolution.nodes:
            port.squeeze_cpu(NodeId(node), share)
        description = f"{described('left', resolution)} {share * 100:g} % of a processor"
        return Injection(nodes=resolution.nodes, description=description, state={"share": share})

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every limit; that it bites was proved when it was set."""
        for node in injection.nodes:
            seen = port.cpu_share(NodeId(node))
            if abs(seen - injection.state["share"]) > injection.state["share"] / 10:
                return f"{node} has {seen * 100:g} % of a processor instead of {injection.state['share'] * 100:g} %"
        return None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A limit stands by itself."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Lift the limits."""
        for node in injection.nodes:
            port.lift_squeezes(NodeId(node))


class MemorySqueeze:
    """The nemesis `memory-squeeze`. Argument: `headroom_kib`, how much more a node may take (default 4096)."""

    kind = "memory-squeeze"
    summary = "lets nodes take hardly more memory than they have; the kernel may kill them for it"
    mark = "memory-squeezed"
    needs = frozenset({"memory-squeeze"})
    tick_us = 0

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Squeeze the nodes of the target."""
        resolution = resolved(port, fault, seed)
        headroom_kib = int(fault.argument.get("headroom_kib", HEADROOM_KIB))
        for node in resolution.nodes:
            port.squeeze_memory(NodeId(node), headroom_kib * _KIB)
        description = f"{described('left', resolution)} {headroom_kib:,} KiB more memory"
        return Injection(nodes=resolution.nodes, description=description)

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe every limit; that it bites was proved when it was set."""
        free = [node for node in injection.nodes if not port.memory_limit(NodeId(node))]
        return f"without a limit: {' '.join(free)}" if free else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """A limit stands by itself."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Lift the limits, and start the nodes that were killed for want of memory."""
        for node in injection.nodes:
            port.lift_squeezes(NodeId(node))
            port.restart(NodeId(node))
