"""The logs of the nodes around an anomaly: an excerpt of all logs in one order of time.

A reader of a broken run of a real store opens the logs of its nodes first. The excerpt puts them side by side, in
seconds since the start of the run. A log may be large: only the part that can hold the wanted time is read, found by
bisection. A log that is missing, unreadable or without times does not fail the report; the excerpt names it instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from faultline.harness.run_record import RunRecord
from faultline.reports.legend import fault_family
from faultline.reports.log_lines import LoggedLine, logged_lines
from faultline.reports.text import shorten, time_point

__all__ = ["MOST_LINES", "Excerpt", "LeftOut", "LogLine", "node_logs_excerpt"]

MOST_LINES = 60
BYTES_READ_MAX = 4 * 1024 * 1024
"""The bytes of one log that are read at most."""

_AROUND_US = 1_000_000
_PROBE_BYTES = 64 * 1024
_TEXT_LENGTH = 200
_QUARTER_HOUR_US = 15 * 60 * 1_000_000
_TELLING = re.compile(
    r"(\b(?:errors?|fatal|panic\w*|elected|election|(?:new )?leader|promot\w+|demot\w+|fail-?over|timed out|timeout"
    r"|step(?:ped|ping)? down|master mode|replicaof|switch-master)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the excerpt, `time_us` since the start of the run by the node's own clock."""

    time_us: int
    node: str
    text: str

    @property
    def pieces(self) -> list[tuple[str, bool]]:
        """The text in pieces; those with words about trouble or a new leader are True."""
        parts = _TELLING.split(shorten(self.text, _TEXT_LENGTH))
        return [(part, number % 2 == 1) for number, part in enumerate(parts) if part]

    @property
    def is_telling(self) -> bool:
        """True when the text mentions trouble or a new leader."""
        return _TELLING.search(self.text[:_TEXT_LENGTH]) is not None

    @property
    def kind(self) -> tuple[str, str]:
        """The text without its numbers, equal for lines that differ only in them."""
        return self.node, re.sub(r"\d+", "#", self.text[:_TEXT_LENGTH])


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of lines left out at this place."""

    lines: int


@dataclass(slots=True)
class Excerpt:
    """The lines from `start_us` to `stop_us` of the run, and notes about them, in sentences.

    Up to `main_us` it has only lines about trouble or a new leader, and lines that are the first of their kind; from
    then on as many as it has room for.
    """

    start_us: int
    main_us: int
    stop_us: int
    lines: list[LogLine | LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def node_logs_excerpt(record: RunRecord, start_us: int, stop_us: int, since_us: int | None = None) -> Excerpt | None:
    """Return the log lines of the nodes of `record` from a second before `start_us` to a second after `stop_us`.

    When the faults that contributed began earlier, at `since_us`, it begins with their effects. None for a run without
    logs, or without a recorded start.
    """
    logs = [Path(log) for log in record.detail.get("node_logs", ())]
    if not logs or not record.started_at_us:
        return None
    begin_us = start_us - _AROUND_US
    excerpt = Excerpt(min(begin_us, start_us if since_us is None else since_us), begin_us, stop_us + _AROUND_US)
    if any(fault_family(fault.kind).name == "clock" for fault in record.faults):
        excerpt.notes.append(
            "Clocks were moved in this run. Times are the nodes' own, so a line stands where its node's clock put it."
        )
    found: list[LogLine] = []
    for log in logs:
        found += _lines_during(log, record.started_at_us, excerpt)
    found.sort(key=lambda line: line.time_us)
    excerpt.lines = _with_what_led_to_it(found, excerpt.main_us)
    if found and not any(start_us <= line.time_us <= stop_us for line in found):
        excerpt.notes.append(
            f"No node logged a line from {time_point(start_us)} to {time_point(stop_us)}, while this happened; "
            "these are the lines around it."
        )
    return excerpt


def _lines_during(log: Path, started_at_us: int, excerpt: Excerpt) -> list[LogLine]:
    """Return the lines of `log` that belong in `excerpt`; note there the reason when lines are missing."""
    node = log.parent.name
    try:
        lines, is_whole = _read_around(log, started_at_us, excerpt.start_us)
    except OSError as error:
        excerpt.notes.append(f"The log of {node} cannot be read: {error.strerror or type(error).__name__}.")
        return []
    if not lines:
        excerpt.notes.append(f"The log of {node} is left out: its times have no known form.")
        return []
    during = [line for line in lines if excerpt.start_us <= line.time_us <= excerpt.stop_us]
    if any(line.is_rough for line in during):
        excerpt.notes.append(
            f"The log of {node} has whole seconds only: its lines may be up to a second later than shown."
        )
    if not is_whole and lines[-1].time_us <= excerpt.stop_us:
        excerpt.notes.append(f"Only {BYTES_READ_MAX >> 20} MiB of the log of {node} were read; it is longer.")
    return [LogLine(line.time_us, node, line.text) for line in during]


def _read_around(log: Path, started_at_us: int, start_us: int) -> tuple[list[LoggedLine], bool]:
    """Return the lines from before `start_us` on, in time of the run, and whether the file ends with them."""
    with log.open("rb") as file:
        size = file.seek(0, 2)
        zone_us = _zone_us(_lines_at(file, 0, _PROBE_BYTES), started_at_us)

        def in_run_time(line: LoggedLine) -> LoggedLine:
            zone = 0 if line.has_zone else zone_us
            return LoggedLine(line.time_us - zone - started_at_us, line.text, line.has_zone, line.is_rough)

        def is_before(position: int) -> bool:
            probed = _lines_at(file, position, _PROBE_BYTES)
            return bool(probed) and in_run_time(probed[0]).time_us < start_us

        begin = _last_position(size, is_before) if size > BYTES_READ_MAX else 0
        return [in_run_time(line) for line in _lines_at(file, begin, BYTES_READ_MAX)], begin + BYTES_READ_MAX >= size


def _zone_us(first: Sequence[LoggedLine], started_at_us: int) -> int:
    """Return the offset from UTC of times without a zone: a log begins with its run, and zones are quarter hours."""
    without = next((line.time_us for line in first if not line.has_zone), started_at_us)
    return round((without - started_at_us) / _QUARTER_HOUR_US) * _QUARTER_HOUR_US


def _last_position(size: int, is_before: Callable[[int], bool]) -> int:
    """Return some position of a file of `size` bytes that lies before the wanted time, close to it."""
    low, high = 0, size
    while high - low > _PROBE_BYTES:
        middle = (low + high) // 2
        low, high = (middle, high) if is_before(middle) else (low, middle)
    return low


def _lines_at(file: BinaryIO, position: int, length: int) -> list[LoggedLine]:
    """Return the lines with a time in that many bytes, without one that begins before `position`."""
    file.seek(max(0, position - 1))
    lines = file.read(length).decode("utf-8", "replace").split("\n")
    return list(logged_lines(lines[1:] if position else lines))


def _with_what_led_to_it(lines: Sequence[LogLine], main_us: int) -> list[LogLine | LeftOut]:
    """Return at most `MOST_LINES` lines: those from `main_us` on, after up to a third of telling ones from before."""
    if len(lines) <= MOST_LINES:
        return list(lines)
    main = sum(line.time_us < main_us for line in lines)
    led_to_it = _new_ones(lines, 0, main)[: MOST_LINES // 3]
    room = MOST_LINES - len(led_to_it)
    return _with_gaps(lines, {*led_to_it, *_bounded(lines, main, room)})


def _bounded(lines: Sequence[LogLine], start: int, room: int) -> set[int]:
    """Return the places of `room` lines: a fifth from either end, and from between the first lines of their kind."""
    if len(lines) - start <= room:
        return set(range(start, len(lines)))
    fifth = room // 5
    first, end = start + fifth, len(lines) - fifth
    return {*range(start, first), *_new_ones(lines, first, end)[: room - 2 * fifth], *range(end, len(lines))}


def _with_gaps(lines: Sequence[LogLine], chosen: set[int]) -> list[LogLine | LeftOut]:
    bounded: list[LogLine | LeftOut] = []
    previous = -1
    for number in sorted(chosen):
        if number > previous + 1:
            bounded.append(LeftOut(number - previous - 1))
        bounded.append(lines[number])
        previous = number
    left = len(lines) - 1 - previous
    return [*bounded, LeftOut(left)] if left else bounded


def _new_ones(lines: Sequence[LogLine], start: int, end: int) -> list[int]:
    """Return the places, from `start` to before `end`, of the first line of each kind: the telling ones before the
    others."""
    known = {line.kind for line in lines[:start]}
    places: list[int] = []
    for number in range(start, end):
        if lines[number].kind not in known:
            known.add(lines[number].kind)
            places.append(number)
    return sorted(places, key=lambda place: not lines[place].is_telling)
