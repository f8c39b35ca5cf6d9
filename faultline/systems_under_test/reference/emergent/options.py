"""The options of `emergent-leader`: how soon silence is noticed, who watches whom, and below which size to refuse."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings, options_of

__all__ = ["OPTIONS", "EmergentSettings"]


class EmergentSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "emergent-leader"

    seeds: Annotated[int, Number(2), "how many of the members admit others; each knows their addresses"]
    heartbeats: Annotated[
        str,
        Choice(("all", "ring")),
        "who watches whom: everybody everybody, or each the two before it in a ring, reporting to all",
    ]
    heartbeat_interval_us: Annotated[int, Milliseconds(50), "how long between two heartbeats"]
    failure_timeout_us: Annotated[int, Milliseconds(300), "after how much silence a member counts as failed"]
    join_timeout_us: Annotated[int, Milliseconds(100), "how long a joiner waits for an answer"]
    join_attempts: Annotated[
        int,
        Number(0, least=0),
        "how often a joiner tries before it gives up for good; 0 is without end, 5 the printed code's",
    ]
    acknowledgement_us: Annotated[
        int,
        Milliseconds(200),
        "how long a joiner's answer waits for the members to know it; 2000 in the source, and less here because"
        " a run lasts seconds",
    ]
    merge_interval_us: Annotated[
        int,
        Milliseconds(200),
        "how often a coordinator looks for those it believes failed; 1000 in the source, and less here for the"
        " same reason",
    ]
    minimum: Annotated[
        int,
        Number(0, least=0),
        "below how many live members clients are refused; 0 is a majority of the largest membership ever seen",
    ]
    client_timeout_us: Annotated[int, Milliseconds(800), "after how long a client gives up"]

    def check(self) -> None:
        """Raise `UsageError` for a timeout that one late heartbeat exceeds."""
        if self.failure_timeout_us < 2 * self.heartbeat_interval_us:
            raise UsageError(
                "A member would count as failed when one heartbeat is late: failure_timeout_ms is below twice"
                " heartbeat_interval_ms.",
                "Raise failure_timeout_ms.",
            )


OPTIONS = options_of(EmergentSettings)
"""Every option with its default."""
