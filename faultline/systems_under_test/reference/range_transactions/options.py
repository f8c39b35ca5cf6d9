"""The options of `range-transactions`: conflicts, the wait for clocks, splits and moves of ranges, and patience."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import WaitPolicy
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import ParticipantTiming
from faultline.systems_under_test.reference.ranges.splits import Splits
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    OptionalMilliseconds,
    Settings,
    options_of,
    tuning_of,
)

__all__ = ["OPTIONS", "SETTINGS", "RangeTransactionSettings"]


class RangeTransactionSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds. Implements `TableSettings` and `ClientTimes`."""

    system: ClassVar[str] = "range-transactions"

    policy: Annotated[
        str,
        Choice(("error", "wound-wait", "wait-die"), default="wound-wait"),
        "when a lock is taken: refuse; the older aborts the younger; or the younger gives up",
    ]
    wait: Annotated[
        str,
        Choice(("commit", "restart")),
        "coordinators wait until a commit is past for certain; or readers read again what they cannot place in time",
    ]
    error_bound_us: Annotated[
        int, Milliseconds(100), "the most by which a node's clock may differ from the true time (wait=commit)"
    ]
    max_offset_us: Annotated[
        int, Milliseconds(200), "the most by which the clocks of two nodes may differ (wait=restart)"
    ]
    splits: Annotated[
        tuple[str, ...],
        Splits(),
        "the keys at which the first ranges begin, ascending, with commas between: b,d; none is one range",
    ]
    partition_load_max: Annotated[int, Number(20), "the requests between two checks at which a range is split"]
    split_check_us: Annotated[int, Milliseconds(500), "how often a host checks its ranges"]
    spread: Annotated[
        str,
        Choice(("after-split", "never")),
        "when the new half of a range moves to the live node with the fewest",
    ]
    move_every_us: Annotated[
        int | None, OptionalMilliseconds(500), "how often one range after the other moves to the next node; 0 is never"
    ]
    transaction_timeout_us: Annotated[
        int, Milliseconds(1500), "the time without news after which an undecided transaction is rolled back"
    ]
    snapshot_every_entries: Annotated[
        int, Number(10000), "log entries between two snapshots, below which the log is cut short"
    ]
    transactions_remembered: Annotated[
        int, Number(1000), "the number of ended transactions that a snapshot remembers, beside all open ones"
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(3000), "the time after which a client gives up"]
    attempts_max: Annotated[int, Number(12), "the number of times a client tries a transaction", TUNING]
    retry_pause_us: Annotated[
        int,
        Milliseconds(20),
        "the longest random wait before a second attempt; it doubles up to eight times that",
        TUNING,
    ]
    lock_wait_us: Annotated[int, Milliseconds(500), "the longest time that a request waits for a lock", TUNING]
    resend_us: Annotated[
        int,
        Milliseconds(100),
        "how often questions and decisions are sent again, and coordinators asked about prepared transactions",
        TUNING,
    ]
    forward_jump_us: Annotated[
        int, Milliseconds(500), "the most that a time in a request may be ahead of the node's clock", TUNING
    ]
    members_min: Annotated[
        int, Number(3), "the number of nodes needed before the first table is made; fewer in a smaller cluster", TUNING
    ]
    task_retry_us: Annotated[
        int, Milliseconds(50), "how often splits and moves that are not confirmed are asked for again", TUNING
    ]
    member_timeout_us: Annotated[int, Milliseconds(500), "the silence after which a node is given no range", TUNING]

    keeps_parent: ClassVar[bool] = True

    @property
    def waits_at_commit(self) -> bool:
        """True if coordinators wait, and not readers."""
        return self.wait == "commit"

    @property
    def wait_policy(self) -> WaitPolicy:
        """The choice between two transactions that want the same lock."""
        return WaitPolicy(self.policy)

    @property
    def timing(self) -> ParticipantTiming:
        """The times of a participant; it asks about a doubt once the coordinator had the time to send twice."""
        return ParticipantTiming(self.lock_wait_us, 2 * self.resend_us)

    @property
    def locks_held_us_max(self) -> int:
        """The time that a client, a timeout and the questions after it can take together when everything works."""
        return self.client_timeout_us + self.transaction_timeout_us + 4 * self.resend_us

    def check(self) -> None:
        """Raise `UsageError` for a wait that outlasts the patience of a coordinator or of a client."""
        longest_us = 2 * self.error_bound_us if self.waits_at_commit else 0
        if longest_us >= min(self.transaction_timeout_us, self.client_timeout_us):
            raise UsageError(
                f"A commit wait of {longest_us // 1_000} ms outlasts the patience of clients or of the coordinator.",
                "Raise client_timeout_ms and transaction_timeout_ms, or lower error_bound_ms.",
            )


OPTIONS = options_of(RangeTransactionSettings)
"""Every option with its default."""

SETTINGS = tuning_of(RangeTransactionSettings)
"""The settings behind the option `tuning`."""
