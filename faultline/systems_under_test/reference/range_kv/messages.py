"""The messages of `range-kv`, and the events that its nodes report about themselves.

Marks that nodes and clients report with `sometimes`:

| mark | reached when |
|---|---|
| partition-split | a host has split a partition |
| split-repeated | a host was told again of a split that it had done |
| trigger-refused | the coordinator heard of a split that does not fit its table any more |
| partition-moved | a host has taken over a partition with data in it |
| install-repeated | a host was sent again a partition that it had taken over |
| stale-client-refused | a host refused a request of a client whose table is too old |
| early-client-refused | a host refused a request of a client whose table is ahead of the host |
| tasks-resumed | a restarted coordinator found tasks that were still open |
| scan-continued | a client went on with a scan after its table had changed |
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import KeyRange, Partition
from faultline.systems_under_test.patterns.data_partitioning.range_partition import Entries
from faultline.systems_under_test.patterns.data_partitioning.range_table import (
    HostPartition,
    MovePartition,
    SplitPartition,
)
from faultline.systems_under_test.reference.ranges.messages import (
    PartitionReady,
    RegisterMember,
    SplitTrigger,
    TableRequest,
    TableResponse,
)

__all__ = [
    "MESSAGES",
    "CompareAndSetKey",
    "DeleteKey",
    "InstallPartition",
    "KeyResponse",
    "KeysStored",
    "ReadKey",
    "RequestServed",
    "ScanKeys",
    "SizesChecked",
    "SplitProposed",
    "WriteKey",
]


class InstallPartition(msgspec.Struct, frozen=True, tag="install-partition"):
    """A partition with its data, from the host that let it go."""

    partition: Partition
    entries: Entries


class ReadKey(msgspec.Struct, frozen=True, tag="read-key"):
    """A client reads `key`."""

    request_number: int
    partition_id: int
    generation: int
    key: str


class WriteKey(msgspec.Struct, frozen=True, tag="write-key"):
    """A client writes `value` to `key`."""

    request_number: int
    partition_id: int
    generation: int
    key: str
    value: Any


class CompareAndSetKey(msgspec.Struct, frozen=True, tag="compare-and-set-key"):
    """A client writes `value` to `key`, if that holds `expected` now."""

    request_number: int
    partition_id: int
    generation: int
    key: str
    expected: Any
    value: Any


class DeleteKey(msgspec.Struct, frozen=True, tag="delete-key"):
    """A client deletes `key`."""

    request_number: int
    partition_id: int
    generation: int
    key: str


class ScanKeys(msgspec.Struct, frozen=True, tag="scan-keys"):
    """A client reads the range `wanted`, which lies within that of the partition by its table."""

    request_number: int
    partition_id: int
    generation: int
    wanted: KeyRange


class KeyResponse(msgspec.Struct, frozen=True, tag="key-response"):
    """The answer of a host to a client."""

    request_number: int
    value: Any = None
    error: str | None = None


MESSAGES: tuple[type[msgspec.Struct], ...] = (
    RegisterMember,
    HostPartition,
    SplitPartition,
    MovePartition,
    InstallPartition,
    PartitionReady,
    SplitTrigger,
    TableRequest,
    TableResponse,
    ReadKey,
    WriteKey,
    CompareAndSetKey,
    DeleteKey,
    ScanKeys,
    KeyResponse,
)
"""Every message that crosses the network."""


class KeysStored(msgspec.Struct, frozen=True):
    """Trace: the host stored keys of a partition, from `lowest` to `highest`."""

    partition: Partition
    lowest: str
    highest: str


class RequestServed(msgspec.Struct, frozen=True):
    """Trace: the host served a request for the partition under `asked`, while it held generation `held`."""

    partition_id: int
    asked: int
    held: int


class SplitProposed(msgspec.Struct, frozen=True):
    """Trace: the host proposes to split; `weight` is its size or load, which must have reached `least`."""

    partition_id: int
    reason: str
    weight: int
    least: int


class SizesChecked(msgspec.Struct, frozen=True):
    """Trace: the partitions of the host that are due and can be split: id, generation and size."""

    due: tuple[tuple[int, int, int], ...]
