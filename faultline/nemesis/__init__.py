"""Nemeses: the faults that strike a cluster while clients use it, and packages that plan them.

Most kinds are records of one shape, a `StandardNemesis` of the module `standard`. There is one module per family:
`partition` cuts links, `packet` spoils them, `connection` breaks what runs over them, `process` kills, pauses and
limits processes and takes power from hosts, `disk` takes disks away, `clock` moves clocks. `targets` resolves the nodes
that a fault hits, `packages` draws when faults fall, `catalogue` names them all, `data_centre` those of racks, `heal`
undoes all.
"""

from faultline.nemesis.catalogue import NEMESES, PACKAGES
from faultline.nemesis.heal import heal_everything
from faultline.nemesis.packages import Package, Recipe, combined
from faultline.nemesis.standard import StandardNemesis, struck

__all__ = [
    "NEMESES",
    "PACKAGES",
    "Package",
    "Recipe",
    "StandardNemesis",
    "combined",
    "heal_everything",
    "struck",
]
