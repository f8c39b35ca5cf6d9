"""A history checked by the port of Porcupine, as the values of one offline HTML page, `porcupine.html`.

It is drawn from the records that `faultline.checkers.porcupine.visualization_data(model, information)` makes. This
module knows only their shape, since reports do not import checkers; `faultline.checkers.drawing` joins the two under
Porcupine's names.

A figure for each part, with a row for each client and a bar for each operation; then, in words, the longest partial
linearization with the state after each step, the operations that it leaves out, and the other partial linearizations.
Every bar links to the longest linearization that contains its operation, by an ordinary link: the page needs no script.

The page draws a bounded number of each (`PARTS_MAX`, `OPERATIONS_MAX`, `LINEARIZATIONS_MAX`) and names the rest. The
colours of annotations are not used: they come from outside, and the page's policy allows no foreign style.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from markupsafe import Markup

from faultline.reports.svg import group, tag
from faultline.reports.text import count, shorten

__all__ = [
    "LINEARIZATIONS_MAX",
    "OPERATIONS_MAX",
    "PARTS_MAX",
    "Element",
    "Note",
    "Part",
    "Step",
    "Visualization",
    "history_svg",
    "porcupine_values",
]

PARTS_MAX = 20
"""The largest number of parts that are shown, illegal ones first."""

OPERATIONS_MAX = 400
"""The largest number of operations of a part that are drawn and listed: those around its dead end."""

LINEARIZATIONS_MAX = 20
"""The largest number of partial linearizations of a part that are listed, longest first."""

_LANE = 40
_LEFT = 110
_WIDTH_MIN = 1000
_MOMENT = 24
_CHARACTER = 7.4


class Element(Protocol):
    """An operation; `end` is None when it never returned."""

    @property
    def client_id(self) -> int: ...
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float | None: ...
    @property
    def description(self) -> str: ...
    @property
    def metadata(self) -> str: ...


class Step(Protocol):
    """A step of a linearization: the operation's position, and the state after it in words."""

    @property
    def index(self) -> int: ...
    @property
    def state(self) -> str: ...


