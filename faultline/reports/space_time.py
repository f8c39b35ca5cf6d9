"""The counterexample as a space-time diagram: who did what when, and what was broken meanwhile.

Time runs rightward on an axis that bends (see `time_axis`). Each client has a lane, and each node when the run was
traced; operations are bars under their labels, messages are arrows (a lost one ends in ✕), faults are hatched bands
behind what they hit and named rows above. An operation nobody knows the end of fades out at the right edge. The same
facts stand beside the figure as a numbered list, with the numbers of the figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.reports.legend import fault_family
from faultline.reports.selection import faults_during, messages_during, window
from faultline.reports.sentences import (
    client_name,
    decimals_for,
    fault_sentence,
    fault_subject,
    operation_label,
    operation_sentence,
)
from faultline.reports.svg import group, hatch_definitions, number, tag
from faultline.reports.text import count, display_width, duration, shorten, time_point, value_text
from faultline.reports.time_axis import Room, TimeAxis, bent_axis

__all__ = ["space_time_svg"]

_GUTTER = 128.0
_WIDTH = 1_020.0
_MARGIN = 16.0
_LANE = 54.0
_NODE_LANE = 44.0
_FAULT_ROW = 26.0
_BAR = 14.0
_CHARACTER = 7.3
_AXIS = 46.0


@dataclass(frozen=True, slots=True)
class _Scene:
    """Everything the figure shows, laid out: what, where on the axis, and at which height."""

    rows: tuple[Row, ...]
    telling: int | None
    moment_us: int
    faults: tuple[FaultInterval, ...]
    messages: tuple[MessageRecord, ...]
    axis: TimeAxis
    decimals: int
    lanes: dict[str, float]
    nodes: tuple[str, ...]
    top: float
    bottom: float
    prefix: str
    many_keys: bool


def space_time_svg(
    record: RunRecord,
    rows: Sequence[int],
    *,
    moment_us: int = 0,
    telling: int | None = None,
    title: str = "The operations around the anomaly",
    prefix: str = "space-time",
) -> Markup:
    """The operations in `rows` of the run as an SVG element.

    `moment_us` is when the anomaly became visible, `telling` the row that gave it away, `prefix` keeps the ids of
    several figures on one page apart. Without rows the answer is empty.
    """
    chosen = tuple(map(record.history.row, rows))
    if not chosen:
        return Markup("")
    scene = _lay_out(record, chosen, moment_us, telling, prefix)
    height = scene.bottom + _AXIS
    width = scene.axis.right + _MARGIN
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
        *_messages(scene),
        *_moment(scene),
        *_operations(scene),
        *_fault_rows(scene),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group",
        aria_labelledby=f"{prefix}-title {prefix}-desc",
        class_="figure space-time",
    )


# -- layout ------------------------------------------------------------------------------------------------------


def _lay_out(record: RunRecord, rows: tuple[Row, ...], moment_us: int, telling: int | None, prefix: str) -> _Scene:
    start_us, stop_us = window(rows, moment_us)
    faults = tuple(faults_during(record.faults, start_us, stop_us, moment_us))
    many_keys = len({row.key for row in rows}) > 1
    axis = _axis(rows, faults, start_us, stop_us, many_keys)
    messages = tuple(
        message for message in messages_during(record, start_us, stop_us, moment_us) if _shows(axis, message)
    )
    nodes = _node_order(record, faults) if messages else ()
    top = 8 + _FAULT_ROW * len(faults) + (6 if faults else 0)
    lanes, bottom = _heights(rows, nodes, top)
    times = [*axis.times, *(time for fault in faults for time in (fault.start_us, fault.stop_us))]
    return _Scene(
        rows,
        telling,
        moment_us,
        faults,
        messages,
        axis,
        decimals_for(times),
        lanes,
        nodes,
        top,
        bottom,
        prefix,
        many_keys,
    )


def _shows(axis: TimeAxis, message: MessageRecord) -> bool:
    """A message inside a stretch that is cut is not drawn: a hundred heartbeats would share a few pixels."""
    return not axis.in_break(message.send_us) or (message.receive_us >= 0 and not axis.in_break(message.receive_us))


def _axis(
    rows: Sequence[Row], faults: Sequence[FaultInterval], start_us: int, stop_us: int, many_keys: bool
) -> TimeAxis:
    moments = {start_us, stop_us}
    for row in rows:
        moments |= {row.invoke_us} if row.complete_index == OPEN else {row.invoke_us, row.complete_us}
    for fault in faults:
        moments |= {time for time in (fault.start_us, fault.stop_us) if start_us < time < stop_us}
    end_us = stop_us + max(1, (stop_us - start_us) // 12)
    return bent_axis([*moments, end_us], _label_rooms(rows, end_us, many_keys), _GUTTER, _WIDTH - _GUTTER - _MARGIN)


def _label_rooms(rows: Sequence[Row], end_us: int, many_keys: bool) -> list[Room]:
    """Room for each label before the next operation of the same client begins."""
    rooms: list[Room] = []
    next_us: dict[int, int] = {}
    for row in reversed(rows):
        pixels = (display_width(operation_label(row, many_keys)) + 6) * _CHARACTER
        rooms.append(Room(row.invoke_us, next_us.get(row.process, end_us), pixels))
        next_us[row.process] = row.invoke_us
    return [room for room in rooms if room.start_us < room.stop_us]


def _node_order(record: RunRecord, faults: Sequence[FaultInterval]) -> tuple[str, ...]:
    """Nodes in the plan's order, but with the sides of the first partition together, so that the cut is one line."""
    nodes = record.plan.nodes
    cut = {link for fault in faults for link in fault.links}
    if not nodes or not cut:
        return nodes
    order, left = [nodes[0]], list(nodes[1:])
    while left:
        joined = [node for node in left if any((node, other) not in cut for other in order)]
        following = (joined or left)[0]
        order.append(following)
        left.remove(following)
    return tuple(order)


