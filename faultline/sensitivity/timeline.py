"""One register over time: a possible order of its writes, and the values that it would have held without one of them.

The order is a guess that fits the reads: a write takes effect when it was acknowledged or first read, whichever came
first, and not while an earlier value was still read. An unacknowledged write that no client read never took effect.

With a `Slip` the register is replayed: a value is forgotten, or comes back, at some moment. Compare-and-sets that would
then have found another value are answered differently too, and their writes count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from faultline.sensitivity.moments import NEVER

__all__ = ["NOTHING", "Read", "Slip", "Timeline", "Write"]

NOTHING = -1
"""The place before the first write: the register is empty."""

_CLOSE = 1e-3
"""A distance smaller than that of two events."""


class Write(NamedTuple):
    """A change to `value` in `row`, which began and ended at these indices; `expected` is a 1-tuple for a swap.

    `outcome` is that of the history; a failed compare-and-set is here too, since it might have succeeded.
    """

    row: int
    value: Any
    begin: int
    end: int
    outcome: str
    expected: tuple[Any, ...] = ()


class Read(NamedTuple):
    """An answer `value` in `row`; `step` is its place within the row, where that holds several."""

    row: int
    value: Any
    begin: int
    end: int
    step: int = 0


class Slip(NamedTuple):
    """A fault at `moment`: `write` is forgotten if it stands, or its value comes back if it does not."""

    write: int
    moment: int
    comes_back: bool = False


class Timeline:
    """The writes of one register in the order in which they may have taken effect, and the reads."""

    def __init__(self, writes: Iterable[Write], reads: Iterable[Read]) -> None:
        every, self.reads = list(writes), list(reads)
        self.seen_by: dict[str, list[Read]] = {}
        for read in self.reads:
            self.seen_by.setdefault(repr(read.value), []).append(read)
        self.refused = [write for write in every if write.outcome == "fail"]
        effective = [
            write
            for write in every
            if write.outcome == "ok" or (write.outcome == "info" and repr(write.value) in self.seen_by)
        ]
        points = _points(effective, self.seen_by)
        order = sorted(range(len(effective)), key=points.__getitem__)
        self.writes = [effective[number] for number in order]
        self.points = [points[number] for number in order]
        self.place_of = {repr(write.value): place for place, write in enumerate(self.writes)}

    def stood_until(self, place: int) -> float:
        """Return when the write at `place` was overwritten; NEVER for the last."""
        return self.points[place + 1] if place + 1 < len(self.points) else NEVER

    def is_overwritten_after(self, moment: int) -> bool:
        """Return whether a write took effect after `moment`, so that the value of then is gone in any case."""
        return bool(self.points) and self.points[-1] > moment

    def certainly_older(self, place: int) -> int:
        """Return the newest write that had ended before the one at `place` began; NOTHING if none had."""
        begin = self.writes[place].begin
        older = [other for other in range(place) if self.writes[other].end < begin]
        return max(older, key=lambda other: self.writes[other].end, default=NOTHING)

    def value_at(self, place: int) -> Any:
        """Return the value of the write at `place`."""
        return None if place == NOTHING else self.writes[place].value

    def known_before(self, read: Read) -> int:
        """Return the place of the write whose value was read, if it was acknowledged before the read began, else
        NOTHING."""
        place = self.place_of.get(repr(read.value), NOTHING)
        if place == NOTHING or self.writes[place].outcome != "ok" or self.writes[place].end > read.begin:
            return NOTHING
        return place

    def replayed(self, slip: Slip) -> tuple[dict[int, bool], list[tuple[Read, Any]]]:
        """Return the answers that `slip` changes: the success of swaps, by row, and the reads with their values."""
        swaps: dict[int, bool] = {}
        states = self._states(slip, swaps)
        changed = []
        for read in self.reads:
            place = self.place_of.get(repr(read.value), NOTHING)
            after = max(read.begin, self.points[place] if place != NOTHING else 0)
            if read.begin < slip.moment or self._held(after) != read.value:
                continue
            value = next(value for point, value in reversed(states) if point <= after)
            if value != read.value:
                changed.append((read, value))
        return swaps, changed

    def _held(self, moment: float) -> Any:
        place = max((place for place, point in enumerate(self.points) if point <= moment), default=NOTHING)
        return self.value_at(place)

    def _states(self, slip: Slip, swaps: dict[int, bool]) -> Sequence[tuple[float, Any]]:
        """Return the states of the register with `slip`, each with its beginning."""
        lost = self.writes[slip.write].value
        before = self.value_at(slip.write - 1)
        due: list[tuple[float, Write | None]] = [*zip(self.points, self.writes), (slip.moment + _CLOSE, None)]
        due += [(float(write.end), write) for write in self.refused if write.begin > slip.moment]
        states: list[tuple[float, Any]] = [(-1, None)]
        for point, write in sorted(due, key=lambda item: item[0]):
            held = states[-1][1]
            if write is None:
                states.append((point, lost if slip.comes_back else before if held == lost else held))
            elif write.outcome == "fail":
                if write.expected == (held,) and self._held(point) != held:
                    swaps[write.row] = True
                    states.append((point, write.value))
            elif point > slip.moment and write.expected not in ((), (held,)):
                if write.outcome == "ok":
                    swaps[write.row] = False
            else:
                states.append((point, write.value))
        return states


def _points(writes: Sequence[Write], seen_by: dict[str, list[Read]]) -> list[float]:
    """Return when each write takes effect."""
    first_seen = [min((read.end for read in seen_by.get(repr(write.value), ())), default=NEVER) for write in writes]
    last_seen = [max((read.begin for read in seen_by.get(repr(write.value), ())), default=0) for write in writes]
    points = [float(min(write.end, seen)) for write, seen in zip(writes, first_seen)]
    # A value that is read after a later write took effect must have stood longer, so that write is moved before it
    # where its interval allows. From the last point back, because a move reaches only earlier points.
    for number in sorted(range(len(writes)), key=lambda number: -points[number]):
        later = [other for other in range(len(writes)) if points[number] < points[other] < last_seen[number]]
        for other in later:
            if writes[other].begin < points[number] and last_seen[other] <= last_seen[number]:
                points[other] = points[number] - _CLOSE
    by_value = {repr(write.value): number for number, write in enumerate(writes)}
    for number in sorted(range(len(writes)), key=lambda number: -points[number]):
        expected = writes[number].expected
        before = by_value.get(repr(expected[0])) if expected else None
        if before is not None and points[before] >= points[number]:
            points[before] = points[number] - _CLOSE
    return points
