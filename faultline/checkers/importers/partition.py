"""Histories larger than memory allows, split by key on disk.

Keys are checked apart (linearizability is local: Herlihy & Wing 1990, section 3), so it suffices that the operations of
one key fit into memory. The events are read once and paired as always; whenever a segment of them has been read, the
completed operations go to one of several files by their key, and only those that are still open stay. Then each file
is a small history of whole keys.

Limits: one key must fit into memory (some 750 bytes an operation), operations that never complete stay there to the
end, and the disk must have room for about as much as the file takes. A file of 282 MB, 1,500,000 operations on 2,000
keys, was judged in 300 MB of memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from faultline.checkers.importers.events import COLUMNS, EventError, EventRecorder, selected
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.independent import KeyNames, split_tuples
from faultline.checkers.importers.text import EventSource, malformed
from faultline.harness.history import History

__all__ = ["PART_BYTES", "Part", "partitioned"]

PART_BYTES = 32 << 20
"""The bytes of the file that go into one part, which takes four or five times as much memory once it is read."""

_PARTS_MAX = 200
_SEGMENT_EVENTS = 200_000


@dataclass(frozen=True, slots=True)
class Part:
    """Some keys of a history, and the number of each of their operations among all."""

    imported: ImportedHistory
    numbers: list[int]


def partitioned(source: EventSource, sample: ImportedHistory, part_bytes: int = PART_BYTES) -> Iterator[Part]:
    """Yield the parts of the history in `source`; `sample`, its beginning, shows where the keys are.

    Raise UsageError for an input that would also be refused as a whole.
    """
    parts = min(_PARTS_MAX, source.path.stat().st_size // part_bytes + 1)
    with tempfile.TemporaryDirectory(prefix="faultline-check-") as folder:
        files = [Path(folder) / str(number) for number in range(parts)]
        nemesis_events = _Splitter(source, sample).split_into(files)
        for file in files:
            history, numbers = _loaded(file)
            if numbers:
                yield Part(
                    ImportedHistory(history, sample.model, sample.clock, nemesis_events, sample.keys_from), numbers
                )


class _Splitter:
    """A distributor of the operations of a history over files, by key."""

    def __init__(self, source: EventSource, sample: ImportedHistory) -> None:
        self._source = source
        self._sample = sample
        self._names = KeyNames()
        self._place: dict[str | None, int] = {}

    def split_into(self, paths: list[Path]) -> int:
        """Write the operations of each key to one of `paths`; return the number of events of the nemesis."""
        recorder = EventRecorder()
        files: list[BinaryIO] = [path.open("wb") for path in paths]
        try:
            for event in self._source:
                recorder.record(event)
                if recorder.events % _SEGMENT_EVENTS == 0:
                    self._write(*recorder.drain(), files)
            recorder.close()
            self._write(*recorder.drain(), files)
        except EventError as error:
            line = self._source.line_of(recorder.events)
            raise malformed(self._source.path, line, f"{error} (event {recorder.events})") from error
        finally:
            for file in files:
                file.close()
        return recorder.nemesis_events

    def _write(self, history: History, numbers: list[int], files: list[BinaryIO]) -> None:
        if self._sample.keys_from == "tuples":
            split_tuples(history, self._names)
        if self._sample.clock == "events":
            history.invoke_us, history.complete_us = history.invoke_index[:], history.complete_index[:]
        rows: list[list[int]] = [[] for _ in files]
        for row, key in enumerate(history.key):
            rows[self._place.setdefault(key, len(self._place) % len(files))].append(row)
        for file, chosen in zip(files, rows):
            part = selected(history, chosen)
            columns = [getattr(part, name) for name in COLUMNS]
            pickle.dump(([numbers[row] for row in chosen], columns), file, protocol=pickle.HIGHEST_PROTOCOL)


def _loaded(path: Path) -> tuple[History, list[int]]:
    """Return the history in a file, in order of invocation, with the number of each operation."""
    numbers: list[int] = []
    columns: list[list[Any]] = [[] for _ in COLUMNS]
    size = path.stat().st_size
    with path.open("rb") as file:
        while file.tell() < size:
            more_numbers, more_columns = pickle.load(file)
            numbers += more_numbers
            for column, more in zip(columns, more_columns):
                column += more
    history = History()
    for name, column in zip(COLUMNS, columns):
        setattr(history, name, column)
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    ordered = selected(history, order)
    ordered.next_index = max([-1, *ordered.invoke_index, *ordered.complete_index]) + 1
    return ordered, [numbers[row] for row in order]