def _heights(rows: Sequence[Row], nodes: Sequence[str], top: float) -> tuple[dict[str, float], float]:
    lanes: dict[str, float] = {}
    y = top
    for _, process in sorted({(row.worker, row.process) for row in rows}):
        lanes[client_name(process)] = y + _LANE / 2 + 8
        y += _LANE
    for node in nodes:
        lanes[node] = y + _NODE_LANE / 2
        y += _NODE_LANE
    return lanes, y


# -- what does not move: lanes, time, breaks ---------------------------------------------------------------------


def _lanes(scene: _Scene) -> list[Markup]:
    workers = {client_name(row.process): row.worker for row in scene.rows}
    drawn = []
    for name, y in scene.lanes.items():
        drawn.append(tag("line", x1=_GUTTER, x2=scene.axis.right, y1=y, y2=y, class_="lane"))
        drawn.append(tag("text", shorten(name, 16), x=_GUTTER - 12, y=y + 4, class_="lane-name", text_anchor="end"))
        worker = workers.get(name)
        if worker is not None and client_name(worker) != name:
            drawn.append(tag("text", f"worker {worker}", x=_GUTTER - 12, y=y + 18, class_="note", text_anchor="end"))
    return drawn


def _ticks(scene: _Scene) -> list[Markup]:
    drawn = [tag("line", x1=_GUTTER, x2=scene.axis.right, y1=scene.bottom, y2=scene.bottom, class_="axis")]
    for time_us in scene.axis.ticks(96)[:]:
        x = scene.axis.place(time_us)
        if x > scene.axis.right - 8:
            continue
        drawn.append(tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom + 5, class_="grid"))
        label = time_point(time_us, scene.decimals)
        drawn.append(tag("text", label, x=x, y=scene.bottom + 19, class_="tick", text_anchor="middle"))
    return drawn


def _breaks(scene: _Scene) -> list[Markup]:
    drawn = []
    for stretch in scene.axis.breaks:
        middle = (stretch.left + stretch.right) / 2
        edges = (middle - 4, middle + 4)
        drawn += [tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom, class_="break") for x in edges]
        words = f"⫽ {duration(stretch.length_us)} cut"
        drawn.append(tag("text", words, x=middle, y=scene.bottom + 36, class_="note", text_anchor="middle"))
    return drawn


