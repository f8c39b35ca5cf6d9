"""The parts of `coordination-service`: the classes of its Raft servers, and of their leases and watches."""

from __future__ import annotations

from dataclasses import dataclass, field

from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["CoordinationParts"]


@dataclass(frozen=True, slots=True)
class CoordinationParts(Parts):
    """The classes of a Raft server, and of its leases and watches."""

    services: ServiceParts = field(default_factory=ServiceParts)
