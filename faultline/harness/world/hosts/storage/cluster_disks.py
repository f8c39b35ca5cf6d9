"""The disks of a cluster's nodes over a run: made where faults strike them, flushed once, and taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from faultline.harness.errors import UsageError
from faultline.harness.plan import Plan
from faultline.harness.world.hosts.machines.host_options import SYNC_FAULTS, host_option
from faultline.harness.world.hosts.machines.host_sets import HostSet
from faultline.harness.world.hosts.processes.remote_process import RemoteProcess
from faultline.harness.world.hosts.storage.lying_disks import SyncSwitch, bring_filter
from faultline.harness.world.ports import NodeId

__all__ = ["DISK_FAULTS", "SYNC_FAULTS", "ClusterDisks"]

DISK_FAULTS = frozenset({"power-off", "disk-full", "disk-read-only", "disk-stall"})
"""The faults that need disks of the hosts' own."""


class ClusterDisks:
    """The disks under `processes`, each on the host that `host_of` names; `asked` is what the plan's faults need.

    A node that ends while its disk is bad, or since, does what it should, and is no finding until its next start. Where
    every fsync fails, that is so all the time.
    """

    def __init__(
        self,
        plan: Plan,
        host_set: HostSet,
        processes: Mapping[NodeId, RemoteProcess],
        host_of: Callable[[NodeId], str],
        asked: frozenset[str],
    ) -> None:
        self._host_set = host_set
        self._processes = processes
        self._host_of = host_of
        self._is_needed = bool(asked & DISK_FAULTS)
        self._fsync = host_option(plan.host_options, "fsync")
        self._is_supervised = bool(asked & SYNC_FAULTS)
        self._excused = set(processes) if self._fsync == "fails" else set()
        self._ended = 0

    def capabilities(self) -> frozenset[str]:
        """Return the faults of disks that can be injected, where any is asked for."""
        disks = DISK_FAULTS if self._is_needed and not self._host_set.disks.refusal() else frozenset[str]()
        return disks | (SYNC_FAULTS if self._is_supervised else frozenset())

    def statistics(self) -> dict[str, int]:
        """Return how often a node ended of a bad disk, where disks are struck."""
        strikes = self._is_needed or self._is_supervised or self._fsync == "fails"
        return {"ended_on_bad_disks": self._ended} if strikes else {}

    async def open(self) -> None:
        """Make the disks, and bring the filter where fsync is not honest."""
        if self._is_needed:
            await self._everywhere(self._attach)
        if self._is_supervised and self._fsync != "honest":
            raise UsageError(f"Where fsync {self._fsync} all the time, it cannot be made to fail for a while.", "")
        if self._is_supervised or self._fsync != "honest":
            await self._everywhere(self._let_fsync_be)

    async def flush(self) -> None:
        """Let every disk write down what the cluster was founded with: also a disk that lies does so in time."""
        if self._is_needed:
            await self._everywhere(lambda node: self._host_set.disks.flush(self._host_of(node)))

    def make_reachable(self, node: NodeId) -> None:
        """Give the host power and free writers that hang, so that the node can be ended. Raises HarnessError."""
        self._host_set.disks.thaw(self._host_of(node))
        self._host_set.disks.power_on(self._host_of(node))

    def close(self, node: NodeId) -> None:
        """Take the disk of the node, which has ended, away again."""
        self._host_set.disks.detach(self._host_of(node))

    def excuse(self, node: NodeId) -> None:
        """The node's disk is about to go bad."""
        self._excused.add(node)

    def started(self, node: NodeId) -> None:
        """The node is started anew, from a disk that is in order."""
        if self._fsync != "fails":
            self._excused.discard(node)

    def note_ends(self) -> None:
        """Count the ends of nodes that are excused, so that they are no findings."""
        self._ended += sum(self._processes[node].excuse_ends() for node in tuple(self._excused))

    async def _everywhere(self, action: Callable[[NodeId], None]) -> None:
        await asyncio.gather(*(asyncio.to_thread(action, node) for node in self._processes))

    def _attach(self, node: NodeId) -> None:
        self._host_set.disks.attach(self._host_of(node), self._processes[node].remote)

    def _let_fsync_be(self, node: NodeId) -> None:
        process = self._processes[node]
        kind = ("asks", self.switch_for(node).file) if self._is_supervised else (self._fsync,)
        process.launcher = bring_filter(self._host_set.fleet[self._host_of(node)], process.remote, *kind)

    def switch_for(self, node: NodeId) -> SyncSwitch:
        """Return the switch that lets the fsyncs of `node` fail, where they are supervised."""
        return SyncSwitch(self._host_set.fleet[self._host_of(node)], self._processes[node].remote)
