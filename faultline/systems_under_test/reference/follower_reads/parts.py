"""The parts of `follower-reads`: the classes of its Raft servers, and of their reads while they follow."""

from __future__ import annotations

from dataclasses import dataclass, field

from faultline.systems_under_test.reference.follower_reads.extension import ReadParts
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["FollowerReadParts"]


@dataclass(frozen=True, slots=True)
class FollowerReadParts(Parts):
    """The classes of a Raft server, and of its reads while it follows."""

    reads: ReadParts = field(default_factory=ReadParts)
