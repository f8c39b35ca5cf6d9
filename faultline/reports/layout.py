"""The layout of a space-time diagram: the place on the axis and the height of each shown thing.

It is apart from the drawing so that each can be read alone: this module decides (the order of lanes, the stretches that
are cut), and `space_time` draws. The module `selection` has chosen before what is shown at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import FaultInterval, MessageRecord
from faultline.reports.descriptions import operation_label
from faultline.reports.selection import Shown
from faultline.reports.sentences import client_name, decimals_for
from faultline.reports.text import display_width
from faultline.reports.time_axis import Room, TimeAxis, bent_axis

__all__ = ["CHARACTER", "FAULT_ROW", "GUTTER", "MARGIN", "NODE_LANE", "Scene", "lay_out"]

GUTTER = 128.0
"""Pixels left of the axis, for the names of the lanes."""
MARGIN = 16.0
CHARACTER = 7.3
"""The width of a character in the figures' monospaced font, rounded up."""
FAULT_ROW = 26.0
NODE_LANE = 52.0
_CLIENT_LANE = 54.0
_WIDTH = 1_020.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The whole content of the figure, laid out. `telling` is the row that revealed the anomaly, `lanes` are heights.

    `left_out` is a sentence about the messages that are not drawn.
    """

    rows: tuple[Row, ...]
    telling: int | None
    faults: tuple[FaultInterval, ...]
    messages: tuple[MessageRecord, ...]
    left_out: str
    axis: TimeAxis
    decimals: int
    lanes: dict[str, float]
    nodes: tuple[str, ...]
    top: float
    bottom: float
    prefix: str
    many_keys: bool
    moment_us: int


def lay_out(shown: Shown, prefix: str) -> Scene:
    """Return the scene of `shown`; ids in the figure begin with `prefix`."""
    rows, faults, messages = shown.rows, shown.faults.meanwhile, shown.messages.drawn
    many_keys = len({row.key for row in rows}) > 1
    nodes = _node_order(shown.nodes, faults) if messages or faults or any(row.node for row in rows) else ()
    top = 8 + FAULT_ROW * len(faults) + (6 if faults else 0)
    lanes, bottom = _heights(rows, nodes, top)
    times = [time for row in rows for time in (row.invoke_us, row.complete_us) if time != OPEN]
    times += [shown.moment_us] if shown.moment_us else []
    return Scene(
        rows=rows,
        telling=shown.telling,
        faults=faults,
        messages=messages,
        left_out=shown.messages.left_out,
        axis=_axis(shown, many_keys),
        decimals=decimals_for(times),
        lanes=lanes,
        nodes=nodes,
        top=top,
        bottom=bottom,
        prefix=prefix,
        many_keys=many_keys,
        moment_us=shown.moment_us,
    )


def _axis(shown: Shown, many_keys: bool) -> TimeAxis:
    """Return the axis, with room for every message that is drawn."""
    moments = {shown.start_us, shown.stop_us, *([shown.moment_us] if shown.moment_us else [])}
    for row in shown.rows:
        moments |= {row.invoke_us} if row.complete_index == OPEN else {row.invoke_us, row.complete_us}
    for fault in shown.faults.meanwhile:
        moments |= {time for time in (fault.start_us, fault.stop_us) if shown.start_us < time < shown.stop_us}
    moments.add(shown.stop_us + _usual_gap(moments))
    rooms = _label_rooms(shown.rows, max(moments), many_keys)
    fine = [time for message in shown.messages.drawn for time in (message.send_us, message.receive_us) if time > 0]
    return bent_axis(moments, rooms, GUTTER, _WIDTH - GUTTER - MARGIN, fine)


def _usual_gap(moments: set[int]) -> int:
    """Return the space after the last moment, for the last label and for operations that never ended."""
    gaps = [later - earlier for earlier, later in itertools.pairwise(sorted(moments))]
    return max(1, int(median(gaps))) if gaps else 1


def _label_rooms(rows: Sequence[Row], end_us: int, many_keys: bool) -> list[Room]:
    """Return the room that each label has before the next operation of the same client begins."""
    rooms: list[Room] = []
    next_us: dict[int, int] = {}
    for row in reversed(rows):
        pixels = (display_width(operation_label(row, many_keys)) + 6) * CHARACTER
        rooms.append(Room(row.invoke_us, next_us.get(row.process, end_us), pixels))
        next_us[row.process] = row.invoke_us
    return [room for room in rooms if room.start_us < room.stop_us]


def _node_order(nodes: tuple[str, ...], faults: Sequence[FaultInterval]) -> tuple[str, ...]:
    """Return the nodes in the plan's order, but with the sides of a partition together, so that the cut is one line."""
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
        lanes[client_name(process)] = y + _CLIENT_LANE / 2 + 8
        y += _CLIENT_LANE
    for node in nodes:
        lanes[node] = y + NODE_LANE / 2 + 4
        y += NODE_LANE
    return lanes, y
