"""The options of `paxos-kv`: what can be set, and which combinations are refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.paxos import PaxosQuorums
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import ProposerTiming
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["PAXOS_KV_OPTIONS", "PaxosKvSettings"]

_MAJORITY = "0"

PAXOS_KV_OPTIONS: dict[str, OptionDescription] = {
    "read_mode": OptionDescription(
        default="no-op",
        choices=("no-op", "prepare"),
        summary="a read gets a no-op decided (the book), or ends after a prepare phase that found nothing under way",
    ),
    "rejections": OptionDescription(
        default="on", choices=("on", "off"), summary="acceptors say no to what is stale, or stay silent"
    ),
    "prepare_quorum": OptionDescription(default=_MAJORITY, summary="promises an attempt needs; 0 is a majority"),
    "accept_quorum": OptionDescription(default=_MAJORITY, summary="acceptances that choose a value; 0 is a majority"),
    "phase_timeout_ms": OptionDescription(default="50", summary="how long a proposer waits for a quorum"),
    "backoff_ms": OptionDescription(
        default="10", summary="the longest random wait before a second attempt; it doubles with each further one"
    ),
    "attempts_max": OptionDescription(default="5", summary="attempts without a quorum after which a node gives up"),
    "segment_size_bytes": OptionDescription(default="65536", summary="the size at which a log file is closed"),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client asks another node"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
}
"""Every option with its default."""


class PaxosKvSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds. A quorum of 0 stands for a majority."""

    prepares_only: bool
    rejections: bool
    prepare_quorum: int
    accept_quorum: int
    timing: ProposerTiming
    segment_size_bytes: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> PaxosKvSettings:
        """The settings of `options`, with defaults for what is left out. Raises UsageError."""
        values = OptionValues("paxos-kv", PAXOS_KV_OPTIONS, options)
        settings = cls(
            prepares_only=values.choice("read_mode") == "prepare",
            rejections=values.choice("rejections") == "on",
            prepare_quorum=values.number("prepare_quorum", least=0),
            accept_quorum=values.number("accept_quorum", least=0),
            timing=ProposerTiming(
                phase_us=values.microseconds("phase_timeout_ms"),
                backoff_us=values.microseconds("backoff_ms"),
                attempts_max=values.number("attempts_max"),
            ),
            segment_size_bytes=values.number("segment_size_bytes"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        if settings.request_timeout_us > settings.client_timeout_us:
            raise UsageError(
                "Clients would give up before they ask a second node: request_timeout_ms is above client_timeout_ms.",
                "Lower request_timeout_ms.",
            )
        return settings

    def quorums(self, members: int) -> PaxosQuorums:
        """The quorums among `members` nodes. Raises UsageError when they could miss each other, or be reached never."""
        usual = PaxosQuorums.majorities(members)
        quorums = PaxosQuorums(self.prepare_quorum or usual.prepare, self.accept_quorum or usual.accept)
        if max(quorums.prepare, quorums.accept) > members:
            raise UsageError(
                f"A quorum cannot be larger than the {members} nodes.",
                "Lower prepare_quorum or accept_quorum, or add nodes.",
            )
        if not quorums.intersect(members):
            raise UsageError(
                f"With {members} nodes, {quorums.prepare} promises and {quorums.accept} acceptances can come from"
                " different nodes, so two values could be chosen.",
                f"prepare_quorum and accept_quorum together must exceed {members}.",
            )
        return quorums
