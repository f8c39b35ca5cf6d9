"""The options of `coordinated-kv`: the nodes of the core, the spread and the copies of data, and all times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING, tuning_settings
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.leases_and_watches.settings import SERVICE_OPTIONS, ServicedSettings
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    options_of,
    tuning_of,
    tuning_option,
)

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

_PARTITIONS_MAX = 1_000
"""The whole table is one value in the core, stored anew at every change."""


class CoordinatedSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "coordinated-kv"

    core_size: Annotated[
        int, Number(3), "the number of nodes, from the first on, that are the consistent core; the rest keep data"
    ]
    partitions: Annotated[int, Number(6), "the number of partitions, fixed for the life of the cluster"]
    replication_factor: Annotated[int, Number(2), "the number of data nodes with a copy of each partition"]
    read_mode: Annotated[
        str,
        Choice(("lease", "confirmed")),
        "whether a partition's leader answers reads while its lease lasts, or asks those in sync each time",
    ]
    table_source: Annotated[
        str,
        Choice(("data-nodes", "core")),
        "where clients read the partition table: at any data node, or in the core",
    ]
    rebalance_every_us: Annotated[
        int, Milliseconds(500), "how often the controller evens out leaders and replaces dead replicas", TUNING
    ]
    replica_silence_us: Annotated[
        int, Milliseconds(400), "the time behind its leader after which a follower in sync counts as out of sync"
    ]
    retransmit_us: Annotated[
        int,
        Milliseconds(100),
        "how often a leader sends its partition again to followers that lag behind, and repeats its requests",
        TUNING,
    ]
    aim: Annotated[
        str,
        Choice(("core", "controller", "owner")),
        "the target of a fault aimed at the leader: the core's leader, the controller, or the leader of partition 0",
    ]
    table_refresh_us: Annotated[
        int,
        Milliseconds(500),
        "the time after which a client asks for the table again, unless a refusal comes first",
        TUNING,
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks again", TUNING]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

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

    def check(self) -> None:
        """Raise `UsageError` for values that contradict each other."""
        if self.partitions > _PARTITIONS_MAX:
            raise UsageError(
                f"partitions is {self.partitions}, and the table of all of them is one value in the core.",
                f"Set it to {_PARTITIONS_MAX} at most.",
            )
        if self.replica_silence_us < 2 * self.retransmit_us:
            raise UsageError(
                "A follower would count as out of sync before anything is sent to it a second time:"
                " replica_silence_ms is below twice retransmit_ms.",
                "Raise replica_silence_ms.",
            )

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
