"""The options of the data nodes of `coordinated-kv`: the spread and the copies of data, and times."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.harness.errors import UsageError
from faultline.harness.options import TUNING
from faultline.systems_under_test.reference.shared.settings import Choice, Milliseconds, Number, Settings

__all__ = ["DataNodeSettings"]

_PARTITIONS_MAX = 1_000
"""The whole table is one value in the core, stored anew at every change."""


class DataNodeSettings(Settings, frozen=True):
    """The options of data nodes, read and checked; times in microseconds."""

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
