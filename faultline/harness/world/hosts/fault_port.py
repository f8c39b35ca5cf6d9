"""The fault port of runs on hosts: processes and clocks as everywhere, the rest as the hosts allow."""

from __future__ import annotations

import asyncio

from faultline.harness.world.faults import Actuators, FaultPort, limited_to, switch
from faultline.harness.world.hosts.clocks.member_clocks import MemberClocks
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.machines.abilities import CLOCK_FAULTS
from faultline.harness.world.hosts.network.link_faults import link_actuators
from faultline.harness.world.hosts.processes.limit_faults import NodeLimits, limit_actuators
from faultline.harness.world.hosts.storage.disk_faults import NodeDisks
from faultline.harness.world.local.clock_faults import NodeClocks, clock_actuators
from faultline.harness.world.local.event_loop import InLoop
from faultline.harness.world.local.process_faults import NodeProcesses
from faultline.harness.world.ports import NodeId

__all__ = ["host_fault_port"]


def host_fault_port(cluster: HostCluster, loop: asyncio.AbstractEventLoop) -> FaultPort:
    """Return the fault port of `cluster`, with an actuator for each capability that its hosts have."""
    capabilities = cluster.capabilities()
    processes = NodeProcesses(cluster, InLoop(loop))
    limits = NodeLimits(cluster.agents, cluster.remote)
    # A store's processes take their clock from its agent, and each new one must be given it.
    adopts = cluster.is_store and bool(capabilities & CLOCK_FAULTS)

    def kill(node: NodeId) -> None:
        # Not every freezer lets processes be killed.
        limits.thaw(node)
        processes.kill(node)

    def restart(node: NodeId) -> None:
        """Start a dead node anew where there is power; when this returns, its processes have the clock in force."""
        if disks.has_power(node):
            processes.restart(node)
            if adopts:
                cluster.agents[node].ask("adopt")

    disks = NodeDisks(cluster, kill, restart)
    clocks = MemberClocks(cluster.agents, cluster.answers) if cluster.is_store else NodeClocks(cluster)
    actuators: Actuators = {
        **link_actuators(cluster),
        **disks.actuators(),
        **limit_actuators(cluster, limits, restart),
        **clock_actuators(clocks),
        "kill": switch(kill, processes.is_dead, restart),
        "pause": switch(processes.pause, processes.is_paused, processes.resume),
    }
    racks = cluster.plan.racks or {}
    return FaultPort(cluster.nodes, cluster.leader, processes.roles, limited_to(capabilities, actuators), racks)
