"""The protocols by which a system plugs in. They live in `faultline.harness.system`, as the worlds build on them."""

from faultline.harness.feature import Feature
from faultline.harness.system import NodeSystem, OptionDescription, PlantedBug, PortClient, ServesByOption

__all__ = ["Feature", "NodeSystem", "OptionDescription", "PlantedBug", "PortClient", "ServesByOption"]
