"""The counterexample as a space-time diagram: operations, messages and faults over time.

Time runs rightward on an axis that bends (see `time_axis`). Each client and each node has a lane; operations are bars
under their labels, messages are arrows (a lost one ends in ✕), faults are hatched bands behind the lanes that they hit
and named rows above. An operation whose end is not known fades out at the right edge. The same facts are beside the
figure as a numbered list, with the numbers of the figure.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from faultline.harness.history import Row
from faultline.harness.run_record import FaultInterval, MessageRecord
from faultline.reports.descriptions import operation_label
from faultline.reports.layout import CHARACTER, FAULT_ROW, GUTTER, MARGIN, NODE_LANE, Scene, lay_out
from faultline.reports.legend import fault_family
from faultline.reports.node_logs import LogLine
from faultline.reports.selection import Shown
from faultline.reports.sentences import (
    client_name,
    fault_sentence,
    fault_subject,
    message_text,
    operation_sentence,
)
from faultline.reports.svg import group, hatch_definitions, number, tag
from faultline.reports.text import count, display_width, duration, shorten, time_point, value_text
from faultline.reports.untraced import log_ticks, paths

__all__ = ["space_time_svg"]

_BAR = 14.0
_AXIS = 28.0
_BREAK_ROW = 14.0
_BREAK_ROWS = 3
_NOTE_ROW = 18.0
_APART = 1.5
"""The free pixels after a bar, so that operations without a pause between them stay apart."""
_MOST_NAMED = 40
_WIDEST_SHRUNK = 1_300.0
"""A figure up to this many pixels wide may be shrunk to fit a page; a wider one scrolls, to stay legible."""


def space_time_svg(
    shown: Shown,
    *,
    title: str = "The operations around the anomaly",
    prefix: str = "space-time",
    names: Mapping[int, str] | None = None,
    logged: Sequence[LogLine] = (),
) -> Markup:
    """Return the `shown` parts of a run as an SVG element; empty without operations and messages.

    `prefix` keeps the ids of several figures on one page apart; `names` are the names of rows, when not their
    numbers; `logged` are lines of the nodes' logs from that time.
    """
    if not shown.rows and not shown.messages.drawn:
        return Markup("")
    scene = lay_out(shown, prefix)
    height = _breaks_bottom(scene) + (_NOTE_ROW if scene.left_out else 0)
    width = scene.axis.right + MARGIN
    return tag(
        "svg",
        tag("title", title, id=f"{prefix}-title"),
        tag("desc", _description(scene), id=f"{prefix}-desc"),
        hatch_definitions(prefix),
        _fading(prefix),
        *_lanes(scene),
        *_bands(scene),
        *_breaks(scene),
        *_ticks(scene),
        *paths(scene),
        *log_ticks(scene, logged),
        *_messages(scene),
        *([] if names else _moment(scene)),
        *_operations(scene, names or {}),
        *_fault_rows(scene),
        *_omissions(scene),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group",
        aria_labelledby=f"{prefix}-title {prefix}-desc",
        class_="figure space-time" if width <= _WIDEST_SHRUNK else "figure space-time wide",
    )


def _lanes(scene: Scene) -> list[Markup]:
    workers = {client_name(row.process): row.worker for row in scene.rows}
    drawn = []
    for name, y in scene.lanes.items():
        drawn.append(tag("line", x1=GUTTER, x2=scene.axis.right, y1=y, y2=y, class_="lane"))
        drawn.append(tag("text", shorten(name, 16), x=GUTTER - 12, y=y + 4, class_="lane-name", text_anchor="end"))
        worker = workers.get(name)
        if worker is not None and client_name(worker) != name:
            drawn.append(tag("text", f"worker {worker}", x=GUTTER - 12, y=y + 18, class_="note", text_anchor="end"))
    return drawn


def _ticks(scene: Scene) -> list[Markup]:
    drawn = [tag("line", x1=GUTTER, x2=scene.axis.right, y1=scene.bottom, y2=scene.bottom, class_="axis")]
    for time_us in scene.axis.ticks(96, _telling_us(scene)):
        x = scene.axis.place(time_us)
        if x > scene.axis.right - 8:
            continue
        drawn.append(tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom + 5, class_="grid"))
        label = time_point(time_us, scene.decimals)
        drawn.append(tag("text", label, x=x, y=scene.bottom + 19, class_="tick", text_anchor="middle"))
    return drawn


def _breaks(scene: Scene) -> list[Markup]:
    """Return the stretches that are cut, with their lengths in three rows, so that neighbours do not overlap."""
    drawn = []
    for position, stretch in enumerate(scene.axis.breaks):
        middle, y = (stretch.left + stretch.right) / 2, scene.bottom + 36 + _BREAK_ROW * (position % _BREAK_ROWS)
        edges = (middle - 4, middle + 4)
        drawn += [tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom, class_="break") for x in edges]
        words = f"// {duration(stretch.length_us)} cut"
        drawn.append(tag("text", words, x=middle, y=y, class_="note", text_anchor="middle"))
    return drawn


def _breaks_bottom(scene: Scene) -> float:
    return scene.bottom + _AXIS + _BREAK_ROW * min(_BREAK_ROWS, len(scene.axis.breaks))


def _omissions(scene: Scene) -> list[Markup]:
    """Return the line about the messages that the figure leaves out, at its bottom."""
    if not scene.left_out:
        return []
    drawn = f"{count(len(scene.messages), 'message')} drawn; " if scene.messages else ""
    y = _breaks_bottom(scene) + 10
    return [tag("text", f"{drawn}{scene.left_out}", x=GUTTER, y=y, class_="note omissions")]


def _moment(scene: Scene) -> list[Markup]:
    """Return a line where the telling operation began: everything that ends left of it ended before.

    Without such an operation (a promise broke inside a node) the line is at that moment, and says so.
    """
    telling = _telling_us(scene)
    if not telling:
        return []
    x = scene.axis.place(telling[0])
    line = tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom, class_="moment")
    if scene.telling is not None:
        return [line]
    return [line, tag("text", "✖ here", x=x + 4, y=scene.bottom - 5, class_="label here")]


def _telling_us(scene: Scene) -> list[int]:
    begun = [row.invoke_us for row in scene.rows if row.row == scene.telling]
    return begun or ([scene.moment_us] if scene.moment_us else [])


def _fading(prefix: str) -> Markup:
    stops = (
        tag("stop", offset="0", class_="fade-from"),
        tag("stop", offset="0.35", class_="fade-middle"),
        tag("stop", offset="1", class_="fade-to"),
    )
    return tag("defs", tag("linearGradient", *stops, id=f"{prefix}-fading", x1="0", x2="1", y1="0", y2="0"))


def _operations(scene: Scene, names: Mapping[int, str]) -> list[Markup]:
    called = [names.get(row.row, str(position)) for position, row in enumerate(scene.rows, start=1)]
    return [_operation(scene, name, row) for name, row in zip(called, scene.rows, strict=True)]


def _operation(scene: Scene, name: str, row: Row) -> Markup:
    y = scene.lanes[client_name(row.process)]
    left = scene.axis.place(row.invoke_us)
    is_open = row.outcome == "info"
    right = scene.axis.right if is_open else scene.axis.place(row.complete_us) - _APART
    telling = row.row == scene.telling
    class_ = f"operation {row.outcome}" + (" telling" if telling else "")
    fill = {"fill": f"url(#{scene.prefix}-fading)"} if is_open else {}
    bar = tag("rect", x=left, y=y - _BAR / 2, width=max(3.0, right - left), height=_BAR, rx=2, class_="bar", **fill)
    label = f"{operation_label(row, scene.many_keys)}{' ✖' if telling else ''}"
    text = tag("text", tag("tspan", name, class_="position"), f" {label}", x=left, y=y - 12, class_="label")
    return group(f"{name}. {operation_sentence(row, scene.decimals)}", bar, text, class_=class_)


_Box = tuple[float, float, float, float]
"""The left, right, top and bottom of a shape with text on it."""


def _messages(scene: Scene) -> list[Markup]:
    taken = [_label_box(scene, row) for row in scene.rows]
    return [_message(scene, message, taken) for message in scene.messages]


def _label_box(scene: Scene, row: Row) -> _Box:
    left, y = scene.axis.place(row.invoke_us), scene.lanes[client_name(row.process)]
    right = left + (display_width(operation_label(row, scene.many_keys)) + 5) * CHARACTER
    return left, right, y - 25, y + _BAR / 2


def _lane(scene: Scene, name: str) -> float:
    """Return the height of a message's end: a node's lane, or for `client-3` the lower edge of that client's bars."""
    return scene.lanes[name] if name in scene.lanes else scene.lanes[name.replace("-", " ")] + _BAR / 2


