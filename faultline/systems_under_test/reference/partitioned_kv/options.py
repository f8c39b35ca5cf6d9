"""The options of `partitioned-kv`: the number of partitions, their assignment, their moves, and all times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_partitioning.token_ring import TOKENS_PER_NODE
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings, options_of

__all__ = ["OPTIONS", "PartitionSettings"]


class PartitionSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "partitioned-kv"

    partitions: Annotated[int, Number(30), "the number of partitions, fixed for the life of the cluster"]
    core_size: Annotated[
        int, Number(3), "the number of nodes, from the first on, that also keep the directory in a replicated log"
    ]
    minimum_cluster_size: Annotated[
        int, Number(3), "the number of live members needed before partitions are first assigned"
    ]
    assignment: Annotated[
        str,
        Choice(("round-robin", "rendezvous", "token-ring")),
        "the first owners of partitions: in turn, by the hash of member and partition together, or by the next token"
        " on a circle (nodes that join then get the partitions of their tokens, and loads are not evened out)",
    ]
    tokens_per_node: Annotated[
        int, Number(TOKENS_PER_NODE), "the number of a node's places on the circle (assignment token-ring)"
    ]
    late_nodes: Annotated[
        int, Number(0, least=0), "the number of nodes, from the last on, that join later than the rest"
    ]
    join_after_us: Annotated[int, Milliseconds(1500), "the delay with which the late nodes join"]
    reassign_every_us: Annotated[
        int, Milliseconds(0, least=0), "how often an administrator asks for partitions to be reassigned; 0 is never"
    ]
    hand_on: Annotated[
        int,
        Number(0, least=0),
        "the number of partitions that change hands when a reassignment finds even loads: 0, except to test moves",
    ]
    node_heartbeat_us: Annotated[int, Milliseconds(200), "how often a member shows that it lives"]
    membership_check_us: Annotated[
        int,
        Milliseconds(1000),
        "the silence after which a member counts as failed, and how often the coordinator checks",
    ]
    table_refresh_us: Annotated[
        int, Milliseconds(500), "the time after which a client asks for the table again, unless a refusal comes first"
    ]
    snapshot_every_entries: Annotated[
        int, Number(10000), "entries of a node's log between two snapshots, below which it is cut short"
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client asks again"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up: outcome unknown"]

    @classmethod
    def for_cluster(cls, options: Mapping[str, str], nodes: int) -> PartitionSettings:
        """Return the settings of `options` for `nodes` nodes. Raise `UsageError` for one that cannot be used."""
        settings = cls.read(options)
        if settings.minimum_cluster_size > nodes:
            raise UsageError(
                f"minimum_cluster_size is {settings.minimum_cluster_size}, and there are only {nodes} nodes:"
                " partitions would never be assigned.",
                f"Set it to {nodes} at most.",
            )
        if settings.late_nodes >= nodes:
            raise UsageError(
                f"late_nodes is {settings.late_nodes} of {nodes} nodes: no node would be there at first.",
                f"Set it to {nodes - 1} at most.",
            )
        return settings

    def check(self) -> None:
        """Raise `UsageError` for values that contradict each other."""
        if self.membership_check_us < 2 * self.node_heartbeat_us:
            raise UsageError(
                "A member would be taken for dead when one heartbeat is lost: membership_check_ms is below twice"
                " node_heartbeat_ms.",
                "Raise membership_check_ms.",
            )


OPTIONS = options_of(PartitionSettings)
"""Every option with its default."""
