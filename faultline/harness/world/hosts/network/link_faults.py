"""Faults of links, connections and cables between nodes, by the means of their hosts' network."""

from __future__ import annotations

from collections.abc import Sequence

from faultline.harness.world.faults import Actuator, Actuators, LinkQuality, switch, switches
from faultline.harness.world.hosts.cluster import HostCluster
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.ports import Link

__all__ = ["link_actuators"]


def link_actuators(cluster: HostCluster) -> Actuators:
    """Return the actuators of the network of `cluster`, also those that its hosts cannot carry out."""
    links = _HostLinks(cluster)
    hosts, host_of = cluster.host_set, cluster.host_of
    quality = Actuator(links.degrade, links.qualities, lambda chosen: links.degrade(chosen, LinkQuality()))
    return {
        "cut": switches(
            lambda chosen: hosts.links.cut(map(links.on_hosts, chosen)),
            links.that_are_cut,
            lambda chosen: hosts.links.restore(map(links.on_hosts, chosen)),
        ),
        "loss": quality,
        "delay": quality,
        "duplicate": quality,
        "reorder": quality,
        "corrupt": quality,
        "rate": quality,
        "connection-kill": Actuator(
            lambda chosen, _: hosts.connections.kill(map(links.on_hosts, chosen)),
            lambda chosen: {link: hosts.connections.open_on(links.on_hosts(link)) for link in chosen},
            lambda _: None,
        ),
        "connection-reset": switches(
            lambda chosen: hosts.connections.reset(map(links.on_hosts, chosen)),
            links.that_reset,
            lambda chosen: hosts.connections.admit(map(links.on_hosts, chosen)),
        ),
        "link-down": switch(
            lambda node: hosts.cables.take_down(host_of(node)),
            lambda node: hosts.cables.is_down(host_of(node)),
            lambda node: hosts.cables.bring_up(host_of(node)),
        ),
    }


class _HostLinks:
    """The links between nodes, told as links between the hosts that carry them."""

    def __init__(self, cluster: HostCluster) -> None:
        self._hosts = cluster.host_set
        self._host_of = cluster.host_of

    def on_hosts(self, link: Link) -> HostLink:
        """Return `link` as a pair of hosts."""
        source, target = link
        return self._host_of(source), self._host_of(target)

    def that_are_cut(self, links: Sequence[Link]) -> frozenset[Link]:
        """Return those of `links` over which a probe does not pass."""
        chosen = {self.on_hosts(link): link for link in links}
        return frozenset(chosen[link] for link in self._hosts.links.are_cut(chosen))

    def degrade(self, links: Sequence[Link], quality: LinkQuality) -> None:
        """Give `links` the `quality`, all at once."""
        self._hosts.qualities.degrade(map(self.on_hosts, links), quality)

    def qualities(self, links: Sequence[Link]) -> dict[Link, LinkQuality]:
        """Return the quality of each link as far as the hosts' means can tell it."""
        chosen = {self.on_hosts(link): link for link in links}
        return {chosen[link]: quality for link, quality in self._hosts.qualities.qualities(chosen).items()}

    def that_reset(self, links: Sequence[Link]) -> frozenset[Link]:
        """Return those of `links` over which an attempt to connect is refused."""
        chosen = {self.on_hosts(link): link for link in links}
        return frozenset(chosen[link] for link in self._hosts.connections.resets(chosen))
