"""The protocols by which a system plugs in; they live in `faultline.harness.system`, because the worlds build on them."""

from faultline.harness.system import Mutant, NodeSystem, OptionDescription, PortClient

__all__ = ["Mutant", "NodeSystem", "OptionDescription", "PortClient"]
