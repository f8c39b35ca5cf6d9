"""The copies of partitions in the memory of one node: values, answers to clients, and the generation of each.

Only the owner of a generation numbers its writes, and a copy takes them without gaps. Answers are copied with the
values, so that a retried request is executed once, whichever member owns the partition by then.

*Limit.* The last answer to each client is kept for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, PartitionContent, Written
from faultline.systems_under_test.reference.data_grid.messages import CopyReached

__all__ = ["GridCopies", "GridCopy"]

_NOTHING = PartitionContent({}, {})


class GridCopy:
    """One copy; `at_risk` has, for each key written in a group without a majority, the value before that."""

    __slots__ = ("answers", "at_risk", "generation", "number", "values")

    def __init__(self, generation: int, number: int, content: PartitionContent, at_risk: dict[str, Any]) -> None:
        self.generation = generation
        self.number = number
        self.values = dict(content.values)
        self.answers: dict[str, Answer] = dict(content.answers)
        self.at_risk = dict(at_risk)

    def content(self) -> PartitionContent:
        """Return its values and answers, copied."""
        return PartitionContent(dict(self.values), dict(self.answers))

    def take(self, written: Written, *, is_at_risk: bool) -> None:
        """Take the next write."""
        if written.answer.error is None:
            if is_at_risk:
                self.at_risk.setdefault(written.key, self.values.get(written.key))
            self.values[written.key] = written.value
        self.answers[written.client] = written.answer
        self.number += 1


class GridCopies:
    """All copies of one node, by their partitions."""

    def __init__(self, ports: Ports) -> None:
        self._trace = ports.trace
        self._copies: dict[int, GridCopy] = {}

    def __iter__(self) -> Iterator[tuple[int, GridCopy]]:
        return iter(self._copies.items())

    def copy(self, partition: int) -> GridCopy | None:
        """Return the copy of `partition`; None when there is none here."""
        return self._copies.get(partition)

    def begin(self, partition: int, generation: int) -> GridCopy:
        """Return the owner's copy, which belongs to `generation` from now on; an empty one where there is none."""
        copy = self._copies.get(partition)
        if copy is None:
            copy = self._copies[partition] = GridCopy(generation, 0, _NOTHING, {})
        copy.generation = generation
        self._tell(partition, copy)
        return copy

    def install(self, partition: int, copy: GridCopy) -> GridCopy:
        """Take an owner's content unless the copy here has come as far; return the copy."""
        known = self._copies.get(partition)
        if known is not None and (known.generation, known.number) >= (copy.generation, copy.number):
            return known
        self._copies[partition] = copy
        self._tell(partition, copy)
        return copy

    def take(self, generation: int, number: int, written: Written, *, is_at_risk: bool) -> GridCopy | None:
        """Take an owner's next write if the copy here is of its generation; return the copy, None when it is not."""
        copy = self._copies.get(written.partition)
        if copy is None or copy.generation != generation:
            return None
        if number == copy.number + 1:
            copy.take(written, is_at_risk=is_at_risk)
            self._tell(written.partition, copy)
        return copy

    def drop(self, partition: int, generation: int) -> None:
        """Drop the copy if it is older than `generation`."""
        copy = self._copies.get(partition)
        if copy is not None and copy.generation < generation:
            del self._copies[partition]

    def clear(self) -> None:
        """Drop all copies."""
        self._copies.clear()

    def _tell(self, partition: int, copy: GridCopy) -> None:
        self._trace.emit(CopyReached(partition, copy.generation, copy.number))
