"""The one door for bytes that strangers or crashes may have written: histories, run files, plans, host files.

Input is checked in this order: it is not too large, it arrives in time, it is UTF-8, it is nested no deeper than the
program can follow, and it has the expected type. The first check that fails raises `DamagedInput` with the file, the
place in it and the cause. A decoder's own errors (RecursionError, UnicodeDecodeError, plain
ValueError, MemoryError) are turned into that error here, so that no reader has to know them all.

    read_whole        a file's bytes, or those that come out of a pipe
    opened            the same as a stream, for input that need not fit into memory
    from_json         bytes or text as JSON of a given type; read_json does both
    from_toml         text as TOML; read_toml does both
    converted         decoded values as a record

A pipe can be read only once, and readers open a file several times, so the content of a pipe is kept until the process
ends. Its first bytes, and each later piece, must come within ten seconds.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from faultline.harness.errors import UsageError

__all__ = [
    "DEADLINE_S",
    "DEPTH_MAX",
    "HISTORY_BYTES_MAX",
    "WHOLE_BYTES_MAX",
    "DamagedInput",
    "as_text",
    "converted",
    "decoded",
    "from_json",
    "from_toml",
    "is_nested_too_deep",
    "opened",
    "read_json",
    "read_toml",
    "read_whole",
]

DEADLINE_S = 10.0
"""The time that a pipe or a device may stay silent."""

DEPTH_MAX = 100
"""The depth to which values may nest: more than any history needs, and less than the rest of the program can follow."""

WHOLE_BYTES_MAX = 1 << 30
"""The largest file that is read at once: the plan of some ten million operations."""

HISTORY_BYTES_MAX = 8 << 30
"""The largest history that is read at once, where it has to be whole; elsewhere it is read piece by piece."""

TOML_BYTES_MAX = 1 << 20
PIPE_BYTES_MAX = 1 << 28
_PIECE_BYTES = 1 << 20
_KEY_PARTS_MAX = 200
_MENDED = "It was written by another version, or damaged."
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_PLACE_IN_TOML = re.compile(r" \(at (line \d+, column \d+)\)$")
_Kind = TypeVar("_Kind")


class DamagedInput(UsageError):
    """A file, or an answer, that cannot be used as it is: where it came from, the place in it, and the cause."""

    def __init__(self, source: Path | str, cause: str, *, place: str = "", next_step: str = _MENDED) -> None:
        self.source, self.place, self.cause = str(source), place, cause
        super().__init__(f"{source}{f', {place}:' if place else ' cannot be read:'} {cause}.", next_step)


def read_whole(path: Path, *, bytes_max: int = WHOLE_BYTES_MAX, next_step: str = _MENDED) -> bytes:
    """Return all bytes of the file or pipe `path`. Raise DamagedInput when they cannot be read or are too many."""
    with opened(path, next_step=next_step) as file:
        if file.seek(0, os.SEEK_END) > bytes_max:
            raise _too_large(path, bytes_max, next_step)
        file.seek(0)
        return file.read()


@contextlib.contextmanager
def opened(path: Path, *, deadline_s: float | None = None, next_step: str = _MENDED) -> Iterator[BinaryIO]:
    """Return the file `path`, open for reading; a pipe has been read to its end before. Raise DamagedInput, also later.

    A pipe or device may be silent for `deadline_s` seconds (default: `DEADLINE_S`).
    """
    try:
        with _open(path, DEADLINE_S if deadline_s is None else deadline_s, next_step) as file:
            yield file
    except OSError as error:
        raise DamagedInput(path, error.strerror or str(error), next_step=next_step) from error
    except MemoryError as error:
        raise DamagedInput(path, "it does not fit into memory", next_step=next_step) from error


def _open(path: Path, deadline_s: float, next_step: str) -> BinaryIO:
    if "\0" in str(path):
        raise DamagedInput(repr(str(path)), "that is not the name of a file", next_step=next_step)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode):
            return open(descriptor, "rb")
        if stat.S_ISDIR(about.st_mode):
            raise DamagedInput(path, "it is a folder, not a file", next_step=next_step)
        pipe = (str(path), about.st_dev, about.st_ino)
        if pipe not in _said_by_pipes:
            _said_by_pipes[pipe] = _said(path, descriptor, deadline_s, next_step)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return io.BytesIO(_said_by_pipes[pipe])


_said_by_pipes: dict[tuple[str, int, int], bytes] = {}
"""The contents of pipes, by their name, device and inode."""


def _said(path: Path, descriptor: int, deadline_s: float, next_step: str) -> bytes:
    """Return all that comes out of a pipe or device."""
    pieces: list[bytes] = []
    length = 0
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll(1000 * deadline_s):
        try:
            piece = os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        length += len(piece)
        if length > PIPE_BYTES_MAX:
            raise _too_large(path, PIPE_BYTES_MAX, next_step)
    raise DamagedInput(path, f"it sent nothing for {deadline_s:g} s", next_step="Write it to a file first.")


def _too_large(path: Path, bytes_max: int, next_step: str) -> DamagedInput:
    return DamagedInput(path, f"it has more than {bytes_max >> 20} MiB", next_step=next_step)


def as_text(data: bytes, source: Path | str, *, next_step: str = _MENDED) -> str:
    """Return `data` as UTF-8. Raise DamagedInput with the line of the first byte that is not."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DamagedInput(source, "it is not text in UTF-8", place=f"line {line}", next_step=next_step) from error


