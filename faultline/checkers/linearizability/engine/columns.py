"""Operations as columns of integers: what the engine works on.

The kinds are those of `linearizability.operations`, and one more: APPEND puts a text behind the one it meets. Values
are numbers, 0 for the initial one, in order of first sight; what they stand for is kept beside, for display. Times are
any integers, so long as an operation's return is not before its call; at equal times calls come first. A return below
zero is that of a pending operation.

An APPEND's effect depends on the state it meets. Its *edges* say what it makes of which state: for each text `a` that a
get may see and that is still the beginning of an answer once `b` stands behind it, the edge (a, ab). From any other
state it leads to a state that no get can ever see.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["APPEND", "PENDING", "Columns", "Numbers"]

APPEND = 4
PENDING = -1


class Numbers(dict[Hashable, int]):
    """Dense numbers for hashable things, in order of first sight."""

    def __init__(self, known: Iterable[Hashable] = ()) -> None:
        super().__init__((thing, number) for number, thing in enumerate(known))

    def __missing__(self, thing: Hashable) -> int:
        number = self[thing] = len(self)
        return number


def _int32() -> array[int]:
    return array("i")


def _int64() -> array[int]:
    return array("q")


def _int8() -> array[int]:
    return array("b")


@dataclass(slots=True)
class Columns:
    """Operations of one or many keys. `keys` and `values` are what the numbers in `key`, `demand` and `produce` mean.

    Of an APPEND, `produce` and `demand` are the first of its edges and one past the last. `row` says where each
    operation stands in the history it comes from.
    """

    keys: list[Any]
    values: list[Hashable]
    key: array[int] = field(default_factory=_int32)
    kind: array[int] = field(default_factory=_int8)
    demand: array[int] = field(default_factory=_int32)
    produce: array[int] = field(default_factory=_int32)
    call: array[int] = field(default_factory=_int64)
    return_: array[int] = field(default_factory=_int64)
    row: array[int] = field(default_factory=_int64)
    edge_from: array[int] = field(default_factory=_int32)
    edge_to: array[int] = field(default_factory=_int32)

    def __len__(self) -> int:
        return len(self.kind)
