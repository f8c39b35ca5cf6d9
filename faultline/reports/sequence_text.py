"""A run as a sequence diagram in plain text: lifelines of clients and nodes, and the messages between them.

    time        client 2    athens     byzantium
    3.0371 s       ●          │            │      client 2: write 10
    3.0374 s       ├─────────▶│            │      ClientRequest
    3.0391 s       │          ├────────────✕      ReplicationRequest, lost

It is for a terminal and for a ticket, where the drawing of `space_time` cannot go. Only the messages nearest to the
operations and to the moment of interest are drawn, in the order in which they were sent; a line says how many were left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import MessageRecord, RunRecord
from faultline.reports.deeds import operation_label
from faultline.reports.scene import message_end
from faultline.reports.selection import faults_during, messages_during, settled_faults, window
from faultline.reports.sentences import client_name, decimals_for, fault_subject
from faultline.reports.text import count, time_point, visible

__all__ = ["sequence_lines"]

_APART = 12
_BEFORE_US = 2_000
"""A little of what went on before the first operation, so that its cause can be seen."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: when, from which lifeline to which (equal: a note on one), how it ends, and what it says."""

    time_us: int
    source: str
    target: str
    text: str
    head: str = "▶"


def sequence_lines(
    record: RunRecord, rows: Sequence[int], moment_us: int, *, messages_max: int = 24, width: int = 0
) -> list[str]:
    """The operations `rows` of `record` and the messages around them as lines of text; empty without operations.

    At most `messages_max` messages are drawn: those sent during an operation first, and of these the nearest to the
    moment of interest, `moment_us`. `width` is at least how wide the time column is made, so that two diagrams can
    stand under each other.
    """
    shown = [record.history.row(row) for row in rows]
    if not shown:
        return []
    names = _lifelines(record, shown)
    start_us, stop_us = window(shown, moment_us)
    sent = messages_during(record.messages, names, start_us - _BEFORE_US, stop_us, moment_us, len(record.messages))
    drawn = _nearest(sent, shown, moment_us, messages_max)
    lines = sorted(
        [
            *(line for row in shown for line in _operation(row, len({row.key for row in shown}) > 1)),
            *map(_message, drawn),
            *_faults(record, start_us, stop_us, moment_us, names),
        ],
        key=lambda line: line.time_us,
    )
    decimals = decimals_for(line.time_us for line in lines)
    left_out = len(sent) - len(drawn)
    return [
        _header(names, width),
        *(_drawn(line, names, decimals, width) for line in lines),
        *([f"… and {count(left_out, 'message')} further away."] if left_out else []),
    ]


def _nearest(
    sent: Sequence[MessageRecord], rows: Sequence[Row], moment_us: int, messages_max: int
) -> list[MessageRecord]:
    def distance(message: MessageRecord) -> tuple[int, int]:
        gaps = [max(row.invoke_us - message.send_us, message.send_us - _end_us(row, moment_us), 0) for row in rows]
        return min(gaps), abs(message.send_us - moment_us)

    return sorted(sorted(sent, key=distance)[:messages_max], key=lambda message: message.send_us)


def _end_us(row: Row, moment_us: int) -> int:
    return max(row.invoke_us, moment_us) if row.complete_index == OPEN else row.complete_us


def _lifelines(record: RunRecord, rows: Sequence[Row]) -> dict[str, str]:
    """The ends of messages that get a lifeline, in order, with the name each is shown under."""
    clients = {message_end(row.process): client_name(row.process) for row in rows}
    return clients | {node: node for node in record.plan.nodes}


def _operation(row: Row, with_key: bool) -> list[_Line]:
    end, name = message_end(row.process), client_name(row.process)
    label = operation_label(row, with_key=with_key)
    call = label.partition(" → ")[0]
    begins = _Line(row.invoke_us, end, end, f"{name}: {call}", "●")
    if row.complete_index == OPEN:
        return [begins]
    return [begins, _Line(row.complete_us, end, end, f"{name}: {label}, answered", "■")]


def _message(message: MessageRecord) -> _Line:
    lost = message.receive_us < 0
    text = f"{message.name}{', lost' if lost else ''}"
    return _Line(message.send_us, message.source, message.target, text, "✕" if lost else "▶")


def _faults(record: RunRecord, start_us: int, stop_us: int, moment_us: int, names: dict[str, str]) -> list[_Line]:
    first = next(iter(names))
    return [
        _Line(max(fault.start_us, start_us - _BEFORE_US), first, first, f"fault: {fault_subject(fault)}", "")
        for fault in faults_during(settled_faults(record), start_us, stop_us, moment_us, 4)
    ]


# -- drawing -------------------------------------------------------------------------------------------------------


def _header(names: dict[str, str], width: int) -> str:
    cells = "".join(name[: _APART - 1].center(_APART) for name in names.values())
    return f"{'time':<{max(width, 10)}}  {cells}".rstrip()


def _drawn(line: _Line, names: dict[str, str], decimals: int, width: int) -> str:
    places = {end: _APART * number + _APART // 2 for number, end in enumerate(names)}
    canvas = [" "] * (_APART * len(names))
    for place in places.values():
        canvas[place] = "│"
    _draw(canvas, places[line.source], places[line.target], line.head)
    when = time_point(line.time_us, decimals)
    return f"{when:<{max(width, 10)}}  {''.join(canvas)}  {visible(line.text)}"


def _draw(canvas: list[str], source: int, target: int, head: str) -> None:
    if source == target:
        canvas[source] = head or "│"
        return
    for place in range(min(source, target) + 1, max(source, target)):
        canvas[place] = "┼" if canvas[place] == "│" else "─"
    canvas[source] = "├" if source < target else "┤"
    canvas[target] = head if head != "▶" or source < target else "◀"
