"""Limits on the processes of nodes, through the agents on the hosts.

A frozen node is stopped as a paused one is, but all of its processes at the same moment and without being able to tell.
A node with little processor time gets its share and then waits for the next tenth of a second. A node without memory to
take is killed by the kernel when it cannot do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from faultline.harness.world.faults import Actuators, one_by_one, switch
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.processes.host_agent import HostAgent
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.ports import NodeId

__all__ = ["NodeLimits", "limit_actuators"]


def limit_actuators(cluster: HostCluster, limits: NodeLimits, restart: Callable[[NodeId], None]) -> Actuators:
    """Return the actuators of `limits`; `restart` starts a node that ended for want of memory."""

    def freeze(node: NodeId) -> str:
        # Ask for its role while it can still answer.
        cluster.status(node)
        return limits.freeze(node)

    def lift_and_restart(node: NodeId) -> None:
        limits.lift(node)
        restart(node)

    return {
        "freeze": switch(freeze, limits.is_frozen, limits.thaw),
        "cpu-squeeze": one_by_one(limits.squeeze_cpu, limits.cpu_share, limits.lift),
        "memory-squeeze": one_by_one(limits.squeeze_memory, limits.memory_limit, lift_and_restart),
    }


class NodeLimits:
    """The limits on the processes of each node, set by the agent on its host."""

    def __init__(self, agents: Mapping[NodeId, HostAgent], processes: Mapping[NodeId, RemoteProcess]) -> None:
        self._agents = agents
        self._processes = processes

    def freeze(self, node: NodeId) -> str:
        """Freeze all processes of the node, and return by which means."""
        self._processes[node].is_frozen = True
        return str(self._agents[node].ask("freeze"))

    def thaw(self, node: NodeId) -> None:
        """Let a frozen node go on."""
        if self._processes[node].is_frozen:
            self._agents[node].ask("thaw")
            self._processes[node].is_frozen = False

    def is_frozen(self, node: NodeId) -> bool:
        """Return whether the host's kernel says that the group is frozen, with all of the node's processes in it."""
        return bool(self._agents[node].ask("frozen"))

    def squeeze_cpu(self, node: NodeId, share: float) -> None:
        """Let the node have `share` of one processor; the agent proves it."""
        self._agents[node].ask("squeeze-cpu", share=share)

    def cpu_share(self, node: NodeId) -> float:
        """Return the share in force as the host's kernel has it, 0 for no limit."""
        return float(self._agents[node].ask("cpu"))

    def squeeze_memory(self, node: NodeId, headroom_bytes: int) -> None:
        """Let the node take no more than `headroom_bytes` more; the agent proves it."""
        self._processes[node].is_short_of_memory = True
        self._agents[node].ask("squeeze-memory", headroom_bytes=headroom_bytes)

    def memory_limit(self, node: NodeId) -> int:
        """Return the limit in force in bytes as the host's kernel has it, 0 for none."""
        return int(self._agents[node].ask("memory")["limit"])

    def lift(self, node: NodeId) -> None:
        """Lift both limits."""
        self._agents[node].ask("lift")
        # What has ended by now ended for want of memory; what ends later did not.
        self._processes[node].note_end()
        self._processes[node].excuse_ends()
        self._processes[node].is_short_of_memory = False
