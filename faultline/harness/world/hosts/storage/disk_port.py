"""The part of the fault port on hosts that acts on power and disks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from faultline.harness.world.disk_faults import DiskState
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.local.fault_port import ProcessFaultPort
from faultline.harness.world.ports import NodeId

__all__ = ["DiskFaultPort"]

_SYNC_TIMEOUT_S = 1.0
_POLL_S = 0.02


class DiskFaultPort(ProcessFaultPort):
    """Implements `faultline.harness.world.disk_faults.DiskFaults` by the disks of the cluster's hosts."""

    def __init__(self, cluster: HostCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cluster, loop)
        self._disks = cluster.host_set.disks
        self._host_cluster = cluster
        self._struck: set[NodeId] = set()
        self._failing: set[NodeId] = set()

    def power_off(self, nodes: Iterable[NodeId]) -> None:
        """Take the power from the hosts; nothing of what ran on them is asked any more."""
        chosen = [node for node in nodes if self.has_power(node)]
        for node in chosen:
            # Ask for its role while it can still answer; from then on its end is no crash.
            self._cluster.status(node)
            self._host_cluster.remote[node].expect_end()
        self._disks.power_off([self._host_cluster.host_of(node) for node in chosen])
        for node in chosen:
            self._host_cluster.remote[node].forget()

    def power_on(self, node: NodeId) -> None:
        """Boot the host, look whether it lost what it must, and start the node from its disk."""
        self._disks.power_on(self._host_cluster.host_of(node))
        self.restart(node)

    def has_power(self, node: NodeId) -> bool:
        """Does the host run?"""
        return self._disks.has_power(self._host_cluster.host_of(node))

    def restart(self, node: NodeId) -> None:
        """Start a dead node anew, unless its host has no power."""
        if self.has_power(node):
            super().restart(node)

    def strike_disk(self, node: NodeId, state: DiskState) -> None:
        """Bring the node's disk into a bad state; should the node end of that, it is no finding."""
        self._host_cluster.disks.excuse(node)
        self._struck.add(node)
        self._disks.strike(self._host_cluster.host_of(node), state)

    def mend_disk(self, node: NodeId) -> None:
        """Bring the disk into order; a node that wrote to one that turned read-only is started anew."""
        if node not in self._struck:
            return
        host = self._host_cluster.host_of(node)
        if self._disks.state(host) == "read-only":
            self.kill(node)
        self._disks.mend(host)
        self._struck.discard(node)
        self.restart(node)

    def disk_state(self, node: NodeId) -> DiskState:
        """What becomes of a write on the node's disk."""
        return self._disks.state(self._host_cluster.host_of(node))

    def fail_syncs(self, node: NodeId) -> None:
        """Let the supervisor answer the node's fsyncs with EIO; should the node end of that, it is no finding."""
        self._host_cluster.disks.excuse(node)
        self._host_cluster.disks.switch_for(node).let_fail()
        self._failing.add(node)

    def allow_syncs(self, node: NodeId) -> None:
        """Let the supervisor pass them on again."""
        if node in self._failing:
            self._host_cluster.disks.switch_for(node).let_pass()
            self._failing.discard(node)
            self.restart(node)

    def syncs_fail(self, node: NodeId) -> bool:
        """Has the node's supervisor answered so? For a node that syncs nothing at the moment, a probe does."""
        deadline_s = time.monotonic() + _SYNC_TIMEOUT_S
        switch = self._host_cluster.disks.switch_for(node)
        while node in self._failing and time.monotonic() < deadline_s:
            if switch.has_answered():
                return True
            time.sleep(_POLL_S)
        return switch.fails_a_probe()
