"""A reader of text files piece by piece, which finds the line of an error afterwards.

A file is decoded as UTF-8 in pieces of a megabyte, so that it need not fit into memory. Readers of forms count events,
not lines, because that is faster; only when an event has to be refused is the file read again, line by line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Protocol

from faultline.checkers.importers.events import EventError
from faultline.harness.untrusted import DamagedInput, opened

__all__ = [
    "LONGEST_CHARACTERS",
    "NO_HISTORY",
    "EventSource",
    "FormReader",
    "Forms",
    "Lines",
    "Tail",
    "malformed",
    "numbered_lines",
]

NO_HISTORY = "Name a file that holds a history."

LONGEST_CHARACTERS = 1 << 28
"""The largest length of one event, or one line: it must fit into memory."""

_TOO_LONG = f"one event has more than {LONGEST_CHARACTERS >> 20} Mi characters"
_PIECE = 1 << 20
_LONG = 1 << 12


class EventSource(Protocol):
    """The events of a file, in order."""

    path: Path

    def __iter__(self) -> Iterator[Any]:
        """Return the events from the beginning. Raise UsageError with the line of an error."""

    def line_of(self, number: int) -> int:
        """Return the line on which event `number` ends, which is the last one given, counted from 1."""


class Tail:
    """Text that could not be parsed yet: the beginning of a long form, to be tried again later.

    A long beginning is not offered again before it has doubled, so that a string of a gigabyte, or one that is never
    closed, costs time in proportion to its length.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._next_try = 0

    def add(self, text: str) -> bool:
        """Take more text; return whether it is time to parse. Raise ValueError when too much is unparsed."""
        self._pieces.append(text)
        self._length += len(text)
        if self._length > LONGEST_CHARACTERS:
            raise ValueError(_TOO_LONG)
        return self._length >= self._next_try

    def take(self) -> str:
        """Return all text that waits."""
        text = "".join(self._pieces)
        self.keep("")
        return text

    def keep(self, text: str) -> None:
        """Keep `text`, which could not be parsed, until more comes."""
        self._pieces, self._length = [text], len(text)
        self._next_try = 2 * len(text) if len(text) > _LONG else 0


class FormReader(Protocol):
    """A parser that turns text into events, piece by piece, and raises ValueError with the cause."""

    def feed(self, text: str) -> list[Any]:
        """Return the events that `text` completes."""

    def finish(self) -> list[Any]:
        """Return the events that are complete because no more text comes."""


class Forms:
    """Events anywhere in the text, as found by the reader that `new_reader` makes."""

    def __init__(self, path: Path, new_reader: Callable[[], FormReader]) -> None:
        self.path = path
        self._new_reader = new_reader

    def __iter__(self) -> Iterator[Any]:
        reader = self._new_reader()
        try:
            for piece in _pieces(self.path):
                yield from reader.feed(piece)
            yield from reader.finish()
        except ValueError as error:
            raise malformed(self.path, self._line_of_error(), str(error)) from error

    def line_of(self, number: int) -> int:
        """Read up to the event again, line by line."""
        reader, seen, line = self._new_reader(), 0, 0
        for text in _lines(self.path):
            line += 1
            try:
                seen += len(reader.feed(text))
            except ValueError:
                break  # The event is on this line, before the damage.
            if seen >= number:
                break
        return line

    def _line_of_error(self) -> int:
        reader, line = self._new_reader(), 0
        try:
            for text in _lines(self.path):
                line += 1
                reader.feed(text)
        except ValueError:
            return line
        return max(line, 1)


class Lines:
    """Events of one line each; `parse` makes an event of a line, or raises ValueError with the cause.

    With `may_be_torn`, a last line that cannot be parsed and does not end is dropped, unless an EventError gives the
    cause.
    """

    def __init__(self, path: Path, parse: Callable[[str], Any], *, may_be_torn: bool = False) -> None:
        self.path = path
        self._parse = parse
        self._may_be_torn = may_be_torn
        self._line = 0

    def __iter__(self) -> Iterator[Any]:
        torn: ValueError | None = None
        has_end = False
        for number, text in numbered_lines(self.path):
            if torn is not None:
                raise malformed(self.path, self._line, str(torn)) from torn
            self._line = number
            try:
                event = self._parse(text)
            except ValueError as error:
                if not self._may_be_torn or isinstance(error, EventError):
                    raise malformed(self.path, number, str(error)) from error
                torn, has_end = error, text.endswith("\n")
            else:
                yield event
        if torn is not None and has_end:
            raise malformed(self.path, self._line, str(torn)) from torn

    def line_of(self, number: int) -> int:
        """Return the line that was read last."""
        return self._line


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a file that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(_lines(path), start=1) if not line.isspace())


def _pieces(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        while piece := file.read(_PIECE):
            yield piece


def _lines(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_CHARACTERS), ""), start=1):
            if len(line) == LONGEST_CHARACTERS:
                raise malformed(path, number, _TOO_LONG)
            yield line


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[TextIOWrapper]:
    """Return a text file whose errors are DamagedInput, whenever they come."""
    with opened(path, next_step=NO_HISTORY) as file:
        try:
            yield TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
        except UnicodeDecodeError as error:
            raise DamagedInput(path, "it is not a text file in UTF-8", next_step=NO_HISTORY) from error


def malformed(path: Path, line: int, cause: str) -> DamagedInput:
    """Return the error for a line that cannot be parsed."""
    return DamagedInput(
        path, cause, place=f"line {line}", next_step="Check the file, and that --format names its format."
    )
