"""The options of `range-kv`: where ranges begin, when and where they are split, and how long nodes and clients wait."""

from __future__ import annotations

from typing import Annotated, ClassVar

from faultline.systems_under_test.reference.ranges.splits import Splits
from faultline.systems_under_test.reference.shared.settings import (
    Choice,
    Milliseconds,
    Number,
    Settings,
    options_of,
)

__all__ = ["CHECKS_BETWEEN_PROPOSALS", "OPTIONS", "RangeSettings"]

CHECKS_BETWEEN_PROPOSALS = 5
"""The checks of sizes after which a split is proposed again, when it was not made (KRP-R15)."""


class RangeSettings(Settings, frozen=True):
    """The options, read and checked; times in microseconds."""

    system: ClassVar[str] = "range-kv"

    splits: Annotated[
        tuple[str, ...],
        Splits(),
        "the keys at which the first ranges begin, ascending, with commas between: b,d; none is one range",
    ]
    members_min: Annotated[
        int, Number(3), "the number of nodes needed before the first table is made; fewer in a smaller cluster"
    ]
    split_by: Annotated[
        str,
        Choice(("size", "load", "size-and-load", "nothing")),
        "the reason to split a partition: its bytes, the requests it gets, either, or nothing",
    ]
    split_check_us: Annotated[int, Milliseconds(1000), "how often a host checks its partitions"]
    partition_size_max: Annotated[int, Number(1000), "the bytes of keys and values at which a partition is split"]
    partition_load_max: Annotated[int, Number(100), "the requests between two checks at which a partition is split"]
    sizes: Annotated[
        str,
        Choice(("scan", "blocks")),
        "the way a host finds sizes: it reads every key, or keeps a sum for each block of keys",
    ]
    split_into: Annotated[
        str,
        Choice(("one-new", "two-new")),
        "the parent keeps its id and shrinks, or is retired for two new partitions",
    ]
    spread: Annotated[
        str,
        Choice(("never", "after-load-split", "after-split"), default="after-load-split"),
        "when the new half moves to the live node with the fewest partitions",
    ]
    task_retry_us: Annotated[int, Milliseconds(50), "how often the coordinator repeats tasks that are not confirmed"]
    member_timeout_us: Annotated[int, Milliseconds(500), "the silence after which a node is given no partition"]
    snapshot_every_entries: Annotated[
        int, Number(10000), "entries of a node's log between two snapshots, below which it is cut short"
    ]
    request_timeout_us: Annotated[int, Milliseconds(300), "the time after which a client reads again"]
    client_timeout_us: Annotated[int, Milliseconds(1000), "the time after which a client gives up"]

    @property
    def splits_by_size(self) -> bool:
        """True if a partition is split for its bytes."""
        return self.split_by in ("size", "size-and-load")

    @property
    def splits_by_load(self) -> bool:
        """True if a partition is split for the requests it gets."""
        return self.split_by in ("load", "size-and-load")

    @property
    def keeps_parent(self) -> bool:
        """True if a partition that is split lives on, smaller, under its own id."""
        return self.split_into == "one-new"


OPTIONS = options_of(RangeSettings)
"""Every option with its default."""
