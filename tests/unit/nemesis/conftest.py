"""A fault port that remembers, so that nemeses can be tried without a world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from faultline.harness.racks import RACKS_USUAL, racks_of
from faultline.harness.world.faults import (
    ALL_CAPABILITIES,
    Actuator,
    Actuators,
    DiskState,
    FaultPort,
    LinkQuality,
    limited_to,
    one_by_one,
    switch,
    switches,
)
from faultline.harness.world.ports import Link, NodeId


class FakePort:
    """Stands in for a `FaultPort`, on plain sets. `deaf` names actions that do nothing, as a broken world's would."""

    actuator = FaultPort.actuator
    nodes_up = FaultPort.nodes_up

    def __init__(self, nodes: tuple[str, ...] = ("athens", "byzantium", "cyrene", "delphi", "ephesus")) -> None:
        self.nodes = tuple(map(NodeId, nodes))
        self.racks = racks_of(nodes, min(RACKS_USUAL, len(nodes)))
        self.capabilities = frozenset(ALL_CAPABILITIES)
        self.leads: NodeId | None = NodeId(nodes[1]) if len(nodes) > 1 else NodeId(nodes[0])
        self.deaf: set[str] = set()
        self.cuts: set[Link] = set()
        self.degraded: dict[Link, LinkQuality] = {}
        self.killed = 0
        self.resets: set[Link] = set()
        self.down: set[NodeId] = set()
        self.dead: set[NodeId] = set()
        self.paused: set[NodeId] = set()
        self.without_power: set[NodeId] = set()
        self.failing_syncs: set[NodeId] = set()
        self.damaged: set[NodeId] = set()
        self.lying: set[NodeId] = set()
        self.disks: dict[NodeId, DiskState] = {}
        self.offsets_us: dict[NodeId, int] = {}
        self.rates_ppm: dict[NodeId, int] = {}
        self.frozen: set[NodeId] = set()
        self.shares: dict[NodeId, float] = {}
        self.limits: dict[NodeId, int] = {}

    def is_healthy(self) -> bool:
        """Return whether nothing is broken."""
        broken = (
            self.cuts,
            self.degraded,
            self.resets,
            self.down,
            self.dead,
            self.paused,
            self.without_power,
            self.disks,
            self.damaged,
            self.lying,
            self.failing_syncs,
            self.offsets_us,
            self.rates_ppm,
            self.frozen,
            self.shares,
            self.limits,
        )
        return not any(broken)

    @property
    def actuators(self) -> Actuators:
        """All actuators, of the methods as they are now: a test may have replaced one."""
        quality = Actuator(self.degrade, self.qualities, lambda links: self.degrade(links, LinkQuality()))
        disk = one_by_one(self.strike_disk, self.disk_state, self.mend_disk)
        damage = switch(self.damage_disk, lambda node: node in self.damaged, self.damaged.discard)
        return limited_to(
            self.capabilities,
            {
                "cut": switches(self.cut, self.are_cut, self.restore),
                "loss": quality,
                "delay": quality,
                "duplicate": quality,
                "reorder": quality,
                "corrupt": quality,
                "rate": quality,
                "connection-kill": Actuator(
                    lambda links, _: self.kill_connections(links),
                    lambda links: {link: self.connections(link) for link in links},
                    lambda _: None,
                ),
                "connection-reset": switches(self.reset_connections, self.resets_connections, self.admit_connections),
                "link-down": switch(self.take_link_down, lambda node: node in self.down, self.bring_link_up),
                "kill": switch(self.kill, lambda node: node in self.dead, self.restart),
                "pause": switch(self.pause, lambda node: node in self.paused, self.resume),
                "freeze": switch(self.freeze, lambda node: node in self.frozen, self.thaw),
                "power-off": switches(lambda nodes: self.power_off(nodes), lambda _: self.without_power, self.boot),
                "disk-full": disk,
                "disk-read-only": disk,
                "disk-stall": disk,
                "fsync-fail": switch(self.fail_syncs, lambda node: node in self.failing_syncs, self.allow_syncs),
                "disk-corrupt": damage,
                "disk-lost-write": damage,
                "disk-misdirect": damage,
                "disk-lying-fsync": switch(self.let_syncs_lie, lambda node: node in self.lying, self.lying.discard),
                "cpu-squeeze": one_by_one(
                    self.squeeze_cpu, lambda node: self.shares.get(node, 0.0), self.lift_squeezes
                ),
                "memory-squeeze": one_by_one(
                    self.squeeze_memory, lambda node: self.limits.get(node, 0), self.lift_and_restart
                ),
                "clock-step": one_by_one(self.step_clock, self.clock_offset_us, self.reset_clock),
                "clock-drift": one_by_one(self.drift_clock, lambda node: self.rates_ppm.get(node, 0), self.reset_clock),
            },
        )

    def damage_disk(self, node: NodeId) -> None:
        if "damage_disk" not in self.deaf:
            self.damaged.add(node)

    def let_syncs_lie(self, node: NodeId) -> None:
        if "let_syncs_lie" not in self.deaf:
            self.lying.add(node)

    def leader(self) -> NodeId | None:
        return self.leads

    def roles(self) -> dict[NodeId, str]:
        return {node: "leader" if node == self.leads else "follower" for node in self.nodes}

    def cut(self, links: Iterable[Link]) -> None:
        if "cut" not in self.deaf:
            self.cuts |= set(links)

    def restore(self, links: Iterable[Link]) -> None:
        if "restore" not in self.deaf:
            self.cuts -= set(links)

    def are_cut(self, links: Iterable[Link]) -> frozenset[Link]:
        return frozenset(links) & self.cuts

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        if "degrade" in self.deaf:
            return
        for link in links:
            self.degraded.pop(link, None)
            if quality != LinkQuality():
                self.degraded[link] = quality

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        return {link: self.degraded.get(link, LinkQuality()) for link in links}

    def connections(self, link: Link) -> frozenset[str]:
        return frozenset({f"{link[0]}-{link[1]}-{self.killed}"})

    def kill_connections(self, links: Iterable[Link]) -> None:
        if "kill_connections" not in self.deaf:
            self.killed += 1

    def reset_connections(self, links: Iterable[Link]) -> None:
        if "reset_connections" not in self.deaf:
            self.resets |= set(links)

    def admit_connections(self, links: Iterable[Link]) -> None:
        if "admit_connections" not in self.deaf:
            self.resets -= set(links)

    def resets_connections(self, links: Iterable[Link]) -> frozenset[Link]:
        return frozenset(links) & self.resets

    def take_link_down(self, node: NodeId) -> None:
        if "take_link_down" not in self.deaf:
            self.down.add(node)

    def bring_link_up(self, node: NodeId) -> None:
        if "bring_link_up" not in self.deaf:
            self.down.discard(node)

    def power_off(self, nodes: Iterable[NodeId]) -> None:
        if "power_off" not in self.deaf:
            self.without_power |= set(nodes)
            self.dead |= set(nodes)

    def power_on(self, node: NodeId) -> None:
        if "power_on" not in self.deaf:
            self.without_power.discard(node)
            self.restart(node)

    def boot(self, nodes: Sequence[NodeId]) -> None:
        for node in nodes:
            if node in self.without_power:
                self.power_on(node)

    def strike_disk(self, node: NodeId, state: DiskState) -> None:
        if "strike_disk" not in self.deaf:
            self.disks[node] = state

    def mend_disk(self, node: NodeId) -> None:
        if "mend_disk" not in self.deaf:
            self.disks.pop(node, None)

    def disk_state(self, node: NodeId) -> DiskState:
        assert node not in self.without_power, "a host without power cannot be asked"
        return self.disks.get(node, "well")

    def fail_syncs(self, node: NodeId) -> None:
        if "fail_syncs" not in self.deaf:
            self.failing_syncs.add(node)

    def allow_syncs(self, node: NodeId) -> None:
        if "allow_syncs" not in self.deaf:
            self.failing_syncs.discard(node)

    def kill(self, node: NodeId) -> None:
        if "kill" not in self.deaf:
            self.dead.add(node)

    def restart(self, node: NodeId) -> None:
        if "restart" not in self.deaf and node not in self.without_power:
            self.dead.discard(node)

    def pause(self, node: NodeId) -> None:
        if "pause" not in self.deaf:
            self.paused.add(node)

    def resume(self, node: NodeId) -> None:
        if "resume" not in self.deaf:
            self.paused.discard(node)

    def freeze(self, node: NodeId) -> str:
        if "freeze" not in self.deaf:
            self.frozen.add(node)
        return "a test"

    def thaw(self, node: NodeId) -> None:
        if "thaw" not in self.deaf:
            self.frozen.discard(node)

    def squeeze_cpu(self, node: NodeId, share: float) -> None:
        if "squeeze_cpu" not in self.deaf:
            self.shares[node] = share

    def squeeze_memory(self, node: NodeId, headroom_bytes: int) -> None:
        if "squeeze_memory" not in self.deaf:
            self.limits[node] = headroom_bytes

    def lift_squeezes(self, node: NodeId) -> None:
        if "lift_squeezes" not in self.deaf:
            self.shares.pop(node, None)
            self.limits.pop(node, None)

    def lift_and_restart(self, node: NodeId) -> None:
        self.lift_squeezes(node)
        self.restart(node)

    def step_clock(self, node: NodeId, delta_us: int) -> None:
        if "step_clock" not in self.deaf:
            self.offsets_us[node] = self.offsets_us.get(node, 0) + delta_us

    def drift_clock(self, node: NodeId, rate_ppm: int) -> None:
        if "drift_clock" not in self.deaf:
            self.rates_ppm[node] = rate_ppm

    def reset_clock(self, node: NodeId) -> None:
        if "reset_clock" not in self.deaf:
            self.offsets_us.pop(node, None)
            self.rates_ppm.pop(node, None)

    def clock_offset_us(self, node: NodeId) -> int:
        return self.offsets_us.get(node, 0)


@pytest.fixture
def port() -> FakePort:
    """Five healthy nodes, led by `byzantium`."""
    return FakePort()


@pytest.fixture
def lone_port() -> FakePort:
    """A cluster of one."""
    return FakePort(("athens",))