class Note(Protocol):
    """An annotation, at a client's row or under a tag."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def description(self) -> str: ...
    @property
    def details(self) -> str: ...
    @property
    def client_id(self) -> int | None: ...
    @property
    def tag(self) -> str: ...


class Part(Protocol):
    """A part: its operations, its clients, its longest partial linearizations, and the operations that each holds."""

    @property
    def history(self) -> Sequence[Element]: ...
    @property
    def lanes(self) -> Sequence[int]: ...
    @property
    def partial_linearizations(self) -> Sequence[Sequence[Step]]: ...
    @property
    def largest(self) -> Mapping[int, int]: ...
    @property
    def unplaced(self) -> Sequence[int]: ...


class Visualization(Protocol):
    """A whole checked history."""

    @property
    def partitions(self) -> Sequence[Part]: ...
    @property
    def annotations(self) -> Sequence[Note]: ...


def porcupine_values(data: Visualization, title: str, verdict: str = "") -> dict[str, Any]:
    """Return the values for the template, as plain data; the verdict follows from the data when it is not given."""
    numbered = sorted(enumerate(data.partitions), key=lambda item: (not _missing(item[1]), item[0]))
    return {
        "title": title,
        "verdict": verdict or ("violation" if any(map(_missing, data.partitions)) else "pass"),
        "parts": [_part(number, part, data.annotations) for number, part in numbered[:PARTS_MAX]],
        "parts_left_out": max(0, len(numbered) - PARTS_MAX),
        "parts_in_all": len(numbered),
        "annotations": [_note(note) for note in data.annotations[:OPERATIONS_MAX]],
    }


def _part(number: int, part: Part, notes: Sequence[Note]) -> dict[str, Any]:
    shown = _shown(part)
    orders = part.partial_linearizations
    return {
        "number": number + 1,
        "id": f"part-{number + 1}",
        "sentence": _sentence(part),
        "is_partial": bool(_missing(part)),
        "svg": history_svg(number, part, shown, notes),
        "missing": [_described(part.history[position]) for position in _missing(part)[:OPERATIONS_MAX]],
        "linearizations": [
            _linearization(number, part, index) for index in range(min(len(orders), LINEARIZATIONS_MAX))
        ],
        "linearizations_left_out": max(0, len(orders) - LINEARIZATIONS_MAX),
        "operations_left_out": len(part.history) - len(shown),
    }


def _missing(part: Part) -> list[int]:
    """Return the completed operations that the longest linearization leaves out."""
    orders = part.partial_linearizations
    placed = {step.index for step in orders[0]} if orders else set()
    return [
        position for position, element in enumerate(part.history) if position not in placed and element.end is not None
    ]


def _sentence(part: Part) -> str:
    operations, missing = count(len(part.history), "operation"), _missing(part)
    if not missing:
        return f"{operations}, with a linearization that holds all of them that returned."
    longest = len(part.partial_linearizations[0]) if part.partial_linearizations else 0
    left = len(part.unplaced)
    unplaced = f"; {left} {'is' if left == 1 else 'are'} in none at all" if left else ""
    return f"{operations}; no linearization holds more than {longest} of them{unplaced}."


def _shown(part: Part) -> list[int]:
    """Return the operations that are drawn: all, or those nearest to the first that the longest leaves out."""
    order = sorted(range(len(part.history)), key=lambda position: part.history[position].start)
    if len(order) <= OPERATIONS_MAX:
        return order
    missing = set(_missing(part))
    first = next((rank for rank, position in enumerate(order) if position in missing), 0)
    begin = max(0, min(first - OPERATIONS_MAX // 2, len(order) - OPERATIONS_MAX))
    return order[begin : begin + OPERATIONS_MAX]


def _linearization(number: int, part: Part, index: int) -> dict[str, Any]:
    steps = part.partial_linearizations[index]
    kept = steps[-OPERATIONS_MAX:]
    return {
        "id": _anchor(number, index),
        "size": len(steps),
        "first": len(steps) - len(kept) + 1,
        "steps": [{"text": _described(part.history[step.index]), "state": step.state} for step in kept],
    }


def _anchor(number: int, index: int) -> str:
    return f"part-{number + 1}-linearization-{index + 1}"


def _described(element: Element) -> str:
    until = "never returned" if element.end is None else f"until {element.end:g}"
    metadata = f" ({shorten(element.metadata, 300)})" if element.metadata else ""
    return (
        f"{shorten(element.description, 300)}, by client {element.client_id}, from {element.start:g} {until}{metadata}"
    )


def _note(note: Note) -> str:
    where = f"client {note.client_id}" if note.client_id is not None else note.tag or "the history"
    when = f"at {note.start:g}" if note.start == note.end else f"from {note.start:g} until {note.end:g}"
    return f"{note.description}, {where}, {when}" + (f": {note.details}" if note.details else "")


def history_svg(number: int, part: Part, shown: Sequence[int], notes: Sequence[Note]) -> Markup:
    """Return the bars of `shown`: one row for each client, below a row for each tag of annotations at that time."""
    elements = [part.history[position] for position in shown]
    scale = _Scale(elements)
    near = [note for note in notes if scale.start <= note.end and note.start <= scale.stop][:OPERATIONS_MAX]
    clients = [f"client {client}" for client in part.lanes if any(each.client_id == client for each in elements)]
    tags = [_row_of(note) for note in near]
    lanes = list(dict.fromkeys([*(name for name in tags if name not in clients), *clients]))
    height = _LANE * len(lanes) + 20
    rows = {name: 10 + _LANE * row for row, name in enumerate(lanes)}
    drawn = [tag("text", shorten(name, 14), x=4, y=y + 24, class_="lane-name") for name, y in rows.items()]
    missing = set(_missing(part))
    rooms = _rooms(elements, scale)
    drawn += [
        _bar(number, part, position, position in missing, scale, rows[f"client {element.client_id}"], room)
        for position, element, room in zip(shown, elements, rooms)
    ]
    drawn += [_note_bar(note, scale, rows[_row_of(note)]) for note in near]
    width = scale.right + 20
    return tag("svg", *drawn, viewBox=f"0 0 {width:g} {height}", class_="wide", width=width, height=height)


def _row_of(note: Note) -> str:
    return f"client {note.client_id}" if note.client_id is not None else note.tag or "notes"


class _Scale:
    """The map from times to coordinates; moments are spread evenly, so that a long silence takes no room."""

    def __init__(self, elements: Sequence[Element]) -> None:
        moments = {element.start for element in elements}
        moments |= {element.end for element in elements if element.end is not None}
        self._moments = sorted(moments)
        self.start: float = min(moments, default=0)
        self.stop: float = max(moments, default=0)
        self.right = _LEFT + max(_WIDTH_MIN, _MOMENT * len(moments))

    def x(self, time: float) -> float:
        """Return the coordinate of a moment, kept inside the figure."""
        rank = bisect_left(self._moments, time)
        last = max(1, len(self._moments) - 1)
        return _LEFT + (self.right - _LEFT) * min(rank, last) / last


def _rooms(elements: Sequence[Element], scale: _Scale) -> list[float]:
    """Return the width that each label may have: up to the beginning of the next operation in the same row."""
    rooms: list[float] = []
    following: dict[int, float] = {}
    for element in reversed(elements):
        x = scale.x(element.start)
        rooms.append(following.get(element.client_id, scale.right) - x)
        following[element.client_id] = x
    return rooms[::-1]


def _cut(text: str, room: float) -> str:
    characters = max(1, int(room / _CHARACTER) - 1)
    return text if len(text) <= characters else text[:characters] + "…"


def _bar(
    number: int,
    part: Part,
    position: int,
    is_missing: bool,
    scale: _Scale,
    y: int,
    room: float,
) -> Markup:
    element = part.history[position]
    x = scale.x(element.start)
    end = scale.x(element.end) if element.end is not None else scale.right + 10
    kind = "ok telling" if is_missing else "pending" if element.end is None else "ok"
    bar = tag("rect", x=x, y=y + 14, width=max(3.0, end - x - 2), height=14, rx=2, class_="bar")
    label = tag("text", _cut(element.description, room), x=x, y=y + 10, class_="label")
    drawn = group(_described(element), bar, label, class_=f"operation {kind}")
    index = part.largest.get(position, LINEARIZATIONS_MAX)
    return tag("a", drawn, href=f"#{_anchor(number, index)}") if index < LINEARIZATIONS_MAX else drawn


def _note_bar(note: Note, scale: _Scale, y: int) -> Markup:
    x = scale.x(note.start)
    width = max(3.0, scale.x(note.end) - x)
    bar = tag("rect", x=x, y=y + 30, width=width, height=6, class_="fault-edge")
    label = tag("text", _cut(note.description, 360), x=x, y=y + 26, class_="fault-name")
    return group(_note(note), bar, label, class_="annotation")
