"""The options of leases and watches, and the settings of a Raft server that has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import msgspec

from faultline.harness.errors import UsageError
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    Switch,
    options_of,
)

__all__ = ["SERVICE_OPTIONS", "WATCH_DELIVERIES", "WATCH_SOURCES", "ServiceSettings", "ServicedSettings"]

WATCH_SOURCES = ("versions", "history", "state")
"""A multi-version store, the last events, or nothing but the state there is."""

WATCH_DELIVERIES = ("stream", "once", "pull")
"""Events as they happen, the next one alone, or whenever the client asks."""

_SILENT_AFTER_CONFIRMATIONS = 4


class ServiceSettings(Settings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "coordination-service"

    lease_ttl_us: Annotated[int, Milliseconds(600), "how long a lease lives that is not refreshed"]
    lease_check_us: Annotated[int, Milliseconds(50), "how often the leader looks for leases that are over"]
    lease_margin_percent: Annotated[
        int,
        Number(25, least=0),
        "how much of a lease's time its owner leaves unused, for clocks that run differently",
    ]
    fencing: Annotated[bool, Switch(), "whether a guarded resource refuses tokens of former owners"]
    watch_source: Annotated[str, Choice(WATCH_SOURCES), "where events come from that a watcher has missed"]
    watch_delivery: Annotated[str, Choice(WATCH_DELIVERIES), "how events come to a watcher"]
    watch_history_max: Annotated[int, Number(1_000), "how many events are kept for those who missed them"]
    watch_unconfirmed_max: Annotated[
        int, Number(100), "how many events a watcher may leave unconfirmed before its watch is cancelled"
    ]
    watch_queue_max: Annotated[int, Number(200), "how many events a client keeps that its user has not fetched"]
    watch_confirm_us: Annotated[
        int, Milliseconds(150), "how often a client confirms what it received, and shows that it lives"
    ]

    @property
    def watch_silence_us(self) -> int:
        """The time without a confirmation after which a watcher counts as gone."""
        return _SILENT_AFTER_CONFIRMATIONS * self.watch_confirm_us

    def check(self) -> None:
        """Raise UsageError for values that contradict each other."""
        if self.lease_margin_percent >= 50:
            raise UsageError(
                f"An owner that leaves {self.lease_margin_percent} % of its lease unused loses it between two"
                " refreshes, which are half the time to live apart.",
                "Set lease_margin_percent well below 50; the default is 25.",
            )


SERVICE_OPTIONS = options_of(ServiceSettings)
"""Every option of leases and watches, with its default."""


class ServicedSettings(RaftSettings, frozen=True, kw_only=True):
    """The settings of a Raft server with leases and watches."""

    service: ServiceSettings

    @classmethod
    def made(cls, given: Mapping[str, str]) -> Self:
        """Return new settings of the options `given`. Raise `UsageError`."""
        raft = RaftSettings.read({name: value for name, value in given.items() if name not in SERVICE_OPTIONS})
        service = ServiceSettings.read({name: value for name, value in given.items() if name in SERVICE_OPTIONS})
        return cls(**msgspec.structs.asdict(raft), service=service)
