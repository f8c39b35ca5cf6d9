"""Undoing everything, whatever was done: the end of every run's faults.

It does not ask what the nemeses injected: it puts every link, disk, process and clock right and looks whether they are.
"""

from __future__ import annotations

from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import Link, NodeId
from faultline.nemesis.packet import HEALTHY

__all__ = ["heal_everything"]

_QUALITIES = frozenset({"loss", "delay", "duplicate", "reorder", "corrupt", "rate"})
_SQUEEZES = frozenset({"cpu-squeeze", "memory-squeeze"})
_DISKS = frozenset({"disk-full", "disk-read-only", "disk-stall"})
_CLOCKS = frozenset({"clock-step", "clock-drift"})
_DRIFT_OF_THE_WEATHER_US = 50_000
"""Clocks may be this far off after a reset: ordinary drift, and the time a probe takes in the real world."""


def heal_everything(port: FaultPort) -> list[str]:
    """Restore links, their quality, power, disks, processes and clocks. Returns what would not heal.

    Idempotent, and complete on its own: a fault that is still active may be forgotten after it. What the world is not
    capable of breaking is left alone.
    """
    links = [(one, other) for one in port.nodes for other in port.nodes if one != other]
    unreachable = [*_heal_power(port), *_heal_link_down(port)]
    broken = [*unreachable, *_heal_links(port, links), *_heal_connections(port, links)]
    return [*broken, *(problem for node in port.nodes for problem in _heal_node(port, node))]


def _heal_links(port: FaultPort, links: list[Link]) -> list[str]:
    problems = []
    if "cut" in port.capabilities:
        port.restore(links)
        still = port.are_cut(links)
        problems += [f"the link {link[0]}->{link[1]} is still cut" for link in links if link in still]
    if port.capabilities & _QUALITIES:
        port.degrade(links, HEALTHY)
        problems += [
            f"the link {source}->{target} is still degraded: {quality}"
            for (source, target), quality in port.qualities(links).items()
            if quality != HEALTHY
        ]
    return problems


def _heal_connections(port: FaultPort, links: list[Link]) -> list[str]:
    problems = []
    if "connection-reset" in port.capabilities:
        port.admit_connections(links)
        still = port.resets_connections(links)
        problems += [f"connections over {source}->{target} are still reset" for source, target in sorted(still)]
    return problems


def _heal_link_down(port: FaultPort) -> list[str]:
    """First of all: what is looked at later must have a link to be reached over."""
    if "link-down" not in port.capabilities:
        return []
    for node in port.nodes:
        port.bring_link_up(node)
    return [f"the link of {node} is still down" for node in port.nodes if port.is_link_down(node)]


def _heal_limits(port: FaultPort, node: NodeId) -> list[str]:
    problems = []
    if "freeze" in port.capabilities:
        port.thaw(node)
        if port.is_frozen(node):
            problems.append(f"{node} is still frozen")
    if port.capabilities & _SQUEEZES:
        port.lift_squeezes(node)
        if port.cpu_share(node) or port.memory_limit(node):
            problems.append(f"{node} is still squeezed")
    return problems


def _heal_node(port: FaultPort, node: NodeId) -> list[str]:
    problems = [*_heal_disk(port, node), *_heal_limits(port, node)]
    if "pause" in port.capabilities and port.is_alive(node):
        port.resume(node)
        if port.is_paused(node):
            problems.append(f"{node} is still paused")
    if "kill" in port.capabilities:
        port.restart(node)
        if not port.is_alive(node):
            problems.append(f"{node} does not run")
    if port.capabilities & _CLOCKS:
        port.reset_clock(node)
        offset_us = port.clock_offset_us(node)
        if abs(offset_us) > _DRIFT_OF_THE_WEATHER_US:
            problems.append(f"the wall clock of {node} is {offset_us} us off")
    return problems


def _heal_power(port: FaultPort) -> list[str]:
    """Before everything else: nothing can be looked at on a host that is off."""
    if "power-off" not in port.capabilities:
        return []
    for node in port.nodes:
        if not port.has_power(node):
            port.power_on(node)
    return [f"the host of {node} has no power" for node in port.nodes if not port.has_power(node)]


def _heal_disk(port: FaultPort, node: NodeId) -> list[str]:
    """Before the processes: none that hangs in a write can be helped, and none starts from a disk that takes none."""
    problems = []
    if "fsync-fail" in port.capabilities:
        port.allow_syncs(node)
        if port.syncs_fail(node):
            problems.append(f"fsync still fails on {node}")
    if port.capabilities & _DISKS:
        port.mend_disk(node)
        state = port.disk_state(node)
        if state != "well":
            problems.append(f"the disk of {node} is still {state}")
    return problems
