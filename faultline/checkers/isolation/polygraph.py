"""The dependencies that any order of the writes must respect, and the pairs of writes that it may order either way.

A *polygraph* (Papadimitriou, "The Serializability of Concurrent Database Updates", 1979) has known dependencies, and
for each two writers of a key a choice which of them came first. A choice adds dependencies: the write-write dependency,
and read-write dependencies from all readers of the earlier version to the later writer.

A history is serializable when the choices can be made such that no dependencies form a cycle. It is snapshot isolated
when they can be made such that every cycle has two read-write dependencies in a row (Fekete et al., TODS 2005; Cerone &
Gotsman, PODC 2016). The second becomes the first by doubling the nodes, one for having *arrived* at a transaction by a
read-write dependency, from which only others lead on: then forbidden cycles of either level are just cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple

from faultline.checkers.isolation.committed import INITIAL, Committed

__all__ = ["Arc", "Choice", "Dependency", "Level", "Polygraph", "arcs_of", "polygraph_of"]

Level = Literal["snapshot-isolation", "serializability"]

Arc = tuple[int, int]
"""An arc of the graph that must not have a cycle."""


class Dependency(NamedTuple):
    """`target` depends on `source`: it read its write (wr), overwrote it (ww), overwrote what it had read (rw), or
    followed in its session (so)."""

    kind: Literal["wr", "ww", "rw", "so"]
    source: int
    target: int
    key: Any = None


class Choice(NamedTuple):
    """Two writers of a key, of which either may have come first; `first` is taken to have been first."""

    key: Any
    first: int
    second: int


@dataclass(slots=True)
class Polygraph:
    """The known dependencies, the open choices, and the readers of each version."""

    known: list[Dependency] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    readers: dict[tuple[Any, int], list[int]] = field(default_factory=dict)

    def brought_by(self, choice: Choice, *, reverse: bool = False) -> Iterator[Dependency]:
        """Yield the dependencies that `choice` adds when `first` came first, or the other one with `reverse`."""
        first, second = (choice.second, choice.first) if reverse else (choice.first, choice.second)
        yield Dependency("ww", first, second, choice.key)
        for reader in self.readers.get((choice.key, first), ()):
            if reader != second:
                yield Dependency("rw", reader, second, choice.key)


def polygraph_of(committed: Committed, expected: Sequence[int], *, session_order: bool) -> Polygraph:
    """Return the polygraph of `committed`; `expected` is the order in which they are expected to have taken effect."""
    polygraph = Polygraph()
    writers: dict[Any, list[int]] = {}
    for number in committed.numbers():
        for key in committed.transactions[number].writes:
            writers.setdefault(key, []).append(number)
    for number in committed.numbers():
        for key, writer in dict.fromkeys(committed.transactions[number].reads):
            if writer == INITIAL:
                later = (other for other in writers.get(key, ()) if other != number)
                polygraph.known += [Dependency("rw", number, other, key) for other in later]
            else:
                polygraph.known.append(Dependency("wr", writer, number, key))
                polygraph.readers.setdefault((key, writer), []).append(number)
    if session_order:
        for session in committed.sessions:
            polygraph.known += [Dependency("so", before, after) for before, after in pairwise(session)]
    polygraph.choices = sorted(_choices(writers, expected), key=lambda choice: _moment(choice, expected))
    return polygraph


def arcs_of(level: Level, size: int, dependencies: Iterable[Dependency]) -> Iterator[Arc]:
    """Yield dependencies as arcs. For snapshot isolation node n + size is n reached by a read-write dependency."""
    for kind, source, target, _ in dependencies:
        if level == "serializability":
            yield source, target
        elif kind == "rw":
            yield source, target + size
        else:
            yield source, target
            yield source + size, target


def _choices(writers: dict[Any, list[int]], expected: Sequence[int]) -> Iterator[Choice]:
    for key, numbers in writers.items():
        ordered = sorted(numbers, key=expected.__getitem__)
        yield from (Choice(key, first, second) for first, second in combinations(ordered, 2))


def _moment(choice: Choice, expected: Sequence[int]) -> tuple[int, int]:
    return expected[choice.second], -expected[choice.first]