def _message(scene: Scene, message: MessageRecord, taken: list[_Box]) -> Markup:
    source, target = _lane(scene, message.source), _lane(scene, message.target)
    lost = message.receive_us < 0
    x1 = scene.axis.place(message.send_us)
    x2 = x1 + 14 if lost else scene.axis.place(message.receive_us)
    y2 = source + (target - source) * 0.55 if lost else target
    parts = [tag("line", x1=x1, y1=source, x2=x2, y2=y2, class_="wire"), _head(x1, source, x2, y2, lost)]
    if len(scene.messages) <= _MOST_NAMED:
        parts += _message_name(shorten(message.name, 20), (x1, source), (x2, y2), taken)
    kind = "message lost" if lost else "message stale" if message.stale else "message"
    return group(_message_sentence(message, scene.decimals), *parts, class_=kind)


def _message_name(name: str, start: tuple[float, float], stop: tuple[float, float], taken: list[_Box]) -> list[Markup]:
    """Return the name beside the arrow where it covers no other text, else left to the table.

    It is left of an arrow that goes down and right of one that goes up, so that a request and its reply have it
    outside."""
    width = display_width(name) * 6.2
    for share in (0.5, 0.3, 0.7):
        x = start[0] + share * (stop[0] - start[0])
        y = start[1] + share * (stop[1] - start[1])
        sides = (x - 6 - width, x + 6)
        for left in sides if stop[1] > start[1] else sides[::-1]:
            box = (left, left + width, y - 8, y + 4)
            if left > GUTTER and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                return [tag("text", name, x=left, y=y + 3, class_="message-name")]
    return []


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _message_sentence(message: MessageRecord, decimals: int) -> str:
    way = f"{value_text(message.source, 40)} → {value_text(message.target, 40)}"
    what = value_text(message_text(message), 160)
    received = f"{'stale, ' if message.stale else ''}received {time_point(message.receive_us, decimals)}"
    end = "lost" if message.receive_us < 0 else received
    return f"{way}: {what}, sent {time_point(message.send_us, decimals)}, {end}"


