"""The fault port of the simulated world: faults take effect at once, and probes look at the thing itself.

Messages there have no size, no checksum and one ordered channel per link. So there are no actuators for rates,
corruption, reordering, connections and limits, and such faults are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faultline.harness.world.faults import Actuator, Actuators, FaultPort, LinkQuality, one_by_one, switch, switches
from faultline.harness.world.ports import Link, NodeId
from faultline.harness.world.simulated.host import BuildNode, SimulatedHost
from faultline.harness.world.simulated.latent_damage import Damage
from faultline.harness.world.simulated.network import SimulatedNetwork

__all__ = ["simulated_fault_port"]

Hosts = Mapping[NodeId, SimulatedHost]
Racks = Mapping[str, tuple[str, ...]]


def simulated_fault_port(hosts: Hosts, network: SimulatedNetwork, build: BuildNode, racks: Racks) -> FaultPort:
    """Return the fault port of one simulated world whose nodes stand in `racks`, if any."""
    quality = _quality(network)
    processes = _Processes(hosts, build)
    disk = one_by_one(
        lambda node, state: hosts[node].disk.strike(state),
        lambda node: hosts[node].disk.state,
        processes.mend_disk,
    )
    actuators: Actuators = {
        "cut": switch(
            lambda link: network.set_cut(*link, True),
            lambda link: network.is_cut(*link),
            lambda link: network.set_cut(*link, False),
        ),
        "loss": quality,
        "delay": quality,
        "duplicate": quality,
        "kill": switch(processes.kill, processes.is_dead, processes.restart),
        "pause": switch(
            lambda node: hosts[node].pause(), lambda node: hosts[node].paused, lambda node: hosts[node].resume()
        ),
        "power-off": switches(processes.power_off, lambda _: processes.without_power, processes.power_on),
        "disk-full": disk,
        "disk-read-only": disk,
        "disk-stall": disk,
        "fsync-fail": switch(
            lambda node: hosts[node].disk.fail_syncs(),
            lambda node: hosts[node].disk.syncs_fail,
            processes.allow_syncs,
        ),
        "disk-corrupt": processes.damaging("corrupt"),
        "disk-lost-write": processes.damaging("lost"),
        "disk-misdirect": processes.damaging("misdirected"),
        "disk-lying-fsync": switch(
            lambda node: hosts[node].disk.lie_about_syncs(),
            lambda node: hosts[node].disk.syncs_lie,
            processes.sync_in_truth,
        ),
        "clock-step": one_by_one(
            lambda node, delta_us: hosts[node].clock.step(delta_us),
            lambda node: hosts[node].clock.offset_us(),
            lambda node: hosts[node].clock.reset(),
        ),
        "clock-drift": one_by_one(
            lambda node, rate_ppm: hosts[node].clock.drift(rate_ppm),
            lambda node: hosts[node].clock.rate_ppm(),
            lambda node: hosts[node].clock.reset(),
        ),
    }
    return FaultPort(tuple(hosts), lambda: _leader(hosts), lambda: _roles(hosts), actuators, racks)


def _leader(hosts: Hosts) -> NodeId | None:
    leaders = [
        (status.generation, node_id)
        for node_id, host in hosts.items()
        if host.node is not None and (status := host.node.status()).role == "leader"
    ]
    return max(leaders)[1] if leaders else None


def _roles(hosts: Hosts) -> dict[NodeId, str]:
    return {node: host.node.status().role if host.node is not None else "dead" for node, host in hosts.items()}


def _quality(network: SimulatedNetwork) -> Actuator[Link, LinkQuality]:
    return one_by_one(
        lambda link, quality: network.set_quality(*link, quality),
        lambda link: network.quality(*link),
        lambda link: network.set_quality(*link, LinkQuality()),
    )


class _Processes:
    """The processes of all hosts, and the hosts that have no power to run one."""

    def __init__(self, hosts: Hosts, build: BuildNode) -> None:
        self._hosts = hosts
        self._build = build
        self.without_power: set[NodeId] = set()

    def kill(self, node: NodeId) -> None:
        self._hosts[node].kill()

    def restart(self, node: NodeId) -> None:
        if self.is_dead(node) and node not in self.without_power:
            self._hosts[node].start(self._build)

    def is_dead(self, node: NodeId) -> bool:
        return self._hosts[node].node is None

    def mend_disk(self, node: NodeId) -> None:
        """Bring the disk into order, and start the node when it has ended of it."""
        host = self._hosts[node]
        if host.disk.state != "well":
            host.mend_disk()
            self.restart(node)

    def allow_syncs(self, node: NodeId) -> None:
        """Let fsyncs succeed again, and start the node when it has ended of a failure."""
        host = self._hosts[node]
        if host.disk.syncs_fail:
            host.disk.allow_syncs()
            self.restart(node)

    def damaging(self, damage: Damage) -> Actuator[NodeId, bool]:
        """Return the actuator that damages stored data."""
        return switch(
            lambda node: self._hosts[node].damage_disk(damage),
            lambda node: bool(self._hosts[node].disk.damage),
            self.restore_data,
        )

    def restore_data(self, node: NodeId) -> None:
        """Put back on the disk what was written, and start the node when it has ended of the damage."""
        host = self._hosts[node]
        if host.disk.damage:
            host.disk.damage.mend()
            if host.ended_by_itself:
                self.restart(node)

    def sync_in_truth(self, node: NodeId) -> None:
        """Let fsyncs sync again, and make durable what they answered for."""
        self._hosts[node].disk.sync_in_truth()

    def power_off(self, nodes: Sequence[NodeId]) -> None:
        """End all `nodes` in the same moment, and lose what was not synced."""
        for node in nodes:
            self.without_power.add(node)
            self._hosts[node].kill(power_off=True)

    def power_on(self, nodes: Sequence[NodeId]) -> None:
        for node in nodes:
            # A host that has power already may carry a node that was killed; starting that is not for this fault.
            if node in self.without_power:
                self.without_power.discard(node)
                self.restart(node)
