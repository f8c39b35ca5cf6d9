"""The latency of operations, inside and outside faults: a scatter on a logarithmic scale with an equivalent table.

There are no averages: a mean over two modes describes neither. Operations that were never answered are drawn at the
upper edge. Leaving them out would make a dead store look fast ("coordinated omission" in its crudest form). Each
function has its own shape; faults are hatched and named. At most two thousand points of a long run are drawn; the
fastest and the slowest operation of every slice of time are always among them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from faultline.harness.history import OPEN, History
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.reports.fault_choice import MOST_FAULTS, settled_faults
from faultline.reports.legend import fault_family
from faultline.reports.sentences import decimals_for
from faultline.reports.svg import group, hatch_definitions, number, tag
from faultline.reports.text import count, display_width, duration, shorten, time_point, value_text

__all__ = ["MOST_POINTS", "LatencyRow", "latency_finding", "latency_svg", "latency_table", "quantile"]

MOST_POINTS = 2_000
_SLICES = 400
_LEFT, _RIGHT, _WIDTH = 72.0, 16.0, 1_020.0
_PLOT = 230.0
_NO_ANSWER = 30.0
_FAULT_ROW = 18.0
_SHAPES = ("circle", "square", "triangle", "diamond")
_CHARACTER = 7.3


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Quantiles of one function and outcome, `inside` or `outside` faults. A quantile is `None` when no operation
    completed."""

    f: str
    outcome: str
    window: str
    count: int
    p50_us: int | None
    p95_us: int | None
    p99_us: int | None
    max_us: int | None


@dataclass(frozen=True, slots=True)
class _Point:
    row: int
    f: str
    outcome: str
    invoke_us: int
    latency_us: int | None
    inside: bool


