"""The packages that strike what nodes have stored: losses of power, disks that refuse, and disks that damage data."""

from __future__ import annotations

from faultline.nemesis.packages import Package, Recipe

__all__ = ["STORAGE_PACKAGES"]

_POWER = Package(
    "power",
    "takes power from hosts, so that what was not synced is lost (on hosts, and in the simulated world)",
    (
        Recipe("power-off", ("leader",)),
        Recipe("power-off", ("one", "follower")),
        Recipe("power-off", ("minority",)),
        Recipe("power-off", ("majority",)),
        Recipe("power-off", ("all",), long_share=0.1),
    ),
)

_BLACKOUT = Package(
    "blackout",
    "takes power from all or most hosts at once, again and again (on hosts, and in the simulated world)",
    (Recipe("power-off", ("all",), long_share=0.0), Recipe("power-off", ("majority",), long_share=0.1)),
)

# What a crash takes was written in the last moments before it, so that it takes many crashes to meet a mistake there. A
# kill leaves in the cache what the next loss of power takes.
_POWER_CYCLES = Package(
    "power-cycles",
    "takes power from all or most hosts for moments, over and over, and kills processes between (on hosts, and in the"
    " simulated world)",
    (
        Recipe("power-off", ("all",), long_share=0.0),
        Recipe("power-off", ("majority",), long_share=0.0),
        Recipe("power-off", ("one", "leader"), long_share=0.0),
        Recipe("kill", ("all", "majority"), long_share=0.0),
        Recipe("kill", ("one", "leader"), long_share=0.0),
    ),
    pace=0.3,
)

_DISK = Package(
    "disk",
    "fills disks up, turns them read-only and lets them stall (on hosts of namespaces, and in the simulated world)",
    (
        Recipe("disk-full", ("one", "leader", "minority")),
        Recipe("disk-read-only", ("one", "leader", "minority")),
        Recipe("disk-stall", ("leader",), long_share=0.7),
        Recipe("disk-stall", ("one", "minority", "majority")),
    ),
)

_FSYNC = Package(
    "fsync",
    "lets fsync fail while everything else of the disk works (on hosts, and in the simulated world)",
    (
        Recipe("fsync-fail", ("leader",)),
        Recipe("fsync-fail", ("one", "follower")),
        Recipe("fsync-fail", ("minority", "majority")),
        Recipe("fsync-fail", ("all",), long_share=0.1),
    ),
)

_DAMAGE_TARGETS = ("one", "leader", "minority")
# Damage is met by a process that starts, so each of these sets ends processes as well.
_RESTARTED = (
    Recipe("kill", ("all",), long_share=0.0),
    Recipe("kill", ("majority", "one"), long_share=0.0),
    Recipe("kill", ("one", "leader"), long_share=0.7),
)


def _damaging(kind: str) -> tuple[Recipe, ...]:
    """Return two recipes of one kind, so that most seeds have it."""
    return (
        Recipe(kind, _DAMAGE_TARGETS, long_share=1.0, nodes_min=3),
        Recipe(kind, ("minority",), long_share=1.0, nodes_min=3),
    )


_CORRUPTION = Package(
    "corruption",
    "changes stored bytes on the disks of a minority, and kills nodes for moments (in the simulated world)",
    (*_damaging("disk-corrupt"), *_RESTARTED),
    pace=0.3,
)

_LOST_WRITES = Package(
    "lost-writes",
    "lets writes of a minority vanish or land elsewhere, and kills nodes for moments (in the simulated world)",
    (*_damaging("disk-lost-write"), *_damaging("disk-misdirect"), *_RESTARTED),
    pace=0.3,
)

_LYING_FSYNC = Package(
    "lying-fsync",
    "lets fsync lie on a minority, and takes power from nodes for moments (in the simulated world)",
    (
        *_damaging("disk-lying-fsync"),
        Recipe("power-off", ("one", "leader", "minority"), long_share=0.0),
        Recipe("power-off", ("all",), long_share=0.0),
    ),
    pace=0.3,
)

STORAGE_PACKAGES = (_POWER, _BLACKOUT, _POWER_CYCLES, _DISK, _FSYNC, _CORRUPTION, _LOST_WRITES, _LYING_FSYNC)
"""Every package of this kind."""
