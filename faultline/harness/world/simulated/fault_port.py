"""The fault port of the simulated world: faults take effect at once, probes look at the thing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from faultline.harness.world.connection_faults import NoConnectionFaults
from faultline.harness.world.disk_faults import NoDiskFaults
from faultline.harness.world.faults import SIMULATED_CAPABILITIES, LinkQuality
from faultline.harness.world.ports import Link, NodeId
from faultline.harness.world.process_limits import NoProcessLimits
from faultline.harness.world.simulated.host import BuildNode, SimulatedHost
from faultline.harness.world.simulated.network import SimulatedNetwork

__all__ = ["SimulatedFaultPort"]


class SimulatedFaultPort(NoConnectionFaults, NoDiskFaults, NoProcessLimits):
    """Implements `faultline.harness.world.faults.FaultPort` on the hosts and links of one simulated world.

    Messages there have no size, no checksum and one ordered channel per link: rates, corruption, reordering and faults
    of connections are refused by name.
    """

    capabilities = frozenset(SIMULATED_CAPABILITIES)

    def __init__(self, hosts: Mapping[NodeId, SimulatedHost], network: SimulatedNetwork, build: BuildNode) -> None:
        self.nodes = tuple(hosts)
        self._hosts = hosts
        self._network = network
        self._build = build
        self._without_power: set[NodeId] = set()

    def leader(self) -> NodeId | None:
        leaders = [
            (status.generation, node_id)
            for node_id, host in self._hosts.items()
            if host.node is not None and (status := host.node.status()).role == "leader"
        ]
        return max(leaders)[1] if leaders else None

    def roles(self) -> dict[NodeId, str]:
        """The role that each node itself believes in, or `dead`."""
        return {
            node: host.node.status().role if host.node is not None else "dead" for node, host in self._hosts.items()
        }

    def cut(self, links: Iterable[Link]) -> None:
        for source, target in links:
            self._network.set_cut(source, target, True)

    def restore(self, links: Iterable[Link]) -> None:
        for source, target in links:
            self._network.set_cut(source, target, False)

    def is_cut(self, link: Link) -> bool:
        return self._network.is_cut(*link)

    def are_cut(self, links: Iterable[Link]) -> frozenset[Link]:
        return frozenset(link for link in links if self._network.is_cut(*link))

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        for source, target in links:
            self._network.set_quality(source, target, quality)

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        return {link: self._network.quality(*link) for link in links}

    def kill(self, node: NodeId) -> None:
        self._hosts[node].kill()

    def restart(self, node: NodeId) -> None:
        if self._hosts[node].node is None and node not in self._without_power:
            self._hosts[node].start(self._build)

    def is_alive(self, node: NodeId) -> bool:
        return self._hosts[node].node is not None

    def power_off(self, nodes: Iterable[NodeId]) -> None:
        """A kill of all of them in the same moment: a kill loses here what was not synced."""
        for node in nodes:
            self._without_power.add(node)
            self.kill(node)

    def power_on(self, node: NodeId) -> None:
        self._without_power.discard(node)
        self.restart(node)

    def has_power(self, node: NodeId) -> bool:
        return node not in self._without_power

    def pause(self, node: NodeId) -> None:
        self._hosts[node].pause()

    def resume(self, node: NodeId) -> None:
        self._hosts[node].resume()

    def is_paused(self, node: NodeId) -> bool:
        return self._hosts[node].paused

    def step_clock(self, node: NodeId, delta_us: int) -> None:
        self._hosts[node].clock.step(delta_us)

    def drift_clock(self, node: NodeId, rate_ppm: int) -> None:
        self._hosts[node].clock.drift(rate_ppm)

    def reset_clock(self, node: NodeId) -> None:
        self._hosts[node].clock.reset()

    def clock_offset_us(self, node: NodeId) -> int:
        return self._hosts[node].clock.offset_us()

    def clock_rate_ppm(self, node: NodeId) -> int:
        return self._hosts[node].clock.rate_ppm()
