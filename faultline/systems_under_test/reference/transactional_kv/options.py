"""The options of `transactional-kv`: who gives way, where times come from, how isolated transactions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import md5

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import WaitPolicy
from faultline.systems_under_test.patterns.data_partitioning.transaction_state import ParticipantTiming
from faultline.systems_under_test.patterns.data_replication.heartbeat import check_heartbeat_timing
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "GroupSettings", "TransactionSettings", "host_of"]

OPTIONS: dict[str, OptionDescription] = {
    "policy": OptionDescription(
        default="wound-wait",
        choices=("error", "wound-wait", "wait-die"),
        summary="a lock is taken already: refuse; the older aborts the younger; or the younger gives up",
    ),
    "isolation": OptionDescription(
        default="serializable",
        choices=("serializable", "snapshot"),
        summary="reads take locks that are kept to the end; or they read at the start time, and write skew is possible",
    ),
    "read_only": OptionDescription(
        default="locks",
        choices=("locks", "snapshot"),
        summary="transactions that only read take locks like others, or read at one time and block nobody",
    ),
    "clock": OptionDescription(
        default="hybrid",
        choices=("hybrid", "lamport", "oracle"),
        summary="times come from hybrid clocks, from Lamport clocks, or from the first node as a timestamp oracle",
    ),
    "forward_jump_ms": OptionDescription(
        default="500", summary="how far ahead of the own wall clock a time in a request may be (clock=hybrid)"
    ),
    "attempts_max": OptionDescription(default="8", summary="how often a client tries a transaction"),
    "retry_pause_ms": OptionDescription(
        default="10", summary="the longest random wait before a second attempt; it doubles up to eight times that"
    ),
    "lock_wait_ms": OptionDescription(default="150", summary="how long a request waits for a lock at most"),
    "transaction_timeout_ms": OptionDescription(
        default="600", summary="after how long without news an undecided transaction is rolled back"
    ),
    "resend_ms": OptionDescription(
        default="100", summary="how often questions and decisions are sent again, and doubts asked about"
    ),
    "segment_size_bytes": OptionDescription(default="65536", summary="the size at which a log file is closed"),
    "replication_factor": OptionDescription(
        default="1",
        choices=("1", "3", "5"),
        summary="on how many nodes each partition lies, with a replicated log of its own; 1: on one, as a plain log",
    ),
    "election_timeout_ms": OptionDescription(
        default="250", summary="how long a group's leader may be silent at least (replication_factor above 1)"
    ),
    "heartbeat_interval_ms": OptionDescription(
        default="50", summary="how often a group's leader shows that it lives (replication_factor above 1)"
    ),
    "leader_lease_ms": OptionDescription(
        default="200", summary="how long after a heartbeat a group's leader may answer (replication_factor above 1)"
    ),
    "snapshot_chunk_bytes": OptionDescription(
        default="65536", summary="how much of a snapshot is sent to a group's member at once"
    ),
    "log_cleaning_interval_ms": OptionDescription(
        default="1000", summary="how often a group's log is cut short below its snapshots"
    ),
    "snapshot_every_entries": OptionDescription(
        default="10000", summary="log entries between two snapshots, below which the log is cut short"
    ),
    "transactions_remembered": OptionDescription(
        default="1000", summary="of how many transactions a snapshot says how they ended, beside all that go on"
    ),
    "request_timeout_ms": OptionDescription(default="200", summary="after how long a client asks again"),
    "client_timeout_ms": OptionDescription(default="1500", summary="after how long a client gives up"),
}
"""Every option with its default."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What concerns replicated groups; implements `CompactionSettings`, with the mark that follows snapshots."""

    replication_factor: int
    election_timeout_us: int
    heartbeat_interval_us: int
    leader_lease_us: int
    snapshot_every_entries: int
    snapshot_chunk_bytes: int
    log_cleaning_interval_us: int
    snapshots_retained: int = 2
    low_water_mark: str = "snapshot"
    log_retention_us: int = 0

    @classmethod
    def read(cls, values: OptionValues) -> GroupSettings:
        """The settings of `values`. Raises UsageError for one that cannot be used."""
        settings = cls(
            replication_factor=int(values.choice("replication_factor")),
            election_timeout_us=values.microseconds("election_timeout_ms"),
            heartbeat_interval_us=values.microseconds("heartbeat_interval_ms"),
            leader_lease_us=values.microseconds("leader_lease_ms"),
            snapshot_every_entries=values.number("snapshot_every_entries"),
            snapshot_chunk_bytes=values.number("snapshot_chunk_bytes"),
            log_cleaning_interval_us=values.microseconds("log_cleaning_interval_ms"),
        )
        check_heartbeat_timing(settings.heartbeat_interval_us, settings.election_timeout_us)
        if settings.leader_lease_us >= settings.election_timeout_us:
            raise UsageError(
                "A lease that does not end before the next election can begin lets two leaders answer at once.",
                "Set leader_lease_ms below election_timeout_ms; the margin is what clocks may drift apart.",
            )
        return settings


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    policy: WaitPolicy
    locks_reads: bool
    snapshot_reads: bool
    clock: str
    forward_jump_us: int
    attempts_max: int
    retry_pause_us: int
    timing: ParticipantTiming
    transaction_timeout_us: int
    resend_us: int
    segment_size_bytes: int
    snapshot_every_entries: int
    transactions_remembered: int
    request_timeout_us: int
    client_timeout_us: int
    group: GroupSettings

    @property
    def is_replicated(self) -> bool:
        """Does each partition lie on several nodes?"""
        return self.group.replication_factor > 1

    @classmethod
    def read(cls, options: Mapping[str, str]) -> TransactionSettings:
        """The settings of `options`. Raises UsageError for one that cannot be used."""
        values = OptionValues("transactional-kv", OPTIONS, options)
        resend_us = values.microseconds("resend_ms")
        return cls(
            policy=WaitPolicy(values.choice("policy")),
            locks_reads=values.choice("isolation") == "serializable",
            snapshot_reads=values.choice("read_only") == "snapshot",
            clock=values.choice("clock"),
            forward_jump_us=values.microseconds("forward_jump_ms"),
            attempts_max=values.number("attempts_max"),
            retry_pause_us=values.microseconds("retry_pause_ms"),
            timing=ParticipantTiming(values.microseconds("lock_wait_ms"), 2 * resend_us),
            transaction_timeout_us=values.microseconds("transaction_timeout_ms"),
            resend_us=resend_us,
            segment_size_bytes=values.number("segment_size_bytes"),
            snapshot_every_entries=values.number("snapshot_every_entries"),
            transactions_remembered=values.number("transactions_remembered"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
            group=GroupSettings.read(values),
        )


def host_of(members: Sequence[NodeId], key: str) -> NodeId:
    """The node that holds `key`: its MD5 digest as a signed number, without the sign, over the nodes."""
    return members[_number_of(key) % len(members)]


@lru_cache(maxsize=4096)
def _number_of(key: str) -> int:
    """Remembered, because a transaction asks for the hosts of the same few keys again and again."""
    return abs(int.from_bytes(md5(key.encode(), usedforsecurity=False).digest(), "big", signed=True))
