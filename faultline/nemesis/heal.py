"""The end of every run's faults: everything is undone, whatever was done.

The heal does not ask what the nemeses injected: it puts every link, disk, process and clock right and looks whether
they are. It goes by actuators in an order in which each repair finds what it needs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from faultline.harness.world.faults import Actuator, FaultPort, LinkQuality
from faultline.nemesis.standard import name_of

__all__ = ["heal_everything"]

_DRIFT_OF_THE_WEATHER_US = 50_000
"""Clocks may be this far off after a reset: ordinary drift, and the time a probe takes in the real world."""


class _Repair(NamedTuple):
    """Capabilities that are mended together, and the complaint about a `{target}` that does not heal."""

    capabilities: tuple[str, ...]
    complaint: str
    tolerance: int = 0


_HOSTS = (
    # Nothing can be looked at on a host that is off, or that has no link to be reached over.
    _Repair(("power-off",), "the host of {target} has no power"),
    _Repair(("link-down",), "the link of {target} is still down"),
)
_LINKS = (
    _Repair(("cut",), "the link {target} is still cut"),
    _Repair(
        ("loss", "delay", "duplicate", "reorder", "corrupt", "rate"), "the link {target} is still degraded: {seen}"
    ),
    _Repair(("connection-reset",), "connections over {target} are still reset"),
)
_NODES = (
    # Disks before processes: none that hangs in a write can be helped, and none starts from a disk that takes none.
    _Repair(("fsync-fail",), "fsync still fails on {target}"),
    _Repair(("disk-full", "disk-read-only", "disk-stall"), "the disk of {target} is still {seen}"),
    _Repair(("disk-lying-fsync",), "fsync still lies on {target}"),
    _Repair(("disk-corrupt", "disk-lost-write", "disk-misdirect"), "data on the disk of {target} are still damaged"),
    _Repair(("freeze",), "{target} is still frozen"),
    _Repair(("cpu-squeeze", "memory-squeeze"), "{target} is still squeezed"),
    _Repair(("pause",), "{target} is still paused"),
    _Repair(("kill",), "{target} does not run"),
    _Repair(("clock-step",), "the wall clock of {target} is {seen} us off", _DRIFT_OF_THE_WEATHER_US),
    _Repair(("clock-drift",), "the clock of {target} still drifts by {seen} ppm"),
)


def heal_everything(port: FaultPort) -> list[str]:
    """Restore links, their quality, power, disks, processes and clocks. Returns what would not heal.

    Idempotent, and complete on its own: a fault that is still active may be forgotten after it. What the world is not
    capable of breaking is left alone.
    """
    links = [(one, other) for one in port.nodes for other in port.nodes if one != other]
    problems = [problem for repair in _HOSTS for problem in _carry_out(repair, port, port.nodes)]
    problems += [problem for repair in _LINKS for problem in _carry_out(repair, port, links)]
    # Node by node: a node that is put right may be needed by the next.
    return problems + [
        problem for node in port.nodes for repair in _NODES for problem in _carry_out(repair, port, [node])
    ]


def _carry_out(repair: _Repair, port: FaultPort, targets: Sequence[Hashable]) -> list[str]:
    named = [capability for capability in repair.capabilities if capability in port.capabilities]
    actuators: list[Actuator[Hashable, object]] = [port.actuator(capability) for capability in named]
    # Several capabilities may share an actuator; its targets are mended and probed once.
    for mend in dict.fromkeys(actuator.mend for actuator in actuators):
        mend(targets)
    problems: dict[str, None] = {}
    for probe in dict.fromkeys(actuator.probe for actuator in actuators):
        for target, seen in probe(targets).items():
            if not _is_well(seen, repair.tolerance):
                problems[repair.complaint.format(target=name_of(target), seen=seen)] = None
    return list(problems)


def _is_well(seen: object, tolerance: int) -> bool:
    if isinstance(seen, int | float):
        return abs(seen) <= tolerance
    return seen in ("well", LinkQuality())
