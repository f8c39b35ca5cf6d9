"""The options of `range-kv`: where ranges begin, when they are split and where, and how long anybody waits."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import UnsuitableSplit, ranges_between
from faultline.systems_under_test.reference.shared.option_values import OptionValues

__all__ = ["OPTIONS", "RangeSettings"]

OPTIONS: dict[str, OptionDescription] = {
    "splits": OptionDescription(
        default="",
        is_text=True,
        summary="the keys at which the first ranges begin, ascending, with commas between: b,d; none is one range",
    ),
    "members_min": OptionDescription(
        default="3", summary="how many nodes must be there before the first table is made; fewer in a smaller cluster"
    ),
    "split_by": OptionDescription(
        default="size",
        choices=("size", "load", "size-and-load", "nothing"),
        summary="what makes a partition too big: its bytes, the requests it gets, either, or nothing",
    ),
    "split_check_ms": OptionDescription(default="1000", summary="how often a host looks at its partitions"),
    "partition_size_max": OptionDescription(
        default="1000", summary="the bytes of keys and values at which a partition is split"
    ),
    "partition_load_max": OptionDescription(
        default="100", summary="the requests between two checks at which a partition is split"
    ),
    "sizes": OptionDescription(
        default="scan",
        choices=("scan", "blocks"),
        summary="how a host knows sizes: it looks at every key, or keeps a sum for each block of keys",
    ),
    "split_into": OptionDescription(
        default="one-new",
        choices=("one-new", "two-new"),
        summary="the parent keeps its id and shrinks, or is retired for two new partitions",
    ),
    "spread": OptionDescription(
        default="after-load-split",
        choices=("never", "after-load-split", "after-split"),
        summary="when the new half moves to the live node with the fewest partitions",
    ),
    "task_retry_ms": OptionDescription(default="50", summary="how often the coordinator repeats what is not confirmed"),
    "member_timeout_ms": OptionDescription(default="500", summary="after which silence a node is given no partition"),
    "snapshot_every_entries": OptionDescription(
        default="10000", summary="entries of a node's log between two snapshots, below which it is cut short"
    ),
    "request_timeout_ms": OptionDescription(default="300", summary="after how long a client reads again"),
    "client_timeout_ms": OptionDescription(default="1000", summary="after how long a client gives up"),
}
"""Every option with its default."""


class RangeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options, read and checked; times in microseconds."""

    splits: tuple[str, ...]
    members_min: int
    splits_by_size: bool
    splits_by_load: bool
    split_check_us: int
    partition_size_max: int
    partition_load_max: int
    sizes: str
    keeps_parent: bool
    spread: str
    task_retry_us: int
    member_timeout_us: int
    snapshot_every_entries: int
    request_timeout_us: int
    client_timeout_us: int

    @classmethod
    def read(cls, options: Mapping[str, str]) -> RangeSettings:
        """The settings of `options`. Raises UsageError for one that cannot be used."""
        values = OptionValues("range-kv", OPTIONS, options)
        split_by = values.choice("split_by")
        return cls(
            splits=_splits(values.text("splits")),
            members_min=values.number("members_min"),
            splits_by_size=split_by in ("size", "size-and-load"),
            splits_by_load=split_by in ("load", "size-and-load"),
            split_check_us=values.microseconds("split_check_ms"),
            partition_size_max=values.number("partition_size_max"),
            partition_load_max=values.number("partition_load_max"),
            sizes=values.choice("sizes"),
            keeps_parent=values.choice("split_into") == "one-new",
            spread=values.choice("spread"),
            task_retry_us=values.microseconds("task_retry_ms"),
            member_timeout_us=values.microseconds("member_timeout_ms"),
            snapshot_every_entries=values.number("snapshot_every_entries"),
            request_timeout_us=values.microseconds("request_timeout_ms"),
            client_timeout_us=values.microseconds("client_timeout_ms"),
        )


def _splits(text: str) -> tuple[str, ...]:
    splits = tuple(text.split(",")) if text else ()
    try:
        ranges_between(splits)
    except UnsuitableSplit as error:
        raise UsageError(f"Option splits cannot be {text!r}: {error}.", "Give keys in order, as in b,d.") from error
    return splits
