"""Processes and their hosts: `kill`, `rolling-restart`, `pause`, `freeze`, limits, and `power-off`.

A killed node loses its memory and what it had not fsynced, and starts again from its storage when the fault ends. A
paused node keeps everything and goes on as if no time had passed: a leader that wakes up believing it still leads is
the classic (Kleppmann, "How to do distributed locking", 2016). A frozen node is a paused one that cannot know: all its
processes stand still at the same moment.

A node under limits is the more common trouble, neither up nor down: heartbeats come late, leases run out while they are
renewed, and the whole cluster waits for it (Huang et al., "Gray Failure: The Achilles' Heel of Cloud-Scale Systems",
HotOS 2017). A node that may take no more memory gives back what it can, and is killed by the kernel when that is not
enough; it is then started again when the fault ends, and its end is no finding.

A loss of power is what a kill only looks like on a real machine: the host ends and what was not synced is gone. Several
hosts lose it in the same moment, as in one rack; a store that acknowledges only what a majority has synced must survive
even the loss of all. (The question of durability has been Jepsen's last since 2020, with LazyFS; here the kernel's own
file system forgets, see `faultline.harness.world.hosts.namespaces.disk`.)

A rolling restart is how operators change machines and programs without an outage: each node in turn is stopped and
started again, one at a time, so that every role moves to another node, also more than once.

Only nodes that are up and running can be hit: the target is resolved among those. An injection brings back the nodes it
took down itself, so that a kill within another kill does not end it early.
"""

from __future__ import annotations

from typing import Any

from faultline.harness.nemesis import Injection, Nemesis
from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort
from faultline.nemesis.standard import StandardNemesis, struck
from faultline.nemesis.targets import aimed_at_nodes_up, fault_chance, shuffled

__all__ = ["KILL", "PAUSE", "PROCESS_FAULTS", "RollingRestart"]

SHARE = 0.1
HEADROOM_KIB = 4096
_KIB = 1024
_TURN_US_MIN = 60_000

KILL = StandardNemesis(
    kind="kill",
    summary="kills processes and restarts them from their storage",
    mark="nodes-killed",
    setting=struck,
    description="killed {nodes}{remark}",
    complaint="still alive: {missed}",
)
PAUSE = StandardNemesis(
    kind="pause",
    summary="stops processes where they stand and lets them go on later",
    mark="nodes-paused",
    setting=struck,
    description="paused {nodes}{remark}",
    complaint="still running: {missed}",
)
FREEZE = StandardNemesis(
    kind="freeze",
    summary="freezes all processes of a node at the same moment, without their noticing",
    mark="nodes-frozen",
    setting=struck,
    description="froze {nodes}{remark}{means}",
    complaint="still running: {missed}",
)
CPU_SQUEEZE = StandardNemesis(
    kind="cpu-squeeze",
    summary="gives nodes only a share of a processor",
    mark="processors-squeezed",
    setting=lambda fault: float(fault.argument.get("share", SHARE)),
    shown=lambda share: f"{share * 100:g} %",
    description="left {nodes}{remark} {setting} of a processor",
    complaint="{target} has {seen} of a processor instead of {wanted}",
    # The kernel keeps a share as microseconds of each period, which rounds it.
    is_in_force=lambda seen, wanted: abs(seen - wanted) <= wanted / 10,
)
MEMORY_SQUEEZE = StandardNemesis(
    kind="memory-squeeze",
    summary="lets nodes take hardly more memory than they have; the kernel may kill them for it",
    mark="memory-squeezed",
    setting=lambda fault: int(fault.argument.get("headroom_kib", HEADROOM_KIB)) * _KIB,
    shown=lambda headroom_bytes: f"{headroom_bytes // _KIB:,} KiB",
    description="left {nodes}{remark} {setting} more memory",
    complaint="without a limit: {missed}",
    # The limit is what the node had when it was struck, and the headroom; the agent proved that it bites.
    is_in_force=lambda limit_bytes, _: limit_bytes > 0,
)
POWER_OFF = StandardNemesis(
    kind="power-off",
    summary="takes power from hosts: processes end at once, and what was not synced is lost",
    mark="power-lost",
    setting=struck,
    description="took the power from {nodes}{remark}",
    complaint="still running: {missed}",
    # That the unsynced is lost shows when power is back, and is looked at then.
    also_probes=("kill",),
)


class RollingRestart:
    """The nemesis `rolling-restart`: each node of the target is down for the first half of its turn.

    The turns are equal parts of the fault's time, and 60 ms at least: where the time is too short for all nodes, some
    are not restarted. A node that is down or paused when its turn comes is left alone.
    """

    kind = "rolling-restart"
    summary = "stops and restarts nodes in turn, one at a time"
    mark = "nodes-restarted-in-turn"
    needs = frozenset({"kill"})
    tick_us = 20_000

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Draw the order of the nodes, and stop the first of them."""
        resolution = aimed_at_nodes_up(port, fault, seed)
        order = shuffled(resolution.nodes, fault_chance(fault, seed))
        order = order[: max(1, fault.duration_us // _TURN_US_MIN)]
        turn_us = max(fault.duration_us // max(1, len(order)), self.tick_us)
        state: dict[str, Any] = {"order": order, "turn_us": turn_us, "turn": 0, "stopped": ()}
        description = f"restarts {' '.join(order) or 'no node'} in turn{resolution.remark}"
        injection = Injection(nodes=order, description=description, state=state)
        self._stop_next(port, state)
        return injection

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe the first node, which must be down."""
        stopped = injection.state["stopped"]
        alive = [node for node, is_dead in port.actuators["kill"].probe(stopped).items() if not is_dead]
        return f"still alive: {' '.join(alive)}" if alive else None

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Start the stopped node again after half of its turn, and stop the next one when its turn has come."""
        state = injection.state
        turn, into_us = divmod(count * self.tick_us, state["turn_us"])
        if turn != state["turn"]:
            self.stop(port, injection)
            state["turn"] = turn
            self._stop_next(port, state)
        elif into_us >= state["turn_us"] // 2:
            self.stop(port, injection)

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """Start the node that this injection has stopped last, unless it was started before."""
        if injection.state["stopped"]:
            port.actuators["kill"].mend(injection.state["stopped"])
            injection.state["stopped"] = ()

    def _stop_next(self, port: FaultPort, state: dict[str, Any]) -> None:
        up = port.nodes_up()
        state["stopped"] = tuple(node for node in state["order"][state["turn"] : state["turn"] + 1] if node in up)
        port.actuators["kill"].strike(state["stopped"], True)


PROCESS_FAULTS: tuple[Nemesis, ...] = (
    *(KILL, PAUSE, FREEZE, CPU_SQUEEZE, MEMORY_SQUEEZE, POWER_OFF),
    RollingRestart(),
)
"""Every fault of processes and hosts."""
