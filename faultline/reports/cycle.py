"""A cycle of transactions, as a ring and in words: each had to come before the next, and the last before the first.

In such a finding, the checkers of transactions name its transactions and the reason why each precedes the next
(`transactions` and `edges` of its detail). Here they become names (T1, T2, …) that figures and lists share, one line
for each edge, and a picture of the ring in which every box shows only the steps of the transaction on the keys of the
cycle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from faultline.harness.verdict import Finding
from faultline.reports.svg import group, number, tag
from faultline.reports.text import clipped, count, display_width, value_text, visible

__all__ = ["EDGE_MEANINGS", "cycle_lines", "cycle_svg", "edge_meanings", "transaction_names"]

EDGE_MEANINGS = {
    "ww": "the next overwrote the value that this one had written",
    "wr": "the next read the value that this one had written",
    "rw": "this one read a state that the next overwrote: it had not seen that write",
    "rr": "the next read a later state than this one did",
    "predicate-rw": "this one read all objects that meet a condition, and the next changed which ones do",
    "process": "one client did this before the next",
    "realtime": "this one had completed before the next began",
}
"""The meanings of the kinds of edges, under their names in the literature (Adya's thesis; Elle)."""

_EDGES_MAX = 12
_RING_MAX = 8
_LINES = 4
_LINE = 30
_CHARACTER = 7.3
_BOX = (_LINE + 2) * _CHARACTER
_ROW = 17.0


def transaction_names(finding: Finding) -> dict[int, str]:
    """Return the names of a cycle's transactions by their rows in the history; empty when the finding is no cycle."""
    if not finding.detail.get("edges"):
        return {}
    return {part["row"]: part["name"] for part in finding.detail.get("transactions", ())}


def cycle_lines(finding: Finding) -> list[str]:
    """Return each edge of the cycle with its reason; empty when the finding is no cycle."""
    edges = finding.detail.get("edges") or []
    lines = [f"{e['from']} before {e['to']} ({e['kind']}): {visible(e['because'])}" for e in edges[:_EDGES_MAX]]
    return lines + ([f"… and {count(len(edges) - _EDGES_MAX, 'more edge')}"] if len(edges) > _EDGES_MAX else [])


def edge_meanings(finding: Finding) -> list[tuple[str, str]]:
    """Return the kinds of edges in the cycle, with their meanings."""
    kinds = dict.fromkeys(edge["kind"] for edge in finding.detail.get("edges") or ())
    return [(kind, EDGE_MEANINGS[kind]) for kind in kinds if kind in EDGE_MEANINGS]


def cycle_svg(finding: Finding, prefix: str) -> Markup:
    """Return the cycle as a ring of boxes and arrows; empty when the finding is no cycle, or one too long for a
    picture."""
    edges, transactions = finding.detail.get("edges") or [], finding.detail.get("transactions") or []
    if not 2 <= len(transactions) <= _RING_MAX or len(edges) != len(transactions):
        return Markup("")
    lines = [_box_lines(part, edges) for part in transactions]
    height = (1 + max(map(len, lines))) * _ROW + 14
    centres, (width, total) = _centres(len(transactions), height)
    arrows = [_arrow(edge, place, centres, height) for place, edge in enumerate(edges)]
    boxes = [_box(part, told, centre, height) for part, told, centre in zip(transactions, lines, centres, strict=True)]
    return tag(
        "svg",
        tag("title", f"A cycle of {count(len(transactions), 'transaction')}", id=f"{prefix}-cycle-title"),
        *arrows,
        *boxes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(total)}",
        width=width,
        height=total,
        role="group",
        aria_labelledby=f"{prefix}-cycle-title",
        class_="figure cycle",
    )