def _moment(scene: _Scene) -> list[Markup]:
    """A line where the telling operation began: whatever ends left of it was over before."""
    telling = next((row for row in scene.rows if row.row == scene.telling), None)
    if telling is None:
        return []
    x = scene.axis.place(telling.invoke_us)
    return [tag("line", x1=x, x2=x, y1=scene.top, y2=scene.bottom, class_="moment")]


# -- operations --------------------------------------------------------------------------------------------------


def _fading(prefix: str) -> Markup:
    stops = (
        tag("stop", offset="0", class_="fade-from"),
        tag("stop", offset="0.35", class_="fade-middle"),
        tag("stop", offset="1", class_="fade-to"),
    )
    return tag("defs", tag("linearGradient", *stops, id=f"{prefix}-fading", x1="0", x2="1", y1="0", y2="0"))


def _operations(scene: _Scene) -> list[Markup]:
    return [_operation(scene, position, row) for position, row in enumerate(scene.rows, start=1)]


def _operation(scene: _Scene, position: int, row: Row) -> Markup:
    y = scene.lanes[client_name(row.process)]
    left = scene.axis.place(row.invoke_us)
    is_open = row.outcome == "info"
    right = scene.axis.right if is_open else scene.axis.place(row.complete_us)
    telling = row.row == scene.telling
    class_ = f"operation {row.outcome}" + (" telling" if telling else "")
    fill = {"fill": f"url(#{scene.prefix}-fading)"} if is_open else {}
    bar = tag("rect", x=left, y=y - _BAR / 2, width=max(3.0, right - left), height=_BAR, rx=2, class_="bar", **fill)
    label = f"{operation_label(row, scene.many_keys)}{' ✖' if telling else ''}"
    text = tag("text", tag("tspan", str(position), class_="position"), f" {label}", x=left, y=y - 12, class_="label")
    return group(f"{position}. {operation_sentence(row, scene.decimals)}", bar, text, class_=class_)


# -- messages ----------------------------------------------------------------------------------------------------


def _messages(scene: _Scene) -> list[Markup]:
    named = len(scene.messages) <= 40
    return [_message(scene, message, named) for message in scene.messages if _ends(scene, message) is not None]


def _ends(scene: _Scene, message: MessageRecord) -> tuple[float, float] | None:
    source, target = (_lane(scene, name) for name in (message.source, message.target))
    return None if source is None or target is None or source == target else (source, target)


def _lane(scene: _Scene, name: str) -> float | None:
    """The height of a message's end: a node's lane, or for `client-3` that of the client."""
    return scene.lanes.get(name, scene.lanes.get(name.replace("-", " ")))


def _message(scene: _Scene, message: MessageRecord, named: bool) -> Markup:
    source, target = _ends(scene, message) or (0.0, 0.0)
    lost = message.receive_us < 0
    x1 = scene.axis.place(message.send_us)
    x2 = x1 + 14 if lost else scene.axis.place(message.receive_us)
    y2 = source + (target - source) * 0.55 if lost else target
    parts = [tag("line", x1=x1, y1=source, x2=x2, y2=y2, class_="wire"), _head(x1, source, x2, y2, lost)]
    if named:
        middle = ((x1 + x2) / 2 + 5, (source + y2) / 2 + 4)
        parts.append(tag("text", shorten(message.name, 18), x=middle[0], y=middle[1], class_="message-name"))
    return group(_message_sentence(message, scene.decimals), *parts, class_="message lost" if lost else "message")


def _message_sentence(message: MessageRecord, decimals: int) -> str:
    what = value_text(f"{message.name} {message.summary}".strip(), 160)
    end = "lost" if message.receive_us < 0 else f"received {time_point(message.receive_us, decimals)}"
    return f"{message.source} → {message.target}: {what}, sent {time_point(message.send_us, decimals)}, {end}"


