"""The options of `coordinated-kv`: those of its data nodes, and those that are handed on to the core."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING, tuning_settings
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.coordinated_kv.settings import DataNodeSettings
from faultline.systems_under_test.reference.leases_and_watches.settings import SERVICE_OPTIONS, ServicedSettings
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import options_of, tuning_of, tuning_option

__all__ = ["OPTIONS", "SETTINGS", "CoordinatedSettings"]

_CORE_OPTIONS = options_of(RaftSettings) | SERVICE_OPTIONS
_OF_THE_CORE = {
    name: _CORE_OPTIONS[name]
    for name in (
        "heartbeat_interval_ms",
        "election_timeout_ms",
        "lease_ttl_ms",
        "lease_margin_percent",
        "watch_delivery",
        "snapshot_every_entries",
    )
}
"""Options that are handed on to the core, which reads them, with its defaults."""

_TUNING_OF_THE_CORE = {name: _CORE_OPTIONS[name] for name in ("lease_check_ms", "watch_confirm_ms")}
"""Settings behind `tuning` that are handed on to it."""


class CoordinatedSettings(DataNodeSettings, frozen=True):
    """The options of the whole cluster, read and checked: those of data nodes, its members, and those of the core."""

    members: tuple[NodeId, ...] = ()
    core: ServicedSettings = msgspec.field(default_factory=lambda: ServicedSettings.read({}))
    """The settings of the core and its clients; leases and watches are on."""

    @property
    def core_members(self) -> tuple[NodeId, ...]:
        """The servers of the core."""
        return self.members[: self.core_size]

    @property
    def data_members(self) -> tuple[NodeId, ...]:
        """The nodes that keep data."""
        return self.members[self.core_size :]

    @classmethod
    def for_members(cls, options: Mapping[str, str], members: tuple[NodeId, ...]) -> CoordinatedSettings:
        """Return the settings of `options` for these nodes. Raise `UsageError` for one that cannot be used."""
        texts = {name: text for name, text in options.items() if name != TUNING}
        texts |= tuning_settings(options.get(TUNING, ""))
        handed_on = _OF_THE_CORE | _TUNING_OF_THE_CORE
        own = {name: text for name, text in texts.items() if name not in handed_on}
        core = ServicedSettings.read({name: texts[name] for name in handed_on if name in texts})
        settings = msgspec.structs.replace(cls.read(own), members=members, core=core)
        settings._check_members()
        return settings

    def _check_members(self) -> None:
        if len(self.data_members) < self.replication_factor:
            raise UsageError(
                f"{len(self.members)} nodes are too few: {self.core_size} are the core (core_size), and"
                f" {self.replication_factor} data nodes are needed to keep each partition (replication_factor).",
                f"Use --nodes {self.core_size + self.replication_factor} or more; or --option core_size=1, a core that"
                " cannot lose its only server.",
            )


SETTINGS: dict[str, OptionDescription] = tuning_of(CoordinatedSettings) | _TUNING_OF_THE_CORE
"""The settings behind the option `tuning`."""

OPTIONS: dict[str, OptionDescription] = {
    **options_of(CoordinatedSettings),
    **_OF_THE_CORE,
    TUNING: tuning_option(SETTINGS),
}
"""Every option with its default."""