def is_nested_too_deep(text: bytes | str, depth_max: int = DEPTH_MAX) -> bool:
    """Return whether brackets nest deeper than `depth_max` in JSON or something like it.

    Most text has fewer brackets than that altogether. In other text each round removes the innermost pairs, at the
    speed of `bytes.replace`, so that the number of rounds is the depth."""
    if isinstance(text, str):
        if text.count("[") + text.count("{") <= depth_max:
            return False
        text = text.encode("utf-8", "surrogatepass")
    elif text.count(b"[") + text.count(b"{") <= depth_max:
        return False
    outside_strings = b"".join(_ESCAPED.sub(b"", text).split(b'"')[::2])
    brackets = outside_strings.translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(depth_max):
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    return brackets.count(b"[") > depth_max or b"[]" in brackets


def read_json(path: Path, kind: type[_Kind], *, bytes_max: int = WHOLE_BYTES_MAX, next_step: str = _MENDED) -> _Kind:
    """Return the JSON in the file `path`, as a `kind`. Raise DamagedInput."""
    return from_json(read_whole(path, bytes_max=bytes_max, next_step=next_step), kind, path, next_step=next_step)


def from_json(
    data: bytes | str, kind: type[_Kind], source: Path | str, *, place: str = "", next_step: str = _MENDED
) -> _Kind:
    """Return `data`, which came from `source`, as JSON of the type `kind`. Raise DamagedInput."""
    try:
        value: _Kind = decoded(data, kind)
        return value
    except ValueError as error:
        raise DamagedInput(source, str(error), place=place, next_step=next_step) from error


def decoded(data: bytes | str, kind: Any = Any) -> Any:
    """Return `data` as JSON of the type `kind`; raise ValueError with the cause, for readers that know the place."""
    if is_nested_too_deep(data):
        raise ValueError(f"values are nested more than {DEPTH_MAX} deep")
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    except UnicodeError as error:
        raise ValueError("it is not text in UTF-8") from error
    except (RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(f"a value is too large ({type(error).__name__})") from error


def read_toml(path: Path, *, next_step: str = "Correct that line.") -> dict[str, Any]:
    """Return the TOML in the file `path`. Raise DamagedInput."""
    data = read_whole(path, bytes_max=TOML_BYTES_MAX, next_step=next_step)
    return from_toml(as_text(data, path, next_step="A plan or a host file is TOML in UTF-8."), path)


def from_toml(text: str, source: Path | str) -> dict[str, Any]:
    """Return `text`, which came from `source`, as TOML. Raise DamagedInput."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _KEY_PARTS_MAX:
            cause = f"it has more than {_KEY_PARTS_MAX} dots"
            raise DamagedInput(source, cause, place=f"line {number}", next_step="Write it on several lines.")
    if is_nested_too_deep(text):
        raise DamagedInput(source, f"values are nested more than {DEPTH_MAX} deep", next_step="Nest it less.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE_IN_TOML.search(str(error))
        cause = f"not valid TOML: {_PLACE_IN_TOML.sub('', str(error))}"
        raise DamagedInput(source, cause, place=place[1] if place else "", next_step="Correct that line.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise DamagedInput(source, f"not valid TOML: {error}", next_step="Correct that value.") from error


def converted(
    values: Any, kind: type[_Kind], source: Path | str, *, place: str = "", next_step: str = _MENDED
) -> _Kind:
    """Return the decoded `values` as a record of type `kind`. Raise DamagedInput with the key."""
    try:
        return msgspec.convert(values, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DamagedInput(source, str(error), place=place, next_step=next_step) from error