def _head(x1: float, y1: float, x2: float, y2: float, lost: bool) -> Markup:
    if lost:
        return tag("text", "✕", x=x2, y=y2 + 4, class_="lost-mark", text_anchor="middle")
    length = max(0.001, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    base_x, base_y = x2 - 7 * dx, y2 - 7 * dy
    points = ((x2, y2), (base_x - 3.2 * dy, base_y + 3.2 * dx), (base_x + 3.2 * dy, base_y - 3.2 * dx))
    return tag("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), class_="head")


# -- faults ------------------------------------------------------------------------------------------------------


def _extent(scene: _Scene, fault: FaultInterval) -> tuple[float, float]:
    return scene.axis.place(fault.start_us), scene.axis.place(fault.stop_us)


def _fault_rows(scene: _Scene) -> list[Markup]:
    return [_fault_row(scene, position, fault) for position, fault in enumerate(scene.faults)]


def _fault_row(scene: _Scene, position: int, fault: FaultInterval) -> Markup:
    family = fault_family(fault.kind)
    left, right = _extent(scene, fault)
    y = 8 + position * _FAULT_ROW
    begins, ends = fault.start_us >= scene.axis.times[0], fault.stop_us <= scene.axis.times[-1]
    words = f"{family.begin if begins else '…'} {fault_subject(fault)} {family.end if ends else '…'}"
    needed = display_width(words) * _CHARACTER
    x = max(_GUTTER + 4, min(left + 6, scene.axis.right - needed - 4))
    return group(
        fault_sentence(fault, scene.decimals),
        tag("rect", x=left, y=y, width=max(3.0, right - left), height=_FAULT_ROW - 6, class_="fault-edge"),
        tag(
            "rect", x=left, y=y, width=max(3.0, right - left), height=_FAULT_ROW - 6,
            fill=f"url(#{scene.prefix}-{family.name})", class_="fault-fill",
        ),
        tag("text", words, x=x, y=y + 14, class_="fault-name"),
        tag("text", fault.kind if len(fault.kind) <= 16 else shorten(family.name, 16), x=_GUTTER - 12, y=y + 14,
            class_="fault-kind", text_anchor="end"),
        class_="fault",
    )  # fmt: skip


def _bands(scene: _Scene) -> list[Markup]:
    return [band for fault in scene.faults for band in _bands_of(scene, fault)]


def _bands_of(scene: _Scene, fault: FaultInterval) -> list[Markup]:
    """Where the fault acted: between the lanes it cut, on the lanes of its nodes, or everywhere when unknown."""
    left, right = _extent(scene, fault)
    family = fault_family(fault.kind).name
    places = _cut_between(scene, fault) or _on_nodes(scene, fault)
    if not places:
        places = [(scene.top, scene.bottom)]
    return [
        tag("rect", x=left, y=top, width=max(3.0, right - left), height=bottom - top,
            fill=f"url(#{scene.prefix}-{family})", class_="band")
        for top, bottom in places
    ]  # fmt: skip


def _cut_between(scene: _Scene, fault: FaultInterval) -> list[tuple[float, float]]:
    cut = set(fault.links)
    pairs = zip(scene.nodes, scene.nodes[1:], strict=False)
    borders = [scene.lanes[upper] + _NODE_LANE / 2 for upper, lower in pairs if {(upper, lower), (lower, upper)} & cut]
    return [(y - 8, y + 8) for y in borders]


def _on_nodes(scene: _Scene, fault: FaultInterval) -> list[tuple[float, float]]:
    hit = fault.nodes or tuple(sorted({source for source, _ in fault.links}))
    heights = [scene.lanes[node] for node in hit if node in scene.nodes]
    return [(y - _NODE_LANE / 2 + 3, y + _NODE_LANE / 2 - 3) for y in heights]


# -- words -------------------------------------------------------------------------------------------------------


def _description(scene: _Scene) -> str:
    lanes = ", ".join(scene.lanes)
    faults = "; ".join(fault_sentence(fault, scene.decimals) for fault in scene.faults) or "none"
    return (
        f"{count(len(scene.rows), 'operation')} on the lanes {lanes}, time running rightward. "
        f"Faults during it: {faults}. The numbered list beside the figure says the same in words."
    )