def quantile(ordered: Sequence[int], share: float) -> int:
    """Return the smallest of the ordered values that `share` of them do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _points(history: History, faults: Sequence[FaultInterval]) -> list[_Point]:
    windows = _merged(faults)
    return list(_each_point(history, windows))


def _each_point(history: History, windows: list[tuple[int, int]]) -> Iterator[_Point]:
    for row in range(len(history)):
        start_us, stop_us = history.invoke_us[row], history.complete_us[row]
        answered = history.complete_index[row] != OPEN and history.outcome[row] != "info"
        latency = stop_us - start_us if answered else None
        inside = _overlaps(windows, start_us, stop_us if history.complete_index[row] != OPEN else start_us)
        yield _Point(row, history.f[row], history.outcome[row], start_us, latency, inside)


def _merged(faults: Sequence[FaultInterval]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start_us, stop_us in sorted((fault.start_us, fault.stop_us) for fault in faults if fault.applied is None):
        if merged and start_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop_us))
        else:
            merged.append((start_us, stop_us))
    return merged


def _overlaps(windows: list[tuple[int, int]], start_us: int, stop_us: int) -> bool:
    index = bisect_right(windows, (stop_us, math.inf)) - 1
    return index >= 0 and windows[index][1] >= start_us


def latency_table(record: RunRecord) -> list[LatencyRow]:
    """Return the table equivalent to the scatter, one line per function, outcome and window, in alphabetical order."""
    groups: dict[tuple[str, str, str], list[int | None]] = {}
    for point in _points(record.history, settled_faults(record)):
        window = "inside" if point.inside else "outside"
        groups.setdefault((point.f, point.outcome, window), []).append(point.latency_us)
    return [_latency_row(key, groups[key]) for key in sorted(groups)]


def _latency_row(key: tuple[str, str, str], latencies: list[int | None]) -> LatencyRow:
    known = sorted(latency for latency in latencies if latency is not None)
    quantiles = [quantile(known, share) if known else None for share in (0.5, 0.95, 0.99, 1.0)]
    return LatencyRow(*key, len(latencies), *quantiles)


def latency_finding(record: RunRecord) -> str:
    """Return the facts of the scatter as sentences: medians in and out of faults, the slowest, the unanswered."""
    points = _points(record.history, settled_faults(record))
    if not points:
        return "No operation was invoked."
    parts = [text for text in (_median_words(points), _slowest_words(points), _unanswered_words(points)) if text]
    return " ".join(parts)


def _median_words(points: list[_Point]) -> str:
    def median_of(inside: bool) -> str:
        known = sorted(
            p.latency_us for p in points if p.inside is inside and p.outcome == "ok" and p.latency_us is not None
        )
        return f"{duration(quantile(known, 0.5))} ({count(len(known), 'operation')})" if known else ""

    calm, hit = median_of(False), median_of(True)
    if calm and hit:
        return f"Half of the successful operations took at most {calm} outside faults and {hit} during faults."
    return (
        f"Half of the successful operations took at most {calm or hit}{'' if calm else ', all during faults'}."
        if calm or hit
        else ""
    )


def _slowest_words(points: list[_Point]) -> str:
    known = [point for point in points if point.latency_us is not None]
    if not known:
        return ""
    slowest = max(known, key=lambda point: (point.latency_us or 0, -point.row))
    where = f"at {time_point(slowest.invoke_us)} {'during a fault' if slowest.inside else 'outside faults'}"
    return f"The slowest answer, to a {value_text(slowest.f, 24)} {where}, took {duration(slowest.latency_us or 0)}."


def _unanswered_words(points: list[_Point]) -> str:
    unanswered = sum(1 for point in points if point.latency_us is None)
    return (
        f"{count(unanswered, 'operation')} never got a definite answer."
        if unanswered
        else "Every operation was answered."
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    end_us: int
    marks: tuple[int, ...]
    top: float
    faults: tuple[FaultInterval, ...]
    prefix: str

    @property
    def bottom(self) -> float:
        return self.top + _NO_ANSWER + _PLOT

    def x(self, time_us: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, time_us / max(1, self.end_us)))

    def y(self, latency_us: int | None) -> float:
        if latency_us is None:
            return self.top + 9
        low, high = math.log10(self.marks[0]), math.log10(self.marks[-1])
        share = (math.log10(max(1, latency_us)) - low) / (high - low)
        return self.bottom - share * _PLOT


def latency_svg(record: RunRecord, prefix: str = "latency") -> Markup:
    """Return the scatter as an SVG element; empty when nothing was invoked."""
    points = _points(record.history, settled_faults(record))
    if not points:
        return Markup("")
    drawn = _sampled(points)
    frame = _frame(record, points, prefix)
    shapes = {f: _SHAPES[index % len(_SHAPES)] for index, f in enumerate(sorted({point.f for point in points}))}
    height = frame.bottom + 64
    return tag(
        "svg",
        tag("title", "Latency of every operation over the run", id=f"{prefix}-title"),
        tag("desc", latency_finding(record), id=f"{prefix}-desc"),
        hatch_definitions(prefix),
        *_shading(frame),
        *_grid(frame),
        *_clouds(frame, drawn, shapes),
        *_key(frame, shapes, len(drawn), len(points)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(_WIDTH)} {number(height)}",
        width=_WIDTH,
        height=height,
        role="group",
        aria_labelledby=f"{prefix}-title {prefix}-desc",
        class_="figure latency",
    )


def _sampled(points: Sequence[_Point], limit: int = MOST_POINTS) -> list[_Point]:
    """Return at most `limit` points: the fastest, slowest and one unanswered of every slice of time, then every
    n-th."""
    if len(points) <= limit:
        return list(points)
    kept = _extremes(points)
    spare = max(0, limit - len(kept))
    rest = [point for point in points if point.row not in kept]
    chosen = kept | {rest[place * len(rest) // spare].row for place in range(spare)}
    return [point for point in points if point.row in chosen]


def _extremes(points: Sequence[_Point]) -> set[int]:
    end_us = max(point.invoke_us for point in points) + 1
    slices: dict[int, list[_Point]] = {}
    for point in points:
        slices.setdefault(point.invoke_us * _SLICES // end_us, []).append(point)
    kept: set[int] = set()
    for members in slices.values():
        known = [point for point in members if point.latency_us is not None]
        unanswered = [point for point in members if point.latency_us is None]
        if known:
            kept.add(min(known, key=lambda point: (point.latency_us or 0, point.row)).row)
            kept.add(max(known, key=lambda point: (point.latency_us or 0, -point.row)).row)
        kept.update(point.row for point in unanswered[:1])
    return kept


def _frame(record: RunRecord, points: Sequence[_Point], prefix: str) -> _Frame:
    known = [point.latency_us for point in points if point.latency_us is not None] or [1_000]
    marks = _marks_around(max(1, min(known)), max(1, max(known)))
    longest_first = sorted(settled_faults(record), key=lambda fault: (fault.start_us - fault.stop_us, fault.start_us))
    faults = tuple(sorted(longest_first[:MOST_FAULTS], key=lambda fault: (fault.start_us, fault.kind)))
    end_us = max([record.history.end_us(), *(fault.stop_us for fault in faults)])
    rows = max(_fault_row_numbers(faults, end_us), default=-1) + 1
    return _Frame(end_us, marks, 6 + rows * _FAULT_ROW, faults, prefix)


def _marks_around(low_us: int, high_us: int) -> tuple[int, ...]:
    """Return round latencies for the scale, from one at or below `low_us` to one at or above `high_us`.

    They are powers of ten; on a range of less than two of them also twos and fives, so that the scale is not mostly
    empty."""
    fine = [digit * 10**power for power in range(12) for digit in (1, 2, 5)]
    first = max(mark for mark in fine if mark <= low_us)
    last = min(mark for mark in fine if mark >= max(high_us, 2 * first))
    if last <= 100 * first:
        return tuple(mark for mark in fine if first <= mark <= last)
    powers = [10**power for power in range(12)]
    inside = [mark for mark in powers if 2 * first < mark < last // 2]
    return (first, *inside, last)


def _fault_words(fault: FaultInterval) -> str:
    return f"{fault_family(fault.kind).begin} {shorten(fault.kind, 24)}"


def _fault_row_numbers(faults: Sequence[FaultInterval], end_us: int) -> list[int]:
    """Return, for each fault's name, the first row on which it does not overlap an earlier name."""
    free_from: list[float] = []
    numbers = []
    for fault in faults:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * fault.start_us / max(1, end_us)
        row = next((row for row, free in enumerate(free_from) if free <= x), len(free_from))
        free_from[row : row + 1] = [x + (display_width(_fault_words(fault)) + 1) * _CHARACTER]
        numbers.append(row)
    return numbers


