"""Faults of processes in real worlds: signals, each confirmed by the kernel."""

from __future__ import annotations

from faultline.harness.world.faults import Actuators, switch
from faultline.harness.world.local.cluster import NodeCluster
from faultline.harness.world.local.event_loop import InLoop
from faultline.harness.world.ports import NodeId

__all__ = ["NodeProcesses"]


class NodeProcesses:
    """The processes of `cluster`, as faults act on them from a thread that is not the event loop's."""

    def __init__(self, cluster: NodeCluster, in_loop: InLoop) -> None:
        self._cluster = cluster
        self._in_loop = in_loop

    def actuators(self) -> Actuators:
        """Return the actuators of the processes."""
        return {
            "kill": switch(self.kill, self.is_dead, self.restart),
            "pause": switch(self.pause, self.is_paused, self.resume),
        }

    def roles(self) -> dict[NodeId, str]:
        """Return the role each node reports, or reported before it was paused; `dead`, or `unknown` when silent."""
        return {
            node: status.role if status is not None else "dead" if self.is_dead(node) else "unknown"
            for node, status in self._cluster.statuses().items()
        }

    def kill(self, node: NodeId) -> None:
        """Send SIGKILL, and return when the process is gone."""
        self._cluster.processes[node].kill()

    def restart(self, node: NodeId) -> None:
        """Start a dead node anew over its files, and return when it listens."""
        process = self._cluster.processes[node]
        if not process.is_alive():
            # Reap the old process and close its channels before another takes its place.
            process.kill()
            # The kernel ends a node with the thread that started it, so that thread must be the one that lasts.
            self._in_loop(lambda: self._cluster.spawn(node))
            process.wait_until_up()

    def is_dead(self, node: NodeId) -> bool:
        """Return whether the kernel no longer knows the process."""
        return not self._cluster.processes[node].is_alive()

    def pause(self, node: NodeId) -> None:
        """Send SIGSTOP, and return when the kernel says that the process is stopped."""
        # Ask for its role while it can still answer.
        self._cluster.status(node)
        self._cluster.processes[node].pause()

    def resume(self, node: NodeId) -> None:
        """Send SIGCONT to a living node, and return when the kernel says that the process goes on."""
        # A node that was killed while it was paused has no process to signal.
        if not self.is_dead(node):
            self._cluster.processes[node].resume()

    def is_paused(self, node: NodeId) -> bool:
        """Return whether the kernel says that the process is stopped."""
        return self._cluster.processes[node].is_paused()
