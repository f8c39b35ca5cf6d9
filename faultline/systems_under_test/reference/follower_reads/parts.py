"""The parts of `follower-reads`: the classes of its Raft servers, of their reads while they follow, and of closed
timestamps."""

from __future__ import annotations

from dataclasses import dataclass, field

from faultline.systems_under_test.reference.follower_reads.closed_timestamps import ClosingParts
from faultline.systems_under_test.reference.follower_reads.extension import ReadParts
from faultline.systems_under_test.reference.raft.parts import Parts

__all__ = ["FollowerReadParts"]


@dataclass(frozen=True, slots=True)
class FollowerReadParts(Parts):
    """The classes of a Raft server, of its reads while it follows, and of closed timestamps."""

    reads: ReadParts = field(default_factory=ReadParts)
    closing: ClosingParts = field(default_factory=ClosingParts)