def _box_lines(part: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the steps of the transaction on the keys of the cycle's edges, else all its steps; a few lines."""
    keys = {str(edge["key"]) for edge in edges if edge.get("key") is not None}
    whole = [[*operation] for operation in part["operations"] if isinstance(operation, list | tuple)]
    telling = [fields for fields in whole if len(fields) > 1 and str(fields[1]) in keys] or whole
    told = [_terse(fields) for fields in telling[:_LINES]]
    return [*told, f"… {len(telling) - _LINES} more"] if len(telling) > _LINES else told


def _terse(fields: Sequence[Any]) -> str:
    """Return `r x … 5, 6]`: a long value keeps its end, since lists differ there."""
    *head, value = [field for field in fields if field is not None]
    begin = " ".join(value_text(field, 12) for field in head)
    text, room = value_text(value, 4_000), _LINE - len(begin) - 1
    return clipped(f"{begin} {text if len(text) <= room else '…' + text[1 - room :]}".strip(), _LINE)


def _box(part: Mapping[str, Any], told: Sequence[str], centre: tuple[float, float], height: float) -> Markup:
    x, y = centre[0] - _BOX / 2, centre[1] - height / 2
    title = f"{part['name']} · client {part['process']}"
    texts = [tag("text", title, x=x + 10, y=y + _ROW, class_="lane-name")]
    texts += [tag("text", line, x=x + 10, y=y + _ROW * (n + 2)) for n, line in enumerate(told)]
    frame = tag("rect", x=x, y=y, width=_BOX, height=height, rx=4, class_="box")
    return group(f"{title}: {'; '.join(told)}", frame, *texts, class_="transaction")


def _centres(size: int, height: float) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the centres of the boxes, clockwise from the left or the top, and the size of the picture."""
    if size == 2:
        width, total = 2 * _BOX + 260, height + 24
        return [(_BOX / 2 + 8, total / 2), (width - _BOX / 2 - 8, total / 2)], (width, total)
    across = max(_BOX + 60, (_BOX + 40) * size / 5)
    down = max(height + 40, (height + 30) * size / 4)
    turns = [2 * math.pi * place / size - math.pi / 2 for place in range(size)]
    places = [(across * math.cos(turn), down * math.sin(turn)) for turn in turns]
    left, top = min(x for x, _ in places), min(y for _, y in places)
    centres = [(x - left + _BOX / 2 + 8, y - top + height / 2 + 8) for x, y in places]
    width = max(x for x, _ in centres) + _BOX / 2 + 8
    return centres, (width, max(y for _, y in centres) + height / 2 + 8)


def _arrow(edge: Mapping[str, Any], place: int, centres: Sequence[tuple[float, float]], height: float) -> Markup:
    source, target = centres[place], centres[(place + 1) % len(centres)]
    words = " ".join([edge["kind"], *([value_text(edge["key"], 16)] if edge.get("key") is not None else [])])
    if len(centres) == 2:
        shift = -height / 4 if place == 0 else height / 4
        source, target = (source[0], source[1] + shift), (target[0], target[1] + shift)
        start, stop = _leaves(source, target, height, shift), _leaves(target, source, height, shift)
    else:
        start, stop = _leaves(source, target, height), _leaves(target, source, height)
    x, y = (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2
    label = tag("text", words, x=x - display_width(words) * _CHARACTER / 2, y=y - 7, class_="edge-name")
    line = tag("line", x1=start[0], y1=start[1], x2=stop[0], y2=stop[1], class_="edge")
    return group(f"{edge['from']} before {edge['to']}: {edge['because']}", line, _head(start, stop), label)


def _leaves(
    source: tuple[float, float], target: tuple[float, float], height: float, shift: float = 0.0
) -> tuple[float, float]:
    """Return the point where the line from `source` to `target` leaves the box of `source`, `shift` above its
    middle."""
    dx, dy = target[0] - source[0], target[1] - source[1]
    if shift:
        return source[0] + math.copysign(_BOX / 2 + 3, dx), source[1]
    share = min((_BOX / 2 + 3) / abs(dx) if dx else math.inf, (height / 2 + 3) / abs(dy) if dy else math.inf)
    return source[0] + dx * share, source[1] + dy * share


def _head(start: tuple[float, float], stop: tuple[float, float]) -> Markup:
    length = max(0.001, math.dist(start, stop))
    dx, dy = (stop[0] - start[0]) / length, (stop[1] - start[1]) / length
    x, y = stop[0] - 10 * dx, stop[1] - 10 * dy
    corners = (stop, (x - 4.5 * dy, y + 4.5 * dx), (x + 4.5 * dy, y - 4.5 * dx))
    return tag("polygon", points=" ".join(f"{number(a)},{number(b)}" for a, b in corners), class_="edge-head")
