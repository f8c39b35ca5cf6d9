"""A time axis that bends: short intervals get room for their labels, quiet stretches are cut.

Between two consecutive events the axis is linear, and it never turns back: an event left of another one in the figure
happened before it. (Porcupine's visualiser warps time for the same reason.) A stretch many times longer than the usual
distance between events is drawn at a fixed small width and marked as a break.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Break", "Room", "TimeAxis", "bent_axis"]

_LEAST = 12.0
"""The least distance of two different moments in pixels: enough to see which came first."""
_MANY = 80
"""The number of moments above which half of that distance must suffice."""
_BREAK = 46.0
"""The width in pixels of a quiet stretch that is cut."""
_QUIET = 8
"""The factor by which a quiet stretch is longer than the median one."""
_MOST_BREAKS = 6


@dataclass(frozen=True, slots=True)
class Room:
    """A demand on the axis: at least `pixels` between the moments `start_us` and `stop_us`."""

    start_us: int
    stop_us: int
    pixels: float


@dataclass(frozen=True, slots=True)
class Break:
    """A quiet stretch that is not drawn to scale: from `left` to `right` in pixels, `length_us` in time."""

    left: float
    right: float
    length_us: int


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Moments, their places, and the stretches that are cut."""

    times: tuple[int, ...]
    places: tuple[float, ...]
    breaks: tuple[Break, ...]

    @property
    def left(self) -> float:
        """The beginning of the axis, in pixels."""
        return self.places[0]

    @property
    def right(self) -> float:
        """The end of the axis, in pixels."""
        return self.places[-1]

    def place(self, time_us: int) -> float:
        """Return the place of `time_us`; moments outside are at the nearer end."""
        if time_us <= self.times[0]:
            return self.left
        if time_us >= self.times[-1]:
            return self.right
        after = bisect_right(self.times, time_us)
        start, stop = self.times[after - 1], self.times[after]
        share = (time_us - start) / (stop - start)
        return self.places[after - 1] + share * (self.places[after] - self.places[after - 1])

    def in_break(self, time_us: int) -> bool:
        """Return whether `time_us` is strictly inside a stretch that is cut."""
        return any(stretch.left < self.place(time_us) < stretch.right for stretch in self.breaks)

    def ticks(self, distance: float, first: Iterable[int] = ()) -> list[int]:
        """Return the moments to write below the axis, at least `distance` pixels apart; those in `first` have
        priority."""
        chosen: list[int] = []
        for time_us in (*first, *self.times):
            if all(abs(self.place(time_us) - self.place(other)) >= distance for other in chosen):
                chosen.append(time_us)
        return sorted(chosen)


def bent_axis(
    moments: Iterable[int], rooms: Sequence[Room], left: float, width: float, fine: Iterable[int] = ()
) -> TimeAxis:
    """Return an axis over `moments` from `left`, about `width` pixels wide, wider when the `rooms` need more.

    `fine` moments are kept apart too, but do not count when quiet stretches are sought, and none of them is in a
    stretch that is cut: when a quiet stretch contains some, its quiet parts are cut."""
    main = sorted(set(moments))
    if len(main) == 1:
        main.append(main[0] + 1)
    quiet, usual_us = _quiet_stretches(main)
    times = sorted({*main, *(time_us for time_us in fine if main[0] < time_us < main[-1])})
    pairs = list(itertools.pairwise(times))
    gaps = [stop - start for start, stop in pairs]
    cut = frozenset(index for index, pair in enumerate(pairs) if _is_quiet(pair, quiet, usual_us))
    least = _LEAST if len(pairs) <= _MANY else _LEAST / 2
    widths = _linear_widths(gaps, cut, width, least)
    _make_room(widths, times, rooms, cut)
    _fill(widths, cut, width)
    places = [left, *(left + reached for reached in itertools.accumulate(widths))]
    breaks = tuple(Break(places[index], places[index + 1], gaps[index]) for index in sorted(cut))
    return TimeAxis(tuple(times), tuple(places), breaks)


def _is_quiet(pair: tuple[int, int], quiet: Iterable[tuple[int, int]], usual_us: float) -> bool:
    inside = any(start <= pair[0] and pair[1] <= stop for start, stop in quiet)
    return inside and pair[1] - pair[0] > _QUIET * usual_us


def _quiet_stretches(times: list[int]) -> tuple[frozenset[tuple[int, int]], float]:
    stretches = list(itertools.pairwise(times))
    usual = median(stop - start for start, stop in stretches)
    longest_first = sorted(stretches, key=lambda stretch: (stretch[0] - stretch[1], stretch))
    return frozenset(pair for pair in longest_first[:_MOST_BREAKS] if pair[1] - pair[0] > _QUIET * usual), usual


def _linear_widths(gaps: list[int], cut: frozenset[int], width: float, least: float) -> list[float]:
    drawn = sum(gap for index, gap in enumerate(gaps) if index not in cut)
    scale = max(0.0, width - _BREAK * len(cut)) / max(1, drawn)
    return [_BREAK if index in cut else max(least, gap * scale) for index, gap in enumerate(gaps)]


def _make_room(widths: list[float], times: list[int], rooms: Sequence[Room], cut: frozenset[int]) -> None:
    index_of = {time_us: index for index, time_us in enumerate(times)}
    for room in sorted(rooms, key=lambda room: (room.stop_us, room.start_us)):
        first, last = index_of[room.start_us], index_of[room.stop_us]
        missing = room.pixels - sum(widths[first:last])
        stretchable = [index for index in range(first, last) if index not in cut] or list(range(first, last))
        if missing > 0 and stretchable:
            total = sum(widths[index] for index in stretchable)
            for index in stretchable:
                widths[index] += missing * widths[index] / total


def _fill(widths: list[float], cut: frozenset[int], width: float) -> None:
    stretchable = [index for index in range(len(widths)) if index not in cut]
    spare = width - sum(widths)
    if spare > 0 and stretchable:
        total = sum(widths[index] for index in stretchable)
        for index in stretchable:
            widths[index] += spare * widths[index] / total
