"""Nemeses: what is done to a cluster while clients use it, and packages that plan it.

One module per family: `partition` cuts links, `packet` spoils them, `connection` breaks what runs over them,
`process` kills and pauses, `limits` freezes and squeezes, `disk` takes power and disks away, `clock` moves clocks.
`targets` finds out whom a fault hits, `packages` when faults fall, `catalogue` names them all, `heal` undoes all.
"""

from faultline.nemesis.catalogue import NEMESES, PACKAGES
from faultline.nemesis.heal import heal_everything
from faultline.nemesis.packages import Package, Recipe, combined

__all__ = ["NEMESES", "PACKAGES", "Package", "Recipe", "combined", "heal_everything"]