def _head(x1: float, y1: float, x2: float, y2: float, lost: bool) -> Markup:
    if lost:
        return tag("text", "✕", x=x2, y=y2 + 4, class_="lost-mark", text_anchor="middle")
    length = max(0.001, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    base_x, base_y = x2 - 7 * dx, y2 - 7 * dy
    points = ((x2, y2), (base_x - 3.2 * dy, base_y + 3.2 * dx), (base_x + 3.2 * dy, base_y - 3.2 * dx))
    return tag("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_="head")


def _extent(scene: Scene, fault: FaultInterval) -> tuple[float, float]:
    return scene.axis.place(fault.start_us), scene.axis.place(fault.stop_us)


def _fault_rows(scene: Scene) -> list[Markup]:
    return [_fault_row(scene, position, fault) for position, fault in enumerate(scene.faults)]


def _fault_row(scene: Scene, position: int, fault: FaultInterval) -> Markup:
    family = fault_family(fault.kind)
    left, right = _extent(scene, fault)
    box: dict[str, float] = {
        "x": left,
        "y": 8 + position * FAULT_ROW,
        "width": max(3.0, right - left),
        "height": FAULT_ROW - 6,
    }
    words = f"{family.begin} {fault_subject(fault)}, {_fault_times(fault, scene.decimals)}"
    x = max(GUTTER + 4, min(left + 6, scene.axis.right - (display_width(words) + 2) * CHARACTER))
    kind = shorten(fault.kind, 16) if len(fault.kind) <= 16 else family.name
    base = box["y"] + 14
    parts = [
        tag("rect", class_="fault-edge", **box),
        tag("rect", fill=f"url(#{scene.prefix}-{family.name})", class_="fault-fill", **box),
        tag("text", words, x=x, y=base, class_="fault-name"),
        tag("text", kind, x=GUTTER - 12, y=base, class_="fault-kind", text_anchor="end"),
    ]
    if fault.stop_us < scene.axis.times[-1]:
        after = max(right, x + display_width(words) * CHARACTER) + 6
        parts.append(tag("text", family.end, x=after, y=base, class_="fault-name"))
    return group(fault_sentence(fault, scene.decimals), *parts, class_="fault")


def _fault_times(fault: FaultInterval, decimals: int) -> str:
    return f"{time_point(fault.start_us, decimals).removesuffix(' s')} to {time_point(fault.stop_us, decimals)}"


def _bands(scene: Scene) -> list[Markup]:
    return [band for fault in scene.faults for band in _bands_of(scene, fault)]


def _bands_of(scene: Scene, fault: FaultInterval) -> list[Markup]:
    """Return the bands of the fault: between the lanes it cut, on the lanes of its nodes, or all when unknown."""
    left, right = _extent(scene, fault)
    family = fault_family(fault.kind).name
    places = _cut_between(scene, fault) or _on_nodes(scene, fault)
    class_ = "band" if places else "band everywhere"
    return [
        tag(
            "rect",
            x=left,
            y=top,
            width=max(3.0, right - left),
            height=bottom - top,
            fill=f"url(#{scene.prefix}-{family})",
            class_=class_,
        )
        for top, bottom in places or [(scene.top, scene.bottom)]
    ]


def _cut_between(scene: Scene, fault: FaultInterval) -> list[tuple[float, float]]:
    cut = set(fault.links)
    pairs = [pair for pair in itertools.pairwise(scene.nodes) if {pair, pair[::-1]} & cut]
    middles = [(scene.lanes[upper] + scene.lanes[lower]) / 2 for upper, lower in pairs]
    return [(y - 8, y + 8) for y in middles]


def _on_nodes(scene: Scene, fault: FaultInterval) -> list[tuple[float, float]]:
    hit = fault.nodes or tuple(sorted({source for source, _ in fault.links}))
    heights = [scene.lanes[node] for node in hit if node in scene.nodes]
    return [(y - NODE_LANE / 2 + 6, y + NODE_LANE / 2 - 6) for y in heights]


def _description(scene: Scene) -> str:
    lanes = ", ".join(shorten(name, 40) for name in scene.lanes)
    faults = "; ".join(fault_sentence(fault, scene.decimals) for fault in scene.faults) or "none"
    return (
        f"{count(len(scene.rows), 'operation')} on the lanes {lanes}, time running rightward. "
        f"Faults during it: {faults}. {scene.left_out} The numbered list beside the figure says the same in words."
    )
