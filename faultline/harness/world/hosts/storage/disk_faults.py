"""Faults of power and disks on hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from faultline.harness.world.faults import Actuator, Actuators, DiskState, one_by_one, switch
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.ports import NodeId

__all__ = ["NodeDisks"]

_SYNC_TIMEOUT_S = 1.0
_POLL_S = 0.02


class NodeDisks:
    """The disks and the power of the nodes of `cluster`. `kill` and `restart` end and start a node's process."""

    def __init__(self, cluster: HostCluster, kill: Callable[[NodeId], None], restart: Callable[[NodeId], None]) -> None:
        self._cluster = cluster
        self._disks = cluster.host_set.disks
        self._kill = kill
        self._restart = restart
        self._struck: set[NodeId] = set()
        self._failing: set[NodeId] = set()

    def actuators(self) -> Actuators:
        """Return the actuators of power, disks and fsync."""
        disk = one_by_one(self._strike, self._state, self._mend)
        return {
            "power-off": Actuator(
                lambda nodes, _: self._power_off(nodes),
                lambda nodes: {node: not self.has_power(node) for node in nodes},
                self._power_on,
            ),
            "disk-full": disk,
            "disk-read-only": disk,
            "disk-stall": disk,
            "fsync-fail": switch(self._fail_syncs, self._syncs_fail, self._allow_syncs),
        }

    def has_power(self, node: NodeId) -> bool:
        """Return whether the node's host runs."""
        return self._disks.has_power(self._cluster.host_of(node))

    def _power_off(self, nodes: Sequence[NodeId]) -> None:
        """Take the power from the hosts, from all at once; from then on no question goes to what ran there."""
        chosen = [node for node in nodes if self.has_power(node)]
        for node in chosen:
            # Ask for its role while it can still answer; from then on its end is no crash.
            self._cluster.status(node)
            self._cluster.remote[node].expect_end()
        self._disks.power_off([self._cluster.host_of(node) for node in chosen])
        for node in chosen:
            self._cluster.remote[node].forget()

    def _power_on(self, nodes: Sequence[NodeId]) -> None:
        """Boot the hosts, look whether they lost what they must, and start the nodes from their disks."""
        for node in nodes:
            if not self.has_power(node):
                self._disks.power_on(self._cluster.host_of(node))
                self._restart(node)

    def _strike(self, node: NodeId, state: DiskState) -> None:
        """Bring the node's disk into a bad state; should the node end of that, it is no finding."""
        self._cluster.disks.excuse(node)
        self._struck.add(node)
        self._disks.strike(self._cluster.host_of(node), state)

    def _mend(self, node: NodeId) -> None:
        """Bring the disk into order; a node that wrote to a disk that turned read-only is started anew."""
        if node not in self._struck:
            return
        host = self._cluster.host_of(node)
        if self._disks.state(host) == "read-only":
            # A disk is checked and mounted again only while no process holds a file on it, as an operator does it.
            self._kill(node)
        self._disks.mend(host)
        self._struck.discard(node)
        self._restart(node)

    def _state(self, node: NodeId) -> DiskState:
        return self._disks.state(self._cluster.host_of(node))

    def _fail_syncs(self, node: NodeId) -> None:
        """Let the supervisor answer the node's fsyncs with EIO; should the node end of that, it is no finding."""
        self._cluster.disks.excuse(node)
        self._cluster.disks.switch_for(node).let_fail()
        self._failing.add(node)

    def _allow_syncs(self, node: NodeId) -> None:
        """Let the supervisor pass them on again, and start the node when it has ended meanwhile."""
        if node in self._failing:
            self._cluster.disks.switch_for(node).let_pass()
            self._failing.discard(node)
            self._restart(node)

    def _syncs_fail(self, node: NodeId) -> bool:
        """Return whether the supervisor has answered so. For a node that syncs nothing now, a probe tells."""
        deadline_s = time.monotonic() + _SYNC_TIMEOUT_S
        switch_of_node = self._cluster.disks.switch_for(node)
        while node in self._failing and time.monotonic() < deadline_s:
            if switch_of_node.has_answered():
                return True
            time.sleep(_POLL_S)
        return switch_of_node.fails_a_probe()
