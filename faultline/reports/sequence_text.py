"""A run as a sequence diagram in plain text: lifelines of clients and nodes, and the messages between them.

    time        client 2    athens     byzantium
    3.0371 s       ●          │            │      client 2: write 10
    3.0374 s       ├─────────▶│            │      ClientRequest
    3.0391 s       │          ├────────────✕      ReplicationRequest, lost
    3.0402 s       │          ◀────────────┤      Heartbeat, stale: sent 1.0231 s

It is for a terminal or a ticket, which cannot show the drawing of `space_time`. It has the same messages, chosen by
cause (`message_choice`), in the order in which they were sent; a stale one stands where it arrives, and where it was
sent if that is shown. A line counts those that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from faultline.harness.history import OPEN, Row
from faultline.harness.run_record import MessageRecord
from faultline.reports.descriptions import operation_label
from faultline.reports.message_choice import message_end
from faultline.reports.selection import Shown
from faultline.reports.sentences import client_name, decimals_for, fault_sentence, fault_subject
from faultline.reports.text import time_point, visible

__all__ = ["sequence_lines"]

_APART = 12


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: its time, its lifelines from and to (equal: a note on one), its end, and its text."""

    time_us: int
    source: str
    target: str
    text: str
    head: str = "▶"


def sequence_lines(shown: Shown, *, width: int = 0) -> list[str]:
    """Return the operations, messages and faults that are `shown`, as lines of text; empty without operations
    and messages.

    `width` is the least width of the time column, so that two diagrams can be aligned.
    """
    if not shown.rows and not shown.messages.drawn:
        return []
    names = _lifelines(shown)
    lines = sorted(
        [
            *_faults(shown, next(iter(names))),
            *(line for row in shown.rows for line in _operation(row, len({row.key for row in shown.rows}) > 1)),
            *(line for message in shown.messages.drawn for line in _message(message, shown)),
        ],
        key=lambda line: line.time_us,
    )
    decimals = decimals_for(line.time_us for line in lines)
    left_out = shown.messages.left_out
    return [
        _header(names, width),
        *(_drawn(line, names, decimals, width) for line in lines),
        *([f"… {left_out}"] if left_out else []),
    ]


def _lifelines(shown: Shown) -> dict[str, str]:
    """Return the ends of messages that get a lifeline, in order, with the name each is shown under."""
    clients = {message_end(row.process): client_name(row.process) for row in shown.rows}
    return clients | {node: node for node in shown.nodes}


def _operation(row: Row, with_key: bool) -> list[_Line]:
    end, name = message_end(row.process), client_name(row.process)
    label = operation_label(row, with_key=with_key)
    call = label.partition(" → ")[0]
    begins = _Line(row.invoke_us, end, end, f"{name}: {call}", "●")
    if row.complete_index == OPEN:
        return [begins]
    return [begins, _Line(row.complete_us, end, end, f"{name}: {label}, answered", "■")]


def _message(message: MessageRecord, shown: Shown) -> list[_Line]:
    sent_us, received_us, ends = message.send_us, message.receive_us, (message.source, message.target)
    if received_us < 0:
        return [_Line(sent_us, *ends, f"{message.name}, lost", "✕")]
    if not message.stale:
        return [_Line(sent_us, *ends, message.name)]
    leaves = _Line(sent_us, *ends, f"{message.name}, stale: received {time_point(received_us, 4)}", "…")
    arrives = _Line(received_us, *ends, f"{message.name}, stale: sent {time_point(sent_us, 4)}")
    return [line for line in (leaves, arrives) if shown.start_us <= line.time_us <= shown.stop_us]


def _faults(shown: Shown, lane: str) -> list[_Line]:
    """Return the faults where they begin; those that began before the shown time are above it, with their times."""
    lines = []
    for fault in (*shown.faults.earlier, *shown.faults.meanwhile):
        told = fault_sentence(fault) if fault.start_us < shown.start_us else fault_subject(fault)
        lines.append(_Line(min(max(fault.start_us, shown.start_us), shown.stop_us), lane, lane, f"fault: {told}", ""))
    return lines


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
