"""The parts of `consistent-core`: what its servers are made of, with their leases, watches and follower reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from faultline.systems_under_test.reference.consistent_core.follower_reads.extension import ReadParts
from faultline.systems_under_test.reference.leases_and_watches.extension import ServiceParts
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["CoreParts"]


@dataclass(frozen=True, slots=True)
class CoreParts(Parts):
    """The classes of a Raft server, of its leases and watches, and of its reads while it follows."""

    services: ServiceParts = field(default_factory=ServiceParts)
    reads: ReadParts = field(default_factory=ReadParts)
