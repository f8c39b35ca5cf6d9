"""Limits on processes: frozen, short of processor time, short of memory. Only an operating system can set them.

A frozen process is stopped as a paused one is, but all processes of a node at the same moment and without their being
able to tell. A squeezed one goes on, badly: it gets its share of a processor and then has to wait for the next tenth of
a second, or it may take no more memory, and is killed by the kernel when it cannot do without.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.ports import NodeId

__all__ = ["NoProcessLimits", "ProcessLimits"]


class ProcessLimits(Protocol):
    """The part of the fault port that limits processes. Actions are idempotent."""

    def freeze(self, node: NodeId) -> str:
        """Freeze all processes of the node; says by which means."""

    def thaw(self, node: NodeId) -> None:
        """Let a frozen node go on."""

    def is_frozen(self, node: NodeId) -> bool:
        """Probe: does none of the node's processes run?"""

    def squeeze_cpu(self, node: NodeId, share: float) -> None:
        """Let the node have `share` of one processor."""

    def cpu_share(self, node: NodeId) -> float:
        """Probe: the share in force, 0 for no limit."""

    def squeeze_memory(self, node: NodeId, headroom_bytes: int) -> None:
        """Let the node take no more than `headroom_bytes` of memory beyond what it has."""

    def memory_limit(self, node: NodeId) -> int:
        """Probe: the limit in force in bytes, 0 for none."""

    def lift_squeezes(self, node: NodeId) -> None:
        """Let the node have all it can get."""


class NoProcessLimits:
    """For worlds that set no limits: refuses by name."""

    def freeze(self, node: NodeId) -> str:
        """Refuse."""
        _refuse("No process can be frozen in this world")

    def thaw(self, node: NodeId) -> None:
        """None is ever frozen."""

    def is_frozen(self, node: NodeId) -> bool:
        """None is ever frozen."""
        return False

    def squeeze_cpu(self, node: NodeId, share: float) -> None:
        """Refuse."""
        _refuse("Processor time has no limits in this world")

    def cpu_share(self, node: NodeId) -> float:
        """There are no limits."""
        return 0.0

    def squeeze_memory(self, node: NodeId, headroom_bytes: int) -> None:
        """Refuse."""
        _refuse("Memory has no limits in this world")

    def memory_limit(self, node: NodeId) -> int:
        """There are no limits."""
        return 0

    def lift_squeezes(self, node: NodeId) -> None:
        """There are no limits."""


def _refuse(what: str) -> NoReturn:
    raise HarnessError(f"{what}.", "Use --hosts for limits on processes, or pause instead of freeze.")
