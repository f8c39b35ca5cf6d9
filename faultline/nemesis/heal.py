"""Undoing everything, whatever was done: the end of every run's faults.

It does not ask what the nemeses injected: it puts every link, process and clock right and looks whether they are.
"""

from __future__ import annotations

from faultline.harness.world.faults import FaultPort
from faultline.harness.world.ports import Link
from faultline.nemesis.packet import HEALTHY

__all__ = ["heal_everything"]

_DRIFT_OF_THE_WEATHER_US = 50_000
"""Clocks may be this far off after a reset: ordinary drift, and the time a probe takes in the real world."""


def heal_everything(port: FaultPort) -> list[str]:
    """Restore links and their quality, resume and restart nodes, reset clocks. Returns what would not heal.

    Idempotent, and complete on its own: a fault that is still active may be forgotten after it.
    """
    links = [(one, other) for one in port.nodes for other in port.nodes if one != other]
    port.restore(links)
    port.degrade(links, HEALTHY)
    for node in port.nodes:
        if port.is_alive(node):
            port.resume(node)
        else:
            port.restart(node)
        port.reset_clock(node)
    return _problems(port, links)


def _problems(port: FaultPort, links: list[Link]) -> list[str]:
    problems = [
        f"the link {source}->{target} is still cut" for source, target in links if port.is_cut((source, target))
    ]
    problems += [
        f"the link {source}->{target} is still degraded"
        for source, target in links
        if port.quality((source, target)) != HEALTHY
    ]
    for node in port.nodes:
        if not port.is_alive(node):
            problems.append(f"{node} does not run")
        elif port.is_paused(node):
            problems.append(f"{node} is still paused")
        if "clock-step" in port.capabilities and abs(port.clock_offset_us(node)) > _DRIFT_OF_THE_WEATHER_US:
            problems.append(f"the wall clock of {node} is {port.clock_offset_us(node)} us off")
    return problems
