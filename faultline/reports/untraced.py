"""The figure of nodes whose messages are not recorded: the node of each operation, and the lines that nodes logged.

A dotted line leads from an operation down to the lane of the node through which it went, and back when it was answered.
A tick on a node's lane is a line of its log; those that mention trouble or a new leader are marked.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from faultline.harness.history import Row
from faultline.reports.layout import Scene
from faultline.reports.node_logs import LogLine
from faultline.reports.sentences import client_name
from faultline.reports.svg import group, tag
from faultline.reports.text import shorten, time_point, value_text

__all__ = ["log_ticks", "paths"]

_TICK = 6.0


def paths(scene: Scene) -> list[Markup]:
    """Return a dotted line for each operation whose node has a lane, in a run without drawn messages."""
    if scene.messages:
        return []
    return [line for row in scene.rows if row.node in scene.nodes for line in _path(scene, row)]


def _path(scene: Scene, row: Row) -> list[Markup]:
    times = [row.invoke_us] if row.outcome == "info" else [row.invoke_us, row.complete_us]
    y1, y2 = scene.lanes[client_name(row.process)], scene.lanes[str(row.node)]
    places = [scene.axis.place(time_us) for time_us in times]
    return [tag("line", x1=x, x2=x, y1=y1, y2=y2, class_="path") for x in places]


def log_ticks(scene: Scene, lines: Sequence[LogLine]) -> list[Markup]:
    """Return a tick for each of the `lines` of a node that has a lane."""
    return [_tick(scene, line) for line in lines if line.node in scene.nodes]


def _tick(scene: Scene, line: LogLine) -> Markup:
    x, y = scene.axis.place(line.time_us), scene.lanes[line.node]
    what = (
        f"{line.node} logged at {time_point(line.time_us, scene.decimals)}: {value_text(shorten(line.text, 160), 200)}"
    )
    mark = tag("line", x1=x, x2=x, y1=y - _TICK, y2=y + _TICK, class_="log-tick")
    return group(what, mark, class_="logged telling-log" if line.is_telling else "logged")
