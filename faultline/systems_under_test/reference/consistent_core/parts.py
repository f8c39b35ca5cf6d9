"""The parts of `consistent-core`: the classes of its Raft servers, and of the wire between them and their clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from faultline.systems_under_test.reference.consistent_core.wire_line import WireParts
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["CoreParts"]


@dataclass(frozen=True, slots=True)
class CoreParts(Parts):
    """The classes of a Raft server, and of its wire."""

    wire: WireParts = field(default_factory=WireParts)
