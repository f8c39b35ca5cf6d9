"""The options of members: the watch over silent ones, joins and merges."""

from __future__ import annotations

from typing import Annotated

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings

__all__ = ["MemberSettings"]


class MemberSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    seeds: Annotated[int, Number(2), "the number of members that admit others; each node knows their addresses"]
    heartbeats: Annotated[
        str,
        Choice(("all", "ring")),
        "the members that each node watches: all, or the two before it in a ring, with reports to all",
    ]
    heartbeat_interval_us: Annotated[int, Milliseconds(50), "the time between two heartbeats"]
    failure_timeout_us: Annotated[int, Milliseconds(300), "the silence after which a member counts as failed"]
    join_timeout_us: Annotated[int, Milliseconds(100), "the time that a joiner waits for an answer"]
    join_attempts: Annotated[
        int,
        Number(0, least=0),
        "the attempts of a joiner before it gives up for good; 0 is without end, 5 the printed code's",
    ]
    acknowledgement_us: Annotated[
        int,
        Milliseconds(200),
        "the time that a joiner's answer waits for the members to know it; 2000 in the source, and less here"
        " because a run lasts seconds",
    ]
    merge_interval_us: Annotated[
        int,
        Milliseconds(200),
        "the time between two searches of a coordinator for failed members; 1000 in the source, and less here for"
        " the same reason",
    ]

    def check(self) -> None:
        """Raise `UsageError` for a timeout that one late heartbeat exceeds."""
        if self.failure_timeout_us < 2 * self.heartbeat_interval_us:
            raise UsageError(
                "A member would count as failed when one heartbeat is late: failure_timeout_ms is below twice"
                " heartbeat_interval_ms.",
                "Raise failure_timeout_ms.",
            )
