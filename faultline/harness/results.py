"""The one door through which a results folder is written: every write, sync and rename of it passes here.

A file that is written whole appears under its name at once or not at all. It is written under another name first, which
is unique on every machine that shares the folder: two commands, or two attempts at one unit of work, never meet.
What is written as it happens (a history) goes to the operating system line by line.

The three primitives at the end stand apart so that a test can fail each of their calls in turn, and check the verdict
(SQLite tests its I/O errors that way: https://sqlite.org/testing.html, section 3.2)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from faultline.harness.errors import HarnessError

Buffer = bytes | memoryview
"""The types that can be written: bytes, or a view of them."""

__all__ = ["RESULTS_FOLDER", "appending", "unique_partial", "writable", "write_pieces", "write_whole"]

RESULTS_FOLDER = Path("faultline-results")
"""The folder that keeps runs and campaigns, when no other is named."""

_UMASKED = 0o666


def write_whole(path: Path, data: Buffer, *, durable: bool = True, replace: bool = True) -> None:
    """Write `data` as the file `path`, all of it or nothing; otherwise as `write_pieces`."""
    write_pieces(path, (data,), durable=durable, replace=replace)


def write_pieces(path: Path, pieces: Iterable[Buffer], *, durable: bool = True, replace: bool = True) -> None:
    """Write `pieces`, one after another, as the file `path`, and replace it if it exists.

    With `durable` the bytes and the name are on the disk when this returns; without it they get there some time later,
    which is enough where a lost file is made again. Without `replace` an existing file stays as it is, and the new one
    is dropped. Raise OSError.
    """
    partial = unique_partial(path)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _UMASKED)
        try:
            for piece in pieces:
                _write(descriptor, piece)
            if durable:
                _sync(descriptor)
        finally:
            os.close(descriptor)
        if replace:
            _rename(partial, path)
        else:
            _link(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


@contextlib.contextmanager
def appending(path: Path) -> Iterator[Callable[[bytes], int]]:
    """Return a function that appends bytes to the new or emptied file `path`, each call handed to the operating
    system."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, _UMASKED)

    def append(data: bytes) -> int:
        _write(descriptor, data)
        return len(data)

    try:
        yield append
    finally:
        os.close(descriptor)


def unique_partial(path: Path) -> Path:
    """Return a hidden name beside `path` that no other process takes, on this machine or on another that shares the
    folder."""
    return path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}.partial")


@contextlib.contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Turn an OSError of the block into a HarnessError that names `folder` and the next step."""
    try:
        yield
    except OSError as error:
        raise HarnessError(
            f"Cannot write to the store at {folder}: {error.strerror or error}.",
            "Choose a folder you may write to with --output DIR, or make room on the disk.",
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: Buffer) -> None:
    """Write all of `data`; a full disk may take a part of it without an error, and fail only at the next call."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync(descriptor: int) -> None:
    os.fsync(descriptor)


def _rename(source: Path, target: Path) -> None:
    source.replace(target)


def _link(source: Path, target: Path) -> None:
    """Give `source` the name `target` unless that is taken; `source` is gone afterwards."""
    try:
        target.hardlink_to(source)
    except FileExistsError:
        pass
    except OSError:
        # This file system has no hard links. A rename after a check leaves a small window, which is the best it can do.
        if not target.exists():
            source.replace(target)
    source.unlink(missing_ok=True)
