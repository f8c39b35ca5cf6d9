"""The options of `coordinated-kv`: which nodes are the core, how data is spread and copied, and who counts as dead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.reference.leases_and_watches.settings import SERVICE_OPTIONS, ServicedSettings
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.option_values import OptionValues
from faultline.systems_under_test.reference.shared.settings import options_of

__all__ = ["OPTIONS", "CoordinatedSettings"]

_OF_THE_CORE = (
    "heartbeat_interval_ms",
    "election_timeout_ms",
    "lease_ttl_ms",
    "lease_check_ms",
    "lease_margin_percent",
    "watch_delivery",
    "watch_confirm_ms",
    "snapshot_every_entries",
)
"""Options that are handed on to the core, with its defaults."""

_CORE_OPTIONS = options_of(RaftSettings) | SERVICE_OPTIONS

OPTIONS: dict[str, OptionDescription] = {
    "core_size": OptionDescription(
        default="3", summary="how many of the nodes, from the first on, are the consistent core; the rest keep data"
    ),
    "partitions": OptionDescription(default="6", summary="how many partitions there are, for the life of the cluster"),
    "replication_factor": OptionDescription(default="2", summary="how many data nodes have a copy of each partition"),
    "read_mode": OptionDescription(
        default="lease",
        choices=("lease", "confirmed"),
        summary="whether a partition's leader answers reads while its lease lasts, or asks those in sync each time",
    ),
    "table_source": OptionDescription(
        default="data-nodes",
        choices=("data-nodes", "core"),
        summary="where clients read the partition table: at any data node, or in the core",
    ),
    "rebalance_every_ms": OptionDescription(
        default="500", summary="how often the controller evens out leaders and replaces replicas that died"
    ),
    "replica_silence_ms": OptionDescription(
        default="400", summary="after how long behind its leader a follower in sync counts as out of sync"
    ),
    "retransmit_ms": OptionDescription(
        default="100", summary="how often a leader looks whom to send a partition again, and repeats its requests"
    ),
    "aim": OptionDescription(
        default="core",
        choices=("core", "controller", "owner"),
        summary="whom a fault aimed at the leader hits: the core's, the controller, or the leader of partition 0",
    ),
    "table_refresh_ms": OptionDescription(
        default="500", summary="after how long a client asks for the table again, unless a refusal comes first"
    ),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client asks again"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
    **{name: _CORE_OPTIONS[name] for name in _OF_THE_CORE},
}
"""Every option with its default."""


_PARTITIONS_MAX = 1_000
"""The whole table is one value in the core, stored anew at every change."""


class CoordinatedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    core_members: tuple[NodeId, ...]
    data_members: tuple[NodeId, ...]
    partitions: int
    replication_factor: int
    read_mode: str
    table_source: str
    rebalance_every_us: int
    replica_silence_us: int
    retransmit_us: int
    aim: str
    table_refresh_us: int
    request_timeout_us: int
    client_timeout_us: int
    core: ServicedSettings
    """What the core and its clients are given; leases and watches are on."""

    @classmethod
    def read(cls, options: Mapping[str, str], members: tuple[NodeId, ...]) -> CoordinatedSettings:
        """The settings of `options` for these nodes. Raises UsageError for one that cannot be used."""
        values = OptionValues("coordinated-kv", OPTIONS, options)
        core_size = values.number("core_size")
        settings = cls(
            core_members=members[:core_size],
            data_members=members[core_size:],
            partitions=values.number("partitions"),
            replication_factor=values.number("replication_factor"),
            read_mode=values.choice("read_mode"),
            table_source=values.choice("table_source"),
            rebalance_every_us=values.microseconds("rebalance_every_ms"),
            replica_silence_us=values.microseconds("replica_silence_ms"),
            retransmit_us=values.microseconds("retransmit_ms"),
            aim=values.choice("aim"),
            table_refresh_us=values.microseconds("table_refresh_ms"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
            core=_core_settings(tuple(values.text(name) for name in _OF_THE_CORE)),
        )
        settings._refuse_contradictions(len(members), core_size)
        return settings

    def _refuse_contradictions(self, nodes: int, core_size: int) -> None:
        if self.partitions > _PARTITIONS_MAX:
            raise UsageError(
                f"partitions is {self.partitions}, and the table of all of them is one value in the core.",
                f"Set it to {_PARTITIONS_MAX} at most.",
            )
        if len(self.data_members) < self.replication_factor:
            raise UsageError(
                f"{nodes} nodes are too few: {core_size} are the core (core_size), and {self.replication_factor} data"
                " nodes are needed to keep each partition (replication_factor).",
                f"Use --nodes {core_size + self.replication_factor} or more; or --option core_size=1, a core that"
                " cannot lose its only server.",
            )
        if self.replica_silence_us < 2 * self.retransmit_us:
            raise UsageError(
                "A follower would count as out of sync before anything is sent to it a second time:"
                " replica_silence_ms is below twice retransmit_ms.",
                "Raise replica_silence_ms.",
            )


@lru_cache(maxsize=64)
def _core_settings(values: tuple[str, ...]) -> ServicedSettings:
    # Read once for all nodes and clients of all runs of a campaign: it takes longer than to make one of them.
    return ServicedSettings.read({"services": "on", **dict(zip(_OF_THE_CORE, values, strict=True))})
