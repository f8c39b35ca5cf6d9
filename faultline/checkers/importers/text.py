"""Reading text files piece by piece, and finding the line of an error afterwards.

A file is decoded as UTF-8 in pieces of a megabyte. Readers count events, not lines, because that is faster; only when
an event has to be refused is the file read again, line by line, up to that event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from faultline.harness.errors import UsageError

__all__ = ["EventReader", "line_of_event", "malformed", "numbered_lines", "read_events", "unreadable"]

_PIECE = 1 << 20


class EventReader(Protocol):
    """What turns text into events, piece by piece; raises ValueError with the cause."""

    def feed(self, text: str) -> list[Any]:
        """The events that `text` completes."""

    def finish(self) -> list[Any]:
        """The events that are complete because no more text comes."""


def read_events(path: Path, new_reader: Callable[[], EventReader]) -> Iterator[Any]:
    """The events in a file, in order. Raises UsageError with the line of what cannot be read."""
    reader = new_reader()
    try:
        for piece in _pieces(path):
            yield from reader.feed(piece)
        yield from reader.finish()
    except ValueError as error:
        raise malformed(path, _line_of_error(path, new_reader), str(error)) from error


def line_of_event(path: Path, new_reader: Callable[[], EventReader], number: int) -> int:
    """The line on which event `number`, counted from 1, ends."""
    reader, seen, line = new_reader(), 0, 0
    for text in _lines(path):
        line += 1
        seen += len(reader.feed(text))
        if seen >= number:
            break
    return line


def _line_of_error(path: Path, new_reader: Callable[[], EventReader]) -> int:
    reader, line = new_reader(), 0
    try:
        for text in _lines(path):
            line += 1
            reader.feed(text)
    except ValueError:
        return line
    return max(line, 1)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers from 1."""
    return ((number, line) for number, line in enumerate(_lines(path), start=1) if line.strip())


def _pieces(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        while piece := file.read(_PIECE):
            yield piece


def _lines(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        yield from file


class _opened:
    """A text file whose errors are UsageErrors, whenever they come."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        try:
            self._file = self._path.open(encoding="utf-8-sig", newline="\n")
        except OSError as error:
            raise unreadable(self._path, error) from error
        return self._file

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._file.close()
        if isinstance(error, OSError):
            raise unreadable(self._path, error) from error
        if isinstance(error, UnicodeDecodeError):
            raise UsageError(
                f"{self._path} is not a text file in UTF-8.", "Name a file that holds a history."
            ) from error


def unreadable(path: Path, error: OSError) -> UsageError:
    """The error of a file that cannot be opened or read."""
    return UsageError(f"{path} cannot be read: {error.strerror or error}.", "Name a file that holds a history.")


def malformed(path: Path, line: int, cause: str) -> UsageError:
    """The error of a line that cannot be understood."""
    return UsageError(f"{path}, line {line}: {cause}.", "Check the file, and that --format names its format.")
