"""The options of `transactional-kv`: conflicts, isolation, the source of times, and replication."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import md5
from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import WaitPolicy
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import ParticipantTiming
from faultline.systems_under_test.patterns.data_replication.heartbeat import check_heartbeat_timing
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    options_of,
    tuning_of,
)

__all__ = ["OPTIONS", "SETTINGS", "TransactionSettings", "host_of"]


class TransactionSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds.

    Implements `CompactionSettings` for the logs of replicated groups, with the mark that follows snapshots.
    """

    system: ClassVar[str] = "transactional-kv"

    policy: Annotated[
        str,
        Choice(("error", "wound-wait", "wait-die"), default="wound-wait"),
        "when a lock is taken: refuse; the older aborts the younger; or the younger gives up",
    ]
    isolation: Annotated[
        str,
        Choice(("serializable", "snapshot")),
        "reads take locks that are kept to the end; or they read at the start time, and write skew is possible",
    ]
    read_only: Annotated[
        str,
        Choice(("locks", "snapshot")),
        "transactions that only read take locks like others, or read at one time and block no other",
    ]
    clock: Annotated[
        str,
        Choice(("hybrid", "lamport", "oracle")),
        "times come from hybrid clocks, from Lamport clocks, or from the first node as a timestamp oracle",
    ]
    forward_jump_us: Annotated[
        int, Milliseconds(500), "the most that a time in a request may be ahead of the node's wall clock (clock=hybrid)"
    ]
    attempts_max: Annotated[int, Number(8), "the number of times a client tries a transaction"]
    retry_pause_us: Annotated[
        int,
        Milliseconds(10),
        "the longest random wait before a second attempt; it doubles up to eight times that",
        TUNING,
    ]
    lock_wait_us: Annotated[int, Milliseconds(150), "the longest time that a request waits for a lock", TUNING]
    transaction_timeout_us: Annotated[
        int, Milliseconds(600), "the time without news after which an undecided transaction is rolled back"
    ]
    resend_us: Annotated[
        int,
        Milliseconds(100),
        "how often questions and decisions are sent again, and coordinators asked about prepared transactions",
        TUNING,
    ]
    segment_size_bytes: Annotated[int, Number(65536), "the size at which a log file is closed", TUNING]
    replication_factor: Annotated[
        str,
        Choice(("1", "3", "5")),
        "the number of nodes with each partition, in a replicated log of its own; 1: on one node, in a plain log",
    ]
    election_timeout_us: Annotated[
        int,
        Milliseconds(250),
        "the shortest silence of a group's leader before an election (replication_factor above 1)",
    ]
    heartbeat_interval_us: Annotated[
        int, Milliseconds(50), "how often a group's leader shows that it lives (replication_factor above 1)"
    ]
    leader_lease_us: Annotated[
        int,
        Milliseconds(200),
        "the time after a heartbeat in which a group's leader may answer (replication_factor above 1)",
        TUNING,
    ]
    snapshot_chunk_bytes: Annotated[
        int, Number(65536), "the part of a snapshot that is sent to a group's member at once", TUNING
    ]
    log_cleaning_interval_us: Annotated[
        int, Milliseconds(1000), "how often a group's log is cut short below its snapshots", TUNING
    ]
    snapshot_every_entries: Annotated[
        int, Number(10000), "log entries between two snapshots, below which the log is cut short"
    ]
    transactions_remembered: Annotated[
        int,
        Number(1000),
        "the number of ended transactions that a snapshot remembers, beside all open ones",
    ]
    request_timeout_us: Annotated[int, Milliseconds(200), "the time after which a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1500), "the time after which a client gives up"]

    snapshots_retained: ClassVar[int] = 2
    low_water_mark: ClassVar[str] = "snapshot"
    log_retention_us: ClassVar[int] = 0

    @property
    def is_replicated(self) -> bool:
        """True if each partition lies on several nodes."""
        return self.replicas > 1

    @property
    def replicas(self) -> int:
        """The number of nodes on which each partition lies."""
        return int(self.replication_factor)

    @property
    def wait_policy(self) -> WaitPolicy:
        """The choice between two transactions that want the same lock."""
        return WaitPolicy(self.policy)

    @property
    def locks_reads(self) -> bool:
        """True if reads take locks, which are kept to the end."""
        return self.isolation == "serializable"

    @property
    def snapshot_reads(self) -> bool:
        """True if transactions that only read do so at one time, without locks."""
        return self.read_only == "snapshot"

    @property
    def timing(self) -> ParticipantTiming:
        """The times of a participant; it asks about a doubt once the coordinator had the time to send twice."""
        return ParticipantTiming(self.lock_wait_us, 2 * self.resend_us)

    @property
    def locks_held_us_max(self) -> int:
        """The time that a client, a timeout and the questions after it can take together when everything works."""
        return self.client_timeout_us + self.transaction_timeout_us + 4 * self.resend_us

    def check(self) -> None:
        """Raise `UsageError` for values that contradict each other."""
        check_heartbeat_timing(self.heartbeat_interval_us, self.election_timeout_us)
        if self.leader_lease_us >= self.election_timeout_us:
            raise UsageError(
                "A lease that does not end before the next election can begin lets two leaders answer at once.",
                "Set leader_lease_ms below election_timeout_ms; the margin is what clocks may drift apart.",
            )


OPTIONS = options_of(TransactionSettings)
"""Every option with its default."""

SETTINGS = tuning_of(TransactionSettings)
"""The settings behind the option `tuning`."""


def host_of(members: Sequence[NodeId], key: str) -> NodeId:
    """Return the node that holds `key`: its MD5 digest as a signed number, without the sign, over the nodes."""
    return members[_number_of(key) % len(members)]


# Remembered, because a transaction asks for the hosts of the same few keys again and again.
@lru_cache(maxsize=4096)
def _number_of(key: str) -> int:
    return abs(int.from_bytes(md5(key.encode(), usedforsecurity=False).digest(), "big", signed=True))
