"""The layout of a space-time diagram: what is shown, when on the axis, and at which height.

Kept apart from the drawing so that each can be read alone: here are decisions (which messages, which order of lanes,
which stretches are cut), there are shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.reports.deeds import operation_label
from faultline.reports.selection import faults_during, messages_during, settled_faults, window
from faultline.reports.sentences import client_name, decimals_for
from faultline.reports.text import display_width
from faultline.reports.time_axis import Room, TimeAxis, bent_axis

__all__ = ["CHARACTER", "FAULT_ROW", "GUTTER", "MARGIN", "NODE_LANE", "Scene", "lay_out", "message_end"]

GUTTER = 128.0
"""Pixels left of the axis, for the names of the lanes."""
MARGIN = 16.0
CHARACTER = 7.3
"""The width of a character in the figures' monospaced font, rounded up."""
FAULT_ROW = 26.0
NODE_LANE = 52.0
_CLIENT_LANE = 54.0
_WIDTH = 1_020.0
_MOST_FINE_MESSAGES = 40


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything the figure shows, laid out. `telling` is the row that gave the anomaly away, `lanes` are heights."""

    rows: tuple[Row, ...]
    telling: int | None
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
    moment_us: int


def lay_out(record: RunRecord, rows: tuple[Row, ...], moment_us: int, telling: int | None, prefix: str) -> Scene:
    """The scene of `rows`, the anomaly at `moment_us`; ids in the figure begin with `prefix`."""
    start_us, stop_us = window(rows, moment_us)
    faults = tuple(faults_during(settled_faults(record), start_us, stop_us, moment_us))
    many_keys = len({row.key for row in rows}) > 1
    ends = {*record.plan.nodes, *(message_end(row.process) for row in rows)}
    messages = messages_during(record.messages, ends, start_us, stop_us, moment_us)
    axis, shown = _axis(rows, faults, messages, start_us, stop_us, moment_us, many_keys)
    nodes = _node_order(record.plan.nodes, faults) if shown or faults else ()
    top = 8 + FAULT_ROW * len(faults) + (6 if faults else 0)
    lanes, bottom = _heights(rows, nodes, top)
    times = [time for row in rows for time in (row.invoke_us, row.complete_us) if time != OPEN]
    times += [moment_us] if moment_us else []
    return Scene(
        rows=rows,
        telling=telling,
        faults=faults,
        messages=shown,
        axis=axis,
        decimals=decimals_for(times),
        lanes=lanes,
        nodes=nodes,
        top=top,
        bottom=bottom,
        prefix=prefix,
        many_keys=many_keys,
        moment_us=moment_us,
    )


def message_end(process: int) -> str:
    """The name of a client on the network."""
    return f"client-{process}"


def _axis(
    rows: Sequence[Row],
    faults: Sequence[FaultInterval],
    messages: Sequence[MessageRecord],
    start_us: int,
    stop_us: int,
    moment_us: int,
    many_keys: bool,
) -> tuple[TimeAxis, tuple[MessageRecord, ...]]:
    """The axis, and the messages it has room for: in a stretch that is cut, heartbeats would share a few pixels."""
    moments = {start_us, stop_us, *([moment_us] if moment_us else [])}
    for row in rows:
        moments |= {row.invoke_us} if row.complete_index == OPEN else {row.invoke_us, row.complete_us}
    for fault in faults:
        moments |= {time for time in (fault.start_us, fault.stop_us) if start_us < time < stop_us}
    moments.add(stop_us + _usual_gap(moments))
    rooms = _label_rooms(rows, max(moments), many_keys)
    coarse = bent_axis(moments, rooms, GUTTER, _WIDTH - GUTTER - MARGIN)
    shown = tuple(message for message in messages if not coarse.in_break(message.send_us))
    if not shown or len(shown) > _MOST_FINE_MESSAGES:
        return coarse, shown
    times = [time for message in shown for time in (message.send_us, message.receive_us)]
    fine = [time for time in times if time > 0 and not coarse.in_break(time)]
    return bent_axis(moments, rooms, GUTTER, _WIDTH - GUTTER - MARGIN, fine), shown


def _usual_gap(moments: set[int]) -> int:
    """What is left free behind the last moment, for the last label and for what never ended."""
    gaps = [later - earlier for earlier, later in itertools.pairwise(sorted(moments))]
    return max(1, int(median(gaps))) if gaps else 1


def _label_rooms(rows: Sequence[Row], end_us: int, many_keys: bool) -> list[Room]:
    """Room for each label before the next operation of the same client begins."""
    rooms: list[Room] = []
    next_us: dict[int, int] = {}
    for row in reversed(rows):
        pixels = (display_width(operation_label(row, many_keys)) + 6) * CHARACTER
        rooms.append(Room(row.invoke_us, next_us.get(row.process, end_us), pixels))
        next_us[row.process] = row.invoke_us
    return [room for room in rooms if room.start_us < room.stop_us]


def _node_order(nodes: tuple[str, ...], faults: Sequence[FaultInterval]) -> tuple[str, ...]:
    """Nodes in the plan's order, but with the sides of a partition together, so that the cut is one line."""
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
