"""The size of a key-range partition without reading all of its keys: a sum for each block of neighbours.

A check that adds up every key of a large partition costs as much as reading it. Instead the sizes of *blocks* of
neighbouring keys are kept up to date with each change. They answer both questions at once: the exact size of the
partition, and the place of its half, up to one block. A block that has grown too large is divided, and only its own
keys are read for that.

Source: Patterns of Distributed Systems ch. 20 names it for TiKV, whose stores keep the properties of ranges of keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from faultline.systems_under_test.patterns.data_partitioning.key_range_partitions import Partition
from faultline.systems_under_test.patterns.data_partitioning.range_partition import (
    Entries,
    RangePartition,
    size_of,
)

__all__ = ["KeptSizes", "with_kept_sizes"]

_BLOCKS_PER_PARTITION = 16


class KeptSizes(RangePartition):
    """A partition that knows the sizes of its blocks; a block holds less than twice `block_bytes`, or one key."""

    block_bytes = 64

    def __init__(self, info: Partition, entries: Entries | None = None) -> None:
        super().__init__(info)
        self._total = 0
        self._starts = [info.range.start]
        self._sums = [0]
        for key, value in entries or ():
            self.put(key, value)

    def put(self, key: str, value: Any) -> None:
        """Write, and count the bytes that the change adds."""
        before = self._counted(key)
        super().put(key, value)
        self._add(key, size_of(key, value) - before)

    def delete(self, key: str) -> None:
        """Remove, and count the bytes that the change takes away."""
        before = self._counted(key)
        super().delete(key)
        self._add(key, -before)

    def size(self) -> int:
        """Return the kept size, without a look at any key."""
        return self._total

    def sizes(self) -> list[tuple[str, int]]:
        """Return the sizes of the blocks that are not empty, each under the key it begins with."""
        return [(start, size) for start, size in zip(self._starts, self._sums, strict=True) if size]

    def _counted(self, key: str) -> int:
        return size_of(key, self.get(key)) if self.has(key) else 0

    def _add(self, key: str, change: int) -> None:
        self._total += change
        block = bisect_right(self._starts, key) - 1
        self._sums[block] += change
        if self._sums[block] >= 2 * self.block_bytes:
            self._divide(block)

    def _divide(self, block: int) -> None:
        """Cut the block at the first key with half of its bytes before it, if it has a second key."""
        keys = self._keys_of(block)
        below = 0
        for number, key in enumerate(keys):
            if number and (2 * below >= self._sums[block] or number == len(keys) - 1):
                self._starts.insert(block + 1, key)
                self._sums[block : block + 1] = [below, self._sums[block] - below]
                return
            below += self._counted(key)

    def _keys_of(self, block: int) -> list[str]:
        first = bisect_left(self.keys, self._starts[block])
        is_last = block + 1 == len(self._starts)
        return self.keys[first : None if is_last else bisect_left(self.keys, self._starts[block + 1])]


def with_kept_sizes(partition: type[RangePartition], size_max: int) -> type[RangePartition]:
    """Return `partition` with kept sizes, in blocks that suit partitions of up to `size_max` bytes."""
    block_bytes = max(1, size_max // _BLOCKS_PER_PARTITION)
    return type("PartitionWithKeptSizes", (KeptSizes, partition), {"block_bytes": block_bytes})
