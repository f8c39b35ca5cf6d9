"""The fault port of the local world. Actions return when the kernel, the proxy or the node confirms them."""

from __future__ import annotations

import asyncio

from faultline.harness.world.faults import Actuators, FaultPort
from faultline.harness.world.local.clock_faults import NodeClocks, clock_actuators
from faultline.harness.world.local.cluster import LocalCluster, NodeCluster
from faultline.harness.world.local.event_loop import InLoop
from faultline.harness.world.local.link_faults import link_actuators
from faultline.harness.world.local.process_faults import NodeProcesses

__all__ = ["local_fault_port", "process_fault_port"]


def process_fault_port(
    cluster: NodeCluster, loop: asyncio.AbstractEventLoop, links: Actuators | None = None
) -> FaultPort:
    """Return a fault port with the actuators of processes and clocks, and those of `links` where there are some."""
    processes = NodeProcesses(cluster, InLoop(loop))
    actuators: Actuators = {**(links or {}), **processes.actuators(), **clock_actuators(NodeClocks(cluster))}
    return FaultPort(cluster.nodes, cluster.leader, processes.roles, actuators, cluster.plan.racks or {})


def local_fault_port(cluster: LocalCluster, loop: asyncio.AbstractEventLoop) -> FaultPort:
    """Return the fault port of the local world."""
    return process_fault_port(cluster, loop, link_actuators(cluster, InLoop(loop)))
