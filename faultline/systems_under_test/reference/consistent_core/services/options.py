"""The options of `consistent-core` about leases and watches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["SERVICE_OPTIONS", "WATCH_DELIVERIES", "WATCH_SOURCES", "ServiceSettings"]

WATCH_SOURCES = ("versions", "history", "state")
"""A multi-version store, the last events, or nothing but the state there is."""

WATCH_DELIVERIES = ("stream", "once", "pull")
"""Events as they happen, the next one alone, or whenever the client asks."""

SERVICE_OPTIONS: dict[str, OptionDescription] = {
    "services": OptionDescription(
        default="off", choices=("off", "on"), summary="whether there are leases, watches, deletions and listings"
    ),
    "lease_ttl_ms": OptionDescription(default="600", summary="how long a lease lives that is not refreshed"),
    "lease_check_ms": OptionDescription(default="50", summary="how often the leader looks for leases that are over"),
    "lease_margin_percent": OptionDescription(
        default="25", summary="how much of a lease's time its owner leaves unused, for clocks that run differently"
    ),
    "fencing": OptionDescription(
        default="on", choices=("on", "off"), summary="whether a guarded resource refuses tokens of former owners"
    ),
    "watch_source": OptionDescription(
        default="versions", choices=WATCH_SOURCES, summary="where events come from that a watcher has missed"
    ),
    "watch_delivery": OptionDescription(
        default="stream", choices=WATCH_DELIVERIES, summary="how events come to a watcher"
    ),
    "watch_history_max": OptionDescription(
        default="1000", summary="how many events are kept for those who missed them"
    ),
    "watch_unconfirmed_max": OptionDescription(
        default="100", summary="how many events a watcher may leave unconfirmed before its watch is cancelled"
    ),
    "watch_queue_max": OptionDescription(
        default="200", summary="how many events a client keeps that its user has not fetched"
    ),
    "watch_confirm_ms": OptionDescription(
        default="150", summary="how often a client confirms what it received, and shows that it lives"
    ),
}
"""Every option with its default."""

_SILENT_AFTER_CONFIRMATIONS = 4


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    is_on: bool
    lease_ttl_us: int
    lease_check_us: int
    lease_margin_percent: int
    fences: bool
    watch_source: str
    watch_delivery: str
    watch_history_max: int
    watch_unconfirmed_max: int
    watch_queue_max: int
    watch_confirm_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> ServiceSettings:
        """The settings of `options`, where others may stand too. Raises UsageError."""
        given = {name: value for name, value in options.items() if name in SERVICE_OPTIONS}
        values = OptionValues("consistent-core", SERVICE_OPTIONS, given)
        settings = cls(
            is_on=values.choice("services") == "on",
            lease_ttl_us=values.microseconds("lease_ttl_ms"),
            lease_check_us=values.microseconds("lease_check_ms"),
            lease_margin_percent=values.number("lease_margin_percent", least=0),
            fences=values.choice("fencing") == "on",
            watch_source=values.choice("watch_source"),
            watch_delivery=values.choice("watch_delivery"),
            watch_history_max=values.number("watch_history_max"),
            watch_unconfirmed_max=values.number("watch_unconfirmed_max"),
            watch_queue_max=values.number("watch_queue_max"),
            watch_confirm_us=values.microseconds("watch_confirm_ms"),
        )
        settings._refuse_contradictions()
        return settings

    @property
    def watch_silence_us(self) -> int:
        """After how long without a confirmation a watcher counts as gone."""
        return _SILENT_AFTER_CONFIRMATIONS * self.watch_confirm_us

    def _refuse_contradictions(self) -> None:
        if self.lease_margin_percent >= 50:
            raise UsageError(
                f"An owner that leaves {self.lease_margin_percent} % of its lease unused loses it between two"
                " refreshes, which are half the time to live apart.",
                "Set lease_margin_percent well below 50; the default is 25.",
            )
