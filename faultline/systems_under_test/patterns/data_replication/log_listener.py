"""Who stands behind a replicated log: the state machine that executes its entries, and what can replace entries."""

from __future__ import annotations

from typing import Protocol

from faultline.systems_under_test.patterns.data_replication.follower_handler import FollowerHandler
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogEntry

__all__ = ["LogListener", "no_snapshot"]


class LogListener(Protocol):
    """The state machine behind the log."""

    def apply(self, entry: LogEntry) -> None:
        """Execute a committed entry; called in the order of the log, once per entry and life of the server."""


def no_snapshot(follower: FollowerHandler) -> None:
    """What a log that nobody shortens answers to a follower that needs a snapshot: that cannot be."""
    raise AssertionError(f"{follower.id} needs entries that were discarded, and nobody said how to send a snapshot")