def _shading(frame: _Frame) -> list[Markup]:
    rows = _fault_row_numbers(frame.faults, frame.end_us)
    return [_shade(frame, fault, row) for fault, row in zip(frame.faults, rows, strict=True)]


def _shade(frame: _Frame, fault: FaultInterval, row: int) -> Markup:
    left, right = frame.x(fault.start_us), frame.x(fault.stop_us)
    words = _fault_words(fault)
    y = 4 + row * _FAULT_ROW
    label_x = max(_LEFT, min(left, _WIDTH - _RIGHT - display_width(words) * _CHARACTER))
    fill = f"url(#{frame.prefix}-{fault_family(fault.kind).name})"
    return group(
        f"{fault.kind}, {time_point(fault.start_us)} to {time_point(fault.stop_us)}",
        tag(
            "rect",
            x=left,
            y=frame.top,
            width=max(2.0, right - left),
            height=frame.bottom - frame.top,
            fill=fill,
            class_="band",
        ),
        tag("line", x1=left, x2=left, y1=y + 2, y2=frame.bottom, class_="fault-start"),
        tag("text", words, x=label_x + 4, y=y + 12, class_="fault-name"),
        class_="fault",
    )


def _grid(frame: _Frame) -> list[Markup]:
    drawn = [tag("text", "no answer", x=_LEFT - 8, y=frame.y(None) + 4, class_="tick", text_anchor="end")]
    right = _WIDTH - _RIGHT
    edge = frame.top + _NO_ANSWER
    drawn.append(tag("line", x1=_LEFT, x2=right, y1=edge, y2=edge, class_="break"))
    for mark in frame.marks:
        y = frame.y(mark)
        drawn.append(tag("line", x1=_LEFT, x2=right, y1=y, y2=y, class_="grid"))
        drawn.append(tag("text", _mark_words(mark), x=_LEFT - 8, y=y + 4, class_="tick", text_anchor="end"))
    times = [frame.end_us * step // 5 for step in range(6)]
    decimals = 2 if len({time_point(time_us, 2) for time_us in times}) == len(times) else decimals_for(times)
    for step, time_us in enumerate(times):
        x, anchor = frame.x(time_us), "start" if step == 0 else "end" if step == 5 else "middle"
        words = time_point(time_us, decimals)
        drawn.append(tag("text", words, x=x, y=frame.bottom + 18, class_="tick", text_anchor=anchor))
    drawn.append(tag("line", x1=_LEFT, x2=right, y1=frame.bottom, y2=frame.bottom, class_="axis"))
    return drawn


def _mark_words(mark: int) -> str:
    """Return a round latency in words: `200 µs`, `5 ms`."""
    for unit_us, unit in ((1_000_000, "s"), (1_000, "ms")):
        if mark >= unit_us:
            return f"{mark // unit_us} {unit}"
    return f"{mark} µs"


def _clouds(frame: _Frame, points: Sequence[_Point], shapes: dict[str, str]) -> list[Markup]:
    """Return one path per function and outcome: two thousand points in a few elements."""
    clouds: dict[tuple[str, str], list[_Point]] = {}
    for point in points:
        clouds.setdefault((point.f, point.outcome), []).append(point)
    drawn = []
    for f, outcome in sorted(clouds):
        members = clouds[f, outcome]
        path = "".join(_shape(shapes[f], frame.x(p.invoke_us), frame.y(p.latency_us)) for p in members)
        name = f"{count(len(members), 'point')}: {value_text(f, 24)}, {outcome}"
        drawn.append(group(name, tag("path", d=Markup(path)), class_=f"cloud {outcome}"))
    return drawn


def _shape(shape: str, x: float, y: float) -> str:
    if shape == "circle":
        return f"M{number(x - 3)},{number(y)}a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z"
    if shape == "square":
        return f"M{number(x - 2.7)},{number(y - 2.7)}h5.4v5.4h-5.4z"
    if shape == "triangle":
        return f"M{number(x)},{number(y - 3.6)}l3.4,6h-6.8z"
    return f"M{number(x)},{number(y - 3.8)}l3.8,3.8l-3.8,3.8l-3.8,-3.8z"


def _key(frame: _Frame, shapes: dict[str, str], drawn: int, total: int) -> list[Markup]:
    y = frame.bottom + 40
    parts: list[Markup] = []
    x = _LEFT
    for f, shape in shapes.items():
        parts.append(group(f, tag("path", d=_shape(shape, x + 4, y - 4)), class_="cloud ok"))
        parts.append(tag("text", shorten(f, 20), x=x + 14, y=y, class_="tick"))
        x += (display_width(shorten(f, 20)) + 4) * _CHARACTER
    parts.append(
        tag(
            "text",
            "filled: ok · hollow: certainly failed · upper edge: no definite answer",
            x=x + 8,
            y=y,
            class_="tick",
        )
    )
    if drawn < total:
        words = (
            f"{drawn:,} of {total:,} operations are drawn, the fastest and slowest of each slice of time among them."
        )
        parts.append(tag("text", words, x=_LEFT, y=y + 19, class_="tick"))
    return parts
