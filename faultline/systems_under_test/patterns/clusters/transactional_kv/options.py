"""The options of `transactional-kv`: who gives way, where times come from, how isolated transactions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import md5

import msgspec

from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.clusters.option_values import OptionValues
from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import WaitPolicy
from faultline.systems_under_test.patterns.data_partitioning.transaction_participant import ParticipantTiming

__all__ = ["OPTIONS", "TransactionSettings", "host_of"]

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
        )


def host_of(members: Sequence[NodeId], key: str) -> NodeId:
    """The node that holds `key`: its MD5 digest as a signed number, without the sign, over the nodes."""
    return members[_number_of(key) % len(members)]


@lru_cache(maxsize=4096)
def _number_of(key: str) -> int:
    """Remembered, because a transaction asks for the hosts of the same few keys again and again."""
    return abs(int.from_bytes(md5(key.encode(), usedforsecurity=False).digest(), "big", signed=True))
