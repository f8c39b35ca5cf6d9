"""The options of `partitioned-kv`: how many partitions, who gets them, when they move, and who counts as dead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TOKENS_PER_NODE
from faultline.systems_under_test.reference.raft.settings import RaftSettings
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "PartitionSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "partitions": OptionDescription(default="30", summary="how many partitions there are, for the life of the cluster"),
    "core_size": OptionDescription(
        default="3", summary="how many of the nodes, from the first on, also keep the directory in a replicated log"
    ),
    "minimum_cluster_size": OptionDescription(
        default="3", summary="how many members must live before partitions are first assigned"
    ),
    "assignment": OptionDescription(
        default="round-robin",
        choices=("round-robin", "rendezvous", "token-ring"),
        summary="who gets which partition at first: in turn, by the hash of member and partition together, or whose"
        " token comes next on a circle (then those who join get what their tokens take, and loads are not evened out)",
    ),
    "tokens_per_node": OptionDescription(
        default=str(TOKENS_PER_NODE), summary="how many places on the circle a node has (assignment token-ring)"
    ),
    "late_nodes": OptionDescription(default="0", summary="how many nodes, from the last on, join later than the rest"),
    "join_after_ms": OptionDescription(default="1500", summary="how much later they join"),
    "reassign_every_ms": OptionDescription(
        default="0", summary="how often an administrator asks for partitions to be reassigned; 0 is never"
    ),
    "hand_on": OptionDescription(
        default="0",
        summary="how many partitions change hands at a reassignment that finds the loads even: 0, except to test moves",
    ),
    "node_heartbeat_ms": OptionDescription(default="200", summary="how often a member shows that it lives"),
    "membership_check_ms": OptionDescription(
        default="1000", summary="how often the coordinator looks who was silent for longer than this"
    ),
    "table_refresh_ms": OptionDescription(
        default="500", summary="after how long a client asks for the table again, unless a refusal comes first"
    ),
    "snapshot_every_entries": OptionDescription(
        default="10000", summary="entries of a node's log between two snapshots, below which it is cut short"
    ),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client asks again"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up: outcome unknown"),
}
"""Every option with its default."""


class PartitionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    partitions: int
    core_size: int
    minimum_cluster_size: int
    assignment: str
    tokens_per_node: int
    late_nodes: int
    join_after_us: int
    reassign_every_us: int
    hand_on: int
    node_heartbeat_us: int
    membership_check_us: int
    table_refresh_us: int
    snapshot_every_entries: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str], nodes: int) -> PartitionSettings:
        """The settings of `options` for a cluster of `nodes`. Raises UsageError for one that cannot be used."""
        values = OptionValues("partitioned-kv", OPTIONS, options)
        settings = cls(
            partitions=values.number("partitions"),
            core_size=min(values.number("core_size"), nodes),
            minimum_cluster_size=values.number("minimum_cluster_size"),
            assignment=values.choice("assignment"),
            tokens_per_node=values.number("tokens_per_node"),
            late_nodes=values.number("late_nodes", least=0),
            join_after_us=values.microseconds("join_after_ms"),
            reassign_every_us=1_000 * values.number("reassign_every_ms", least=0),
            hand_on=values.number("hand_on", least=0),
            node_heartbeat_us=values.microseconds("node_heartbeat_ms"),
            membership_check_us=values.microseconds("membership_check_ms"),
            table_refresh_us=values.microseconds("table_refresh_ms"),
            snapshot_every_entries=values.number("snapshot_every_entries"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )
        settings._refuse_contradictions(nodes)
        return settings

    def _refuse_contradictions(self, nodes: int) -> None:
        if self.minimum_cluster_size > nodes:
            raise UsageError(
                f"minimum_cluster_size is {self.minimum_cluster_size}, and there are only {nodes} nodes: partitions"
                " would never be assigned.",
                f"Set it to {nodes} at most.",
            )
        if self.late_nodes >= nodes:
            raise UsageError(
                f"late_nodes is {self.late_nodes} of {nodes} nodes: nobody would be there at first.",
                f"Set it to {nodes - 1} at most.",
            )
        if self.membership_check_us < 2 * self.node_heartbeat_us:
            raise UsageError(
                "A member would be taken for dead when one heartbeat is lost: membership_check_ms is below twice"
                " node_heartbeat_ms.",
                "Raise membership_check_ms.",
            )

    def core(self) -> RaftSettings:
        """Return the settings of the replicated log that holds the directory: the defaults."""
        return _core_settings()


@cache
def _core_settings() -> RaftSettings:
    settings: RaftSettings = RaftSettings.read({})
    return settings
