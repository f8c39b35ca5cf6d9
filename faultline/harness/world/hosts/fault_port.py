"""The fault port of runs on hosts: processes and clocks as everywhere, links as the hosts' network allows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.machines.abilities import CLOCK_FAULTS
from faultline.harness.world.hosts.processes.agent_faults import AgentClocks, AgentLimits
from faultline.harness.world.hosts.storage.disk_port import DiskFaultPort
from faultline.harness.world.ports import Link, NodeId

__all__ = ["HostFaultPort", "StoreFaultPort"]


class HostFaultPort(AgentLimits, DiskFaultPort):
    """Implements `faultline.harness.world.faults.FaultPort`; its `capabilities` are what the hosts can do."""

    def __init__(self, cluster: HostCluster, loop: asyncio.AbstractEventLoop) -> None:
        AgentLimits.__init__(self, cluster.agents, cluster.remote)
        DiskFaultPort.__init__(self, cluster, loop)
        self.capabilities = cluster.capabilities()
        self._links = cluster.host_set.links
        self._qualities = cluster.host_set.qualities
        self._connections = cluster.host_set.connections
        self._cables = cluster.host_set.cables
        self._host_of = cluster.host_of

    def cut(self, links: Iterable[Link]) -> None:
        """Drop everything on `links` from now on."""
        self._links.cut(map(self._host_link, links))

    def restore(self, links: Iterable[Link]) -> None:
        """Let everything pass over `links` again."""
        self._links.restore(map(self._host_link, links))

    def is_cut(self, link: Link) -> bool:
        """Probe: see the means by which this set's links are cut."""
        return self._links.is_cut(self._host_link(link))

    def are_cut(self, links: Iterable[Link]) -> frozenset[Link]:
        """Probe: see the means by which this set's links are cut."""
        chosen = {self._host_link(link): link for link in links}
        return frozenset(chosen[link] for link in self._links.are_cut(chosen))

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        """Give `links` the `quality` by the means of this set of hosts."""
        self._qualities.degrade(map(self._host_link, links), quality)

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        """Probe: what the means of this set can tell about each link."""
        chosen = {self._host_link(link): link for link in links}
        return {chosen[link]: quality for link, quality in self._qualities.qualities(chosen).items()}

    # -- connections --------------------------------------------------------------------------------------------

    def connections(self, link: Link) -> frozenset[str]:
        """The connections between both ends of `link`, as the sender's kernel knows them."""
        return self._connections.open_on(self._host_link(link))

    def kill_connections(self, links: Iterable[Link]) -> None:
        """Let the kernels at both ends abort them."""
        self._connections.kill(map(self._host_link, links))

    def reset_connections(self, links: Iterable[Link]) -> None:
        """Let the receiving hosts' firewalls reset them."""
        self._connections.reset(map(self._host_link, links))

    def admit_connections(self, links: Iterable[Link]) -> None:
        """Take the firewalls' rules away."""
        self._connections.admit(map(self._host_link, links))

    def resets_connections(self, links: Iterable[Link]) -> frozenset[Link]:
        """Those of `links` over which an attempt to connect is refused."""
        chosen = {self._host_link(link): link for link in links}
        return frozenset(chosen[link] for link in self._connections.resets(chosen))

    # -- cables -------------------------------------------------------------------------------------------------

    def take_link_down(self, node: NodeId) -> None:
        """Pull the cable of the node's host."""
        self._cables.take_down(self._host_of(node))

    def bring_link_up(self, node: NodeId) -> None:
        """Plug the cable in again."""
        self._cables.bring_up(self._host_of(node))

    def is_link_down(self, node: NodeId) -> bool:
        """Has the host's link no carrier?"""
        return self._cables.is_down(self._host_of(node))

    # -- processes ----------------------------------------------------------------------------------------------

    def kill(self, node: NodeId) -> None:
        """SIGKILL; a frozen node is thawed first, since not every freezer lets processes be killed."""
        self.thaw(node)
        super().kill(node)

    def freeze(self, node: NodeId) -> str:
        """Freeze all processes of the node; says by which means."""
        # Ask for its role while it can still answer.
        self._cluster.status(node)
        return super().freeze(node)

    def _host_link(self, link: Link) -> tuple[str, str]:
        source, target = link
        return self._host_of(source), self._host_of(target)


class StoreFaultPort(AgentClocks, HostFaultPort):
    """The fault port of a store: clocks are struck in its processes' memory, or really, since it has no clock port."""

    def __init__(self, cluster: HostCluster, loop: asyncio.AbstractEventLoop) -> None:
        AgentClocks.__init__(self, cluster.agents, cluster.answers)
        HostFaultPort.__init__(self, cluster, loop)

    def restart(self, node: NodeId) -> None:
        """Start a dead member anew; when this returns all its processes have the clock that is in force."""
        super().restart(node)
        if self.capabilities & CLOCK_FAULTS:
            self._agents[node].ask("adopt")
