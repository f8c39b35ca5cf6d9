"""The trace of a real node: one JSON line per event, written at once, read back after the run.

Lines carry the machine's monotonic time, which all nodes of one machine share, so the traces of all nodes merge into
one order in which causes stand before effects. A line is handed to the kernel before the handler goes on, so it
survives SIGKILL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.invariant import Breach, Invariant
from faultline.harness.untrusted import decoded
from faultline.harness.world.local.clock import machine_monotonic_us

__all__ = ["FileTrace", "SilentTrace", "TraceLine", "observe", "read_traces"]


class TraceLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: an `event` (a type name with `data`), a mark that was reached, or a mark that did not hold."""

    time_us: int
    node: str
    event: str = ""
    data: Any = None
    sometimes: str = ""
    always: str = ""
    detail: str = ""


class SilentTrace:
    """The trace of clients, which is not read."""

    def emit(self, event: msgspec.Struct) -> None:
        """Ignore an event."""

    def sometimes(self, mark: str) -> None:
        """Ignore a mark."""

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        """Ignore a mark."""


class FileTrace:
    """The trace port of one node over the file at `path`."""

    def __init__(self, node: str, path: Path) -> None:
        self._node = node
        self._encoder = msgspec.json.Encoder()
        torn = path.exists() and not path.read_bytes().endswith(b"\n")
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if torn:
            # The kill that ended the process before us tore its last line; ours must not be glued to it.
            os.write(self._descriptor, b"\n")

    def emit(self, event: msgspec.Struct) -> None:
        """Write a typed event."""
        self._write(TraceLine(machine_monotonic_us(), self._node, event=type(event).__name__, data=event))

    def sometimes(self, mark: str) -> None:
        """Write that `mark` was reached."""
        self._write(TraceLine(machine_monotonic_us(), self._node, sometimes=mark))

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        """Write that `mark` did not hold, when it did not."""
        if not condition:
            self._write(TraceLine(machine_monotonic_us(), self._node, always=mark, detail=detail))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _write(self, line: TraceLine) -> None:
        os.write(self._descriptor, self._encoder.encode(line) + b"\n")


def read_traces(paths: Iterable[Path]) -> list[TraceLine]:
    """Return the lines of all nodes' traces in order of time. Lines that a kill has torn are dropped."""
    lines: list[TraceLine] = []
    for path in paths:
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            with suppress(ValueError):
                lines.append(decoded(line, TraceLine))
    return sorted(lines, key=lambda line: line.time_us)


def observe(
    lines: Sequence[TraceLine], invariants: Sequence[Invariant], run_us: Callable[[int], int]
) -> tuple[list[Breach], dict[str, int]]:
    """Feed the lines to `invariants`; the first breach of each, and how often each mark was reached.

    `run_us` turns the machine's monotonic time into the time of the run.
    """
    observers: dict[str, list[tuple[type[msgspec.Struct], Invariant]]] = {}
    for invariant in invariants:
        for event_type in invariant.events:
            observers.setdefault(event_type.__name__, []).append((event_type, invariant))
    breaches: dict[str, Breach] = {}
    marks: dict[str, int] = {}

    def report(breach: Breach) -> None:
        breaches.setdefault(breach.invariant, breach)

    for line in lines:
        time_us = run_us(line.time_us)
        if line.sometimes:
            marks[line.sometimes] = marks.get(line.sometimes, 0) + 1
        elif line.always:
            sentence = f"{line.always} did not hold at {line.node}{': ' + line.detail if line.detail else ''}."
            report(Breach(invariant=line.always, sentence=sentence, time_us=time_us, node=line.node))
        for event_type, invariant in observers.get(line.event, ()):
            invariant.observe(time_us, line.node, msgspec.convert(line.data, event_type), report)
    return list(breaches.values()), marks
