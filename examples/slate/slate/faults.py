"""A fault set of Slate's own: the power fails for all nodes at once, shortly and often, or for the primary alone."""

from faultline import Package, Recipe

__all__ = ["POWER_CUTS"]

POWER_CUTS = Package(
    "power-cuts",
    "cuts the power of all nodes, or of the primary, for moments",
    (Recipe("kill", ("all",), long_share=0.0), Recipe("kill", ("leader",), long_share=0.2)),
    pace=0.5,
)
