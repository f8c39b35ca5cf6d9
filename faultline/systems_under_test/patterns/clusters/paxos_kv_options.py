"""The options of `paxos-kv`: what can be set, and which combinations are refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_replication.paxos import PaxosQuorums
from faultline.systems_under_test.patterns.data_replication.paxos_proposer import ProposerTiming

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
        for name in options:
            if name not in PAXOS_KV_OPTIONS:
                raise UsageError(f"paxos-kv has no option {name!r}.", f"It has {', '.join(PAXOS_KV_OPTIONS)}.")
        values = {name: options.get(name, description.default) for name, description in PAXOS_KV_OPTIONS.items()}
        settings = cls(
            prepares_only=_choice("read_mode", values) == "prepare",
            rejections=_choice("rejections", values) == "on",
            prepare_quorum=_number("prepare_quorum", values),
            accept_quorum=_number("accept_quorum", values),
            timing=ProposerTiming(
                phase_us=1_000 * _number("phase_timeout_ms", values, least=1),
                backoff_us=1_000 * _number("backoff_ms", values, least=1),
                attempts_max=_number("attempts_max", values, least=1),
            ),
            segment_size_bytes=_number("segment_size_bytes", values, least=1),
            request_timeout_us=1_000 * _number("request_timeout_ms", values, least=1),
            client_timeout_us=1_000 * _number("client_timeout_ms", values, least=1),
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
            raise UsageError(f"A quorum cannot be larger than the {members} nodes.", "Lower it, or add nodes.")
        if not quorums.intersect(members):
            raise UsageError(
                f"With {members} nodes, {quorums.prepare} promises and {quorums.accept} acceptances can come from"
                " different nodes, so two values could be chosen.",
                f"Together they must exceed {members}.",
            )
        return quorums


def _choice(name: str, values: Mapping[str, str]) -> str:
    choices = PAXOS_KV_OPTIONS[name].choices
    if values[name] not in choices:
        raise UsageError(f"Option {name} cannot be {values[name]!r}.", f"Choose one of {', '.join(choices)}.")
    return values[name]


def _number(name: str, values: Mapping[str, str], least: int = 0) -> int:
    text = values[name]
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise UsageError(
            f"Option {name} must be a whole number from {least}, not {text!r}.",
            f"The default is {PAXOS_KV_OPTIONS[name].default}.",
        )
    return int(text)
