"""The shapes of cycles, and their names.

A cycle of dependencies means that no order of the transactions explains their reads. How bad it is depends on how many
of its edges are anti-dependencies (`rw`), and where (Adya, *Weak Consistency*; Cerone & Gotsman, *Analysing Snapshot
Isolation*, PODC 2016):

| shape | edges |
|---|---|
| G0 | only ww |
| G1c | ww and at least one wr |
| G-single | exactly one rw |
| G-nonadjacent | at least two rw, no two in a row: forbidden by snapshot isolation |
| G2 | at least two rw |

`-item` is added when every rw is about a single object, not a predicate. Each shape has two variants: `-process` needs
at least one step of the process order, `-realtime` at least one of the real-time order. G2 here means two adjacent rw
somewhere, since the others have their own names.

A step may stand for two edges at once: of kind rw and wr it is an anti-dependency followed by a dependency, by way of
an unknown transaction. It counts as one rw, and the next rw does not follow it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faultline.checkers.transactions.edges import EdgeKind

__all__ = ["SHAPES", "CycleShape", "Machine", "classify", "shapes_for"]

_DEPENDENCY = EdgeKind.WW | EdgeKind.WR
_ANTI = EdgeKind.RW | EdgeKind.PREDICATE_RW
_ORDERS = (EdgeKind(0), EdgeKind.PROCESS, EdgeKind.REALTIME)
_KINDS = (
    *EdgeKind,
    EdgeKind.RW | EdgeKind.WR,
    *(kind | order for kind in (EdgeKind.WW, EdgeKind.RW) for order in _ORDERS[1:]),
)

_FORBIDDEN = -1


@dataclass(frozen=True, slots=True)
class CycleShape:
    """A wanted shape: the kinds of edges it may use, the kind that one edge must have, and its number of rw edges.

    `rw_count` is the least number of rw edges, exact when it is below 2; `adjacent` allows two in a row.
    `variant` is the order (process or realtime) of which there must be a step, 0 for none.
    """

    name: str
    anchor: EdgeKind
    allowed: EdgeKind
    rw_count: int
    adjacent: bool
    variant: EdgeKind

    @property
    def base(self) -> str:
        """The name without `-process` or `-realtime`."""
        return self.name.removesuffix("-process").removesuffix("-realtime")

    @property
    def is_of_dependencies(self) -> bool:
        """True when no transaction on such a cycle misses a write of the next: G0 and G1c."""
        return not self.allowed & _ANTI


class Machine:
    """A machine that follows a walk and tells whether it may still become, and whether it is, a cycle of one shape.

    A state holds the number of rw edges (up to 2), whether the last edge was one, and whether the variant's order was
    used.
    """

    def __init__(self, shape: CycleShape) -> None:
        self._shape = shape
        states = range(12)
        self.moves = [{int(kind): self._move(state, kind) for kind in _KINDS} for state in states]
        self.first = {int(kind): self._first(kind) for kind in _KINDS}
        self.accepts = [self._accepts(state) for state in states]

    def _first(self, kind: EdgeKind) -> int:
        return self._move(0, kind) if kind & self._shape.anchor else _FORBIDDEN

    def _move(self, state: int, kind: EdgeKind) -> int:
        count, last_rw, used = state >> 2, bool(state & 2), bool(state & 1)
        shape = self._shape
        if kind & ~shape.allowed:
            return _FORBIDDEN
        rw = bool(kind & _ANTI)
        if rw and (shape.rw_count == 0 or (shape.rw_count == 1 and count == 1)):
            return _FORBIDDEN
        if rw and last_rw and not shape.adjacent:
            return _FORBIDDEN
        used = used or bool(kind & shape.variant)
        ends_in_rw = rw and not kind & EdgeKind.WR
        return min(2, count + rw) << 2 | ends_in_rw << 1 | used

    def _accepts(self, state: int) -> bool:
        count, last_rw, used = state >> 2, bool(state & 2), bool(state & 1)
        shape = self._shape
        closes = shape.adjacent or shape.rw_count < 2 or not last_rw
        return count >= shape.rw_count and closes and (used or not shape.variant)


def _shapes() -> list[CycleShape]:
    item, any_rw = EdgeKind.RW, _ANTI
    bases = [
        ("G0", EdgeKind.WW, EdgeKind.WW, 0, False),
        ("G1c", EdgeKind.WR, _DEPENDENCY, 0, False),
        ("G-single-item", item, _DEPENDENCY | item, 1, False),
        ("G-single", EdgeKind.PREDICATE_RW, _DEPENDENCY | any_rw, 1, False),
        ("G-nonadjacent-item", item, _DEPENDENCY | item, 2, False),
        ("G-nonadjacent", EdgeKind.PREDICATE_RW, _DEPENDENCY | any_rw, 2, False),
        ("G2-item", item, _DEPENDENCY | item, 2, True),
        ("G2", EdgeKind.PREDICATE_RW, _DEPENDENCY | any_rw, 2, True),
    ]
    variants = [("", EdgeKind(0)), ("-process", EdgeKind.PROCESS), ("-realtime", EdgeKind.REALTIME)]
    return [
        CycleShape(name + suffix, anchor, allowed | variant, rw_count, adjacent, variant)
        for suffix, variant in variants
        for name, anchor, allowed, rw_count, adjacent in bases
    ]


SHAPES: Sequence[CycleShape] = tuple(_shapes())
"""All 24 shapes, worst first."""


def shapes_for(process: bool, realtime: bool) -> list[CycleShape]:
    """Return the shapes that can be found when these orders are part of the graph."""
    absent = EdgeKind(0) if process else EdgeKind.PROCESS
    absent |= EdgeKind(0) if realtime else EdgeKind.REALTIME
    return [shape for shape in SHAPES if not shape.variant & absent]


def classify(kinds: Sequence[EdgeKind]) -> str:
    """Return the name of the cycle whose edges have these kinds, in order."""
    count = sum(1 for kind in kinds if kind & _ANTI)
    pairs = zip(kinds, [*kinds[1:], kinds[0]], strict=True)
    adjacent = any(kind & _ANTI and not kind & EdgeKind.WR and after & _ANTI for kind, after in pairs)
    if count == 0:
        base = "G1c" if any(kind & EdgeKind.WR for kind in kinds) else "G0"
    elif count == 1:
        base = "G-single"
    else:
        base = "G2" if adjacent else "G-nonadjacent"
    item = "-item" if count and not any(kind & EdgeKind.PREDICATE_RW for kind in kinds) else ""
    together = EdgeKind(0)
    for kind in kinds:
        together |= kind
    order = "-realtime" if together & EdgeKind.REALTIME else "-process" if together & EdgeKind.PROCESS else ""
    return base + item + order
