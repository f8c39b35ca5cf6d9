"""Lines of the logs of nodes, each with the moment that it names.

Every store writes time in its own way. `FORMATS` is the table of the known ones; a line in none of them belongs to the
line before it, as the rest of a stack trace does. A time without a zone is read as UTC and marked, since only the run
knows the zone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone

__all__ = ["FORMATS", "LoggedLine", "logged_line", "logged_lines"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE = r" ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?(?![\w:])"
_DATE = r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)"

FORMATS = {
    "JSON with a date (etcd)": re.compile(rf'\{{.{{0,80}}?"ts":"{_DATE}T{_CLOCK}{_ZONE}"'),
    "JSON with seconds since the epoch (etcd)": re.compile(r'\{.{0,80}?"ts":(?P<epoch>\d{9,11}(?:\.\d+)?)'),
    "day and name of the month (Redis)": re.compile(
        rf"\d+:[A-Z] (?P<day>\d\d) (?P<name>{'|'.join(_MONTHS)}) (?P<year>\d{{4}}) {_CLOCK}"
    ),
    "year first (NATS, PostgreSQL, Patroni, ZooKeeper, RabbitMQ, MariaDB, reference systems)": re.compile(
        rf"(?:\[\d+\] )?{_DATE}[T ] ?{_CLOCK}{_ZONE}"
    ),
}
"""The known formats of time and the stores that use them: regular expressions for the beginning of a line."""

_TEXT_LENGTH_MAX = 1_000


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line logged at `time_us` since the epoch: `has_zone` means that it names its zone, `is_rough` that it has whole
    seconds only. The following lines without a time are in `text`, after ` / `."""

    time_us: int
    text: str
    has_zone: bool = True
    is_rough: bool = False


def logged_lines(lines: Iterable[str]) -> Iterator[LoggedLine]:
    """Yield the lines of a log that have a time, in their order, each with the lines without one that follow it."""
    current: LoggedLine | None = None
    for line in lines:
        found = logged_line(line)
        if found is None:
            current = _continued(current, line)
            continue
        if current is not None:
            yield current
        current = found
    if current is not None:
        yield current


def _continued(current: LoggedLine | None, line: str) -> LoggedLine | None:
    if current is None or not line.strip() or len(current.text) >= _TEXT_LENGTH_MAX:
        return current
    return replace(current, text=f"{current.text} / {line.strip()}"[:_TEXT_LENGTH_MAX])


def logged_line(line: str) -> LoggedLine | None:
    """Return the time and the text of `line`, or None when it begins with no time that is known."""
    for pattern in FORMATS.values():
        match = pattern.match(line)
        if match is not None:
            return _line_of(match, line)
    return None


def _line_of(match: re.Match[str], line: str) -> LoggedLine | None:
    told = match.groupdict()
    try:
        time_us = round(float(told["epoch"]) * 1e6) if "epoch" in told else _epoch_us(told)
    except ValueError:  # The text has the form of a date and is none, such as 30 February.
        return None
    text = _json_text(line) if line.startswith("{") else line[match.end() :].strip()
    return LoggedLine(
        time_us=time_us,
        text=text[:_TEXT_LENGTH_MAX],
        has_zone="epoch" in told or told.get("zone") is not None,
        is_rough="epoch" not in told and told["fraction"] is None,
    )


def _epoch_us(told: dict[str, str]) -> int:
    month = _MONTHS.index(told["name"]) + 1 if "name" in told else int(told["month"])
    date = int(told["year"]), month, int(told["day"])
    clock = int(told["hour"]), int(told["minute"]), int(told["second"])
    seconds = datetime(*date, *clock, tzinfo=_zone(told.get("zone"))).timestamp()
    return int(seconds) * 1_000_000 + int((told["fraction"] or "").ljust(6, "0")[:6])


def _zone(name: str | None) -> timezone:
    if name is None or name[0] not in "+-":
        return UTC
    minutes = int(name[1:3]) * 60 + int(name[-2:])
    return timezone(timedelta(minutes=-minutes if name[0] == "-" else minutes))


def _json_text(line: str) -> str:
    """Return the level and message first, then the other fields; the line unchanged when it is no whole object."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return line
    first = " ".join(str(held.pop(name)) for name in ("level", "msg") if name in held)
    held.pop("ts", None)
    rest = " ".join(f"{name}={value}" for name, value in held.items())
    return f"{first} {rest}".strip()
