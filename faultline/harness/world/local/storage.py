"""A node's files on a real disk, with the port's promise about crashes kept to the letter.

The kernel keeps what a killed process has written, so a test that only kills processes would never see the difference
between `write` and `fsync`: a node that acknowledges too early would look correct. Here every change stays in the
process until it is fsynced. SIGKILL then loses exactly what a power failure could lose.

    BufferedStorage   what the process sees, and the changes that are not on disk yet
    Commit            the changes that one `fsync` makes durable
    Disk              carries commits out, in order, with one real fsync per file for all that wait (group commit)

Fsyncing a file also commits every creation, rename and deletion so far, but not the bytes of other files: a file that
is renamed before it was fsynced can come back empty, as on ext4 and XFS (Pillai et al., OSDI 2014). Files are kept in
memory as long as the process lives; a node's files should be smaller than its machine's memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

__all__ = ["BufferedStorage", "Commit", "Disk"]


@dataclass(frozen=True, slots=True)
class _Create:
    file: str


@dataclass(frozen=True, slots=True)
class _Rename:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class _Delete:
    file: str


@dataclass(frozen=True, slots=True)
class _Append:
    data: bytes


@dataclass(frozen=True, slots=True)
class _Truncate:
    size: int


_NameChange = _Create | _Rename | _Delete
_DataChange = _Append | _Truncate


@dataclass(frozen=True, slots=True)
class Commit:
    """The effect of one `fsync`: all changes of names so far, then the changes of `file`'s bytes."""

    names: tuple[_NameChange, ...]
    file: str | None
    data: tuple[_DataChange, ...]


class _File:
    __slots__ = ("content", "pending")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.pending: list[_DataChange] = []


class BufferedStorage:
    """The storage port. `commit` is called with each fsync's changes, and has to carry them out in order."""

    def __init__(self, commit: Callable[[Commit], None], content: Iterable[tuple[str, bytes]] = ()) -> None:
        self._commit = commit
        self._files = {name: _File(data) for name, data in content}
        self._names: list[_NameChange] = []

    def files(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(self._files)

    def read(self, file: str) -> bytes:
        """Return the whole content as this process sees it."""
        found = self._files.get(file)
        return bytes(found.content) if found is not None else b""

    def append(self, file: str, data: bytes) -> None:
        """Add `data` to the end of `file`."""
        target = self._open(file)
        target.content += data
        target.pending.append(_Append(bytes(data)))

    def write(self, file: str, data: bytes) -> None:
        """Replace the content of `file`."""
        self.truncate(file, 0)
        self.append(file, data)

    def truncate(self, file: str, size: int) -> None:
        """Cut `file` to `size` bytes; a shorter file stays as it is."""
        target = self._open(file)
        del target.content[size:]
        target.pending.append(_Truncate(size))

    def rename(self, old: str, new: str) -> None:
        """Rename; durable after the next `fsync`. Nothing happens when there is no file `old`."""
        if old in self._files and old != new:
            self._files[new] = self._files.pop(old)
            self._names.append(_Rename(old, new))

    def delete(self, file: str) -> None:
        """Remove `file`; durable after the next `fsync`."""
        if self._files.pop(file, None) is not None:
            self._names.append(_Delete(file))

    def fsync(self, file: str) -> None:
        """Hand over the changes of all names and of `file`'s bytes to be made durable."""
        found = self._files.get(file)
        data = tuple(found.pending) if found is not None else ()
        self._commit(Commit(tuple(self._names), file if found is not None else None, data))
        self._names.clear()
        if found is not None:
            found.pending.clear()

    def fsync_folder(self) -> None:
        """Hand over the changes of names to be made durable, where an `fsync` has not done so."""
        if self._names:
            self._commit(Commit(tuple(self._names), None, ()))
            self._names.clear()

    def _open(self, file: str) -> _File:
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = _File()
            self._names.append(_Create(file))
        return found


def _at_once() -> int:
    """Return the delay of a disk that is as fast as the machine's."""
    return 0


class Disk:
    """The files of one node in one folder. `carry_out` blocks until everything is durable.

    `delay_us` is asked before each round how long the disk lets it wait. An SSD or the memory behind a virtual disk
    flushes in microseconds; on a disk that needs milliseconds, as most do, the time between a write and its fsync is
    long enough for a crash to fall into it.
    """

    def __init__(self, folder: Path, delay_us: Callable[[], int] = _at_once) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._delay_us = delay_us
        self._folder = folder
        self._descriptors: dict[str, int] = {}
        self._dirty: set[int] = set()
        self._cut: set[int] = set()
        self.fsyncs = 0

    def content(self) -> list[tuple[str, bytes]]:
        """Return the names and bytes of the files on disk."""
        return [(unquote(path.name), path.read_bytes()) for path in sorted(self._folder.iterdir()) if path.is_file()]

    def carry_out(self, commits: Sequence[Commit]) -> None:
        """Make `commits` durable, in order, with as few fsyncs as that order allows. Raises OSError."""
        time.sleep(self._delay_us() / 1_000_000)
        for commit in commits:
            if commit.names:
                # A rename must not reach the disk before the bytes that an earlier commit promised.
                self._flush()
                for change in commit.names:
                    self._change_name(change)
                self._sync_folder()
            if commit.file is not None:
                if self._descriptors.get(commit.file) in self._cut:
                    # With one fsync for both, a power failure could leave new bytes after what was to be cut off.
                    self._flush()
                self._change_data(commit.file, commit.data)
        self._flush()

    def close(self) -> None:
        """Close all files."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _change_name(self, change: _NameChange) -> None:
        match change:
            case _Create(file):
                self._descriptor(file)
            case _Rename(old, new):
                self._forget(new)
                os.replace(self._path(old), self._path(new))
                if old in self._descriptors:
                    self._descriptors[new] = self._descriptors.pop(old)
            case _Delete(file):
                self._forget(file)
                with suppress(FileNotFoundError):
                    os.unlink(self._path(file))

    def _change_data(self, file: str, changes: Sequence[_DataChange]) -> None:
        if not changes:
            return
        descriptor = self._descriptor(file)
        for change in changes:
            match change:
                case _Append(data):
                    _write_all(descriptor, data)
                case _Truncate(size):
                    os.ftruncate(descriptor, min(size, os.fstat(descriptor).st_size))
                    self._cut.add(descriptor)
        self._dirty.add(descriptor)

    def _flush(self) -> None:
        for descriptor in sorted(self._dirty):
            os.fsync(descriptor)
            self.fsyncs += 1
        self._dirty.clear()
        self._cut.clear()

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _descriptor(self, file: str) -> int:
        descriptor = self._descriptors.get(file)
        if descriptor is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            descriptor = self._descriptors[file] = os.open(self._path(file), flags, 0o644)
        return descriptor

    def _forget(self, file: str) -> None:
        descriptor = self._descriptors.pop(file, None)
        if descriptor is not None:
            self._dirty.discard(descriptor)
            os.close(descriptor)

    def _path(self, file: str) -> Path:
        # A file name of the port is any string; on disk it must be one path component.
        return self._folder / quote(file, safe=" ")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
