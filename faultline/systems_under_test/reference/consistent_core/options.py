"""The options of `consistent-core`: those of a Raft server, those of its wire, and options that it had once."""

from __future__ import annotations

from typing import Annotated

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING, FormerOption
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, options_of, tuning_of

__all__ = ["FORMER_OPTIONS", "FORMER_PLANTED_BUGS", "OPTIONS", "SETTINGS", "WIRES", "CoreSettings"]

WIRES = ("port", "channel")
"""Single messages over the network port; or channels with a pipeline and batches."""


class CoreSettings(RaftSettings, frozen=True, kw_only=True):
    """The options of a Raft server, and the wire to it."""

    wire: Annotated[
        str,
        Choice(WIRES),
        "how messages travel: each by itself, or over channels with a pipeline and batches of requests",
        TUNING,
    ]
    wire_linger_us: Annotated[
        int, Milliseconds(2, least=0), "how long requests gather for a batch (wire channel); 0: not at all", TUNING
    ]

    def check(self) -> None:
        """Raise UsageError for values that contradict each other."""
        super().check()
        if self.wire_linger_us >= self.request_timeout_us:
            raise UsageError(
                f"Clients would ask again after {self.request_timeout_us // 1_000} ms, before a batch that lingers for"
                f" {self.wire_linger_us // 1_000} ms is sent.",
                "Set wire_linger_ms well below request_timeout_ms.",
            )


OPTIONS: dict[str, OptionDescription] = options_of(CoreSettings)
"""Every option with its default."""

SETTINGS: dict[str, OptionDescription] = tuning_of(CoreSettings)
"""The settings behind the option `tuning`."""

_LEASES, _READS = "coordination-service", "follower-reads"

FORMER_OPTIONS: dict[str, FormerOption] = {
    "services": FormerOption("off", _LEASES, is_kept=False),
    "log_retention_ms": FormerOption("4233600000"),
    "saved_responses_max": FormerOption("5"),
    "store": FormerOption("single", _READS),
    "versions_kept": FormerOption("0", _READS),
    "read_from": FormerOption("leader", _READS),
    "follower_reads": FormerOption("session", _READS),
    "follower_wait_timeout_ms": FormerOption("200", _READS),
    "follower_silence_ms": FormerOption("500", _READS),
    "max_staleness_ms": FormerOption("300", _READS),
    "regions": FormerOption("3", _READS),
    "lease_ttl_ms": FormerOption("600", _LEASES),
    "lease_check_ms": FormerOption("50", _LEASES),
    "lease_margin_percent": FormerOption("25", _LEASES),
    "fencing": FormerOption("on", _LEASES),
    "watch_source": FormerOption("versions", _LEASES),
    "watch_delivery": FormerOption("stream", _LEASES),
    "watch_history_max": FormerOption("1000", _LEASES),
    "watch_unconfirmed_max": FormerOption("100", _LEASES),
    "watch_queue_max": FormerOption("200", _LEASES),
    "watch_confirm_ms": FormerOption("150", _LEASES),
}
"""Options that the system had once; stored plans still name each."""

FORMER_PLANTED_BUGS: dict[str, str] = {
    **dict.fromkeys(
        (
            "follower-expires-leases",
            "duplicate-lease-granted",
            "lease-removed-before-commit",
            "leases-not-refreshed-by-new-leader",
            "new-leader-tracks-no-leases",
            "tracker-never-stops",
            "wall-clock-lease-expiry",
            "lease-unit-mix-up",
            "refresh-without-quorum",
            "lease-counted-from-receipt",
            "attached-on-the-leader-only",
            "orphan-attachment",
            "silent-expiry",
            "no-fencing",
            "watch-starts-live",
            "position-before-events",
            "history-by-equal-key",
            "replay-to-all",
            "history-on-the-leader-only",
            "notify-at-append",
            "replay-behind-live",
            "plain-prefix",
            "resume-by-index",
            "silent-eviction",
            "watches-not-reset",
        ),
        _LEASES,
    ),
    **dict.fromkeys(
        (
            "stamp-ignored",
            "stamp-passed-not-reached",
            "answer-to-another-key",
            "one-reader-per-stamp",
            "reads-above-the-mark",
            "serves-though-cut-off",
            "read-index-without-asking",
            "version-per-batch",
            "floor-without-key-check",
            "overwrite-in-place",
            "version-at-propose",
            "version-reset-on-restart",
            "versions-as-text",
            "ceiling-for-floor",
        ),
        _READS,
    ),
}
"""Planted bugs that the system had once, each with the system that has it now."""
