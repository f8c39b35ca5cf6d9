"""The options of `coordination-service`: those of leases and watches, and the times of its Raft servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from faultline.harness.options import TUNING
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.reference.leases_and_watches.settings import SERVICE_OPTIONS, ServicedSettings
from faultline.systems_under_test.reference.raft.settings import KERNEL_SETTINGS, kernel_options
from faultline.systems_under_test.reference.shared.settings import refuse_others, tuning_option

__all__ = ["OPTIONS", "SETTINGS", "CoordinationSettings"]

SETTINGS: dict[str, OptionDescription] = KERNEL_SETTINGS
"""The settings behind the option `tuning`."""

OPTIONS: dict[str, OptionDescription] = {
    **SERVICE_OPTIONS,
    **kernel_options("heartbeat_interval_ms", "election_timeout_ms", "client_timeout_ms", "snapshot_every_entries"),
    TUNING: tuning_option(SETTINGS),
}
"""Every option with its default."""


class CoordinationSettings(ServicedSettings, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds. What they leave out of `RaftSettings` has its default."""

    system: ClassVar[str] = "coordination-service"

    @classmethod
    def made(cls, given: Mapping[str, str]) -> Self:
        """Return new settings of the options `given`. Raise `UsageError`."""
        refuse_others(cls.system, given, OPTIONS | SETTINGS)
        return super().made(given)
