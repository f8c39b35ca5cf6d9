"""The fault port of runs on hosts: processes and clocks as everywhere, links as the hosts' network allows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from faultline.harness.errors import HarnessError
from faultline.harness.world.connection_faults import NoConnectionFaults
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.ports import Link
from faultline.harness.world.real.fault_port import ProcessFaultPort
from faultline.hosts.cluster import HostCluster

__all__ = ["HostFaultPort"]


class HostFaultPort(NoConnectionFaults, ProcessFaultPort):
    """Implements `faultline.harness.world.faults.FaultPort`; its `capabilities` are what this cluster's hosts can do.

    Bad links (delay, loss, duplicates) are not among them: `degrade` refuses by name.
    """

    def __init__(self, cluster: HostCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cluster, loop)
        self.capabilities = cluster.capabilities()
        self._links = cluster.host_set.links
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

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        """Refuse, unless the links are to be as they are."""
        if quality != LinkQuality():
            raise HarnessError("Links between hosts cannot be degraded.", "Use --world local for packet faults.")

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        """Links are as they are."""
        return dict.fromkeys(links, LinkQuality())

    def _host_link(self, link: Link) -> tuple[str, str]:
        source, target = link
        return self._host_of(source), self._host_of(target)
