"""A storage in memory for tests by hand: it remembers every effect, so it can crash in every way that a disk may.

Two kinds of crash. In a *strict* one every requested fsync has finished. After the last one, each file keeps a prefix
of its changes, torn inside an append, and the directory a prefix of its changes. In a *lagging* one the fsyncs after
some point had not finished although the program went on, as behind an outbox: files may even so hold changes made
later, but the directory is as the last finished fsync left it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Crash", "Failure", "MemoryStorage", "keep_all", "keep_names_only", "keep_nothing"]

Choose = Callable[[int], int]
"""A choice: given n, return a number from 0 to n."""


class Crash(Exception):
    """The machine stops before the next effect; raised once `effects_max` is reached."""


class Failure(OSError):
    """The disk refuses the operation named by `failing`."""


def keep_all(n: int) -> int:
    """Choose the crash that keeps every change that could have become durable."""
    return n


def keep_nothing(_: int) -> int:
    """Choose the crash that keeps only fsynced changes."""
    return 0


def keep_names_only() -> Choose:
    """Return the choice for one strict crash after which all names are changed, and no content is."""
    answers = iter([keep_all])
    return lambda n: next(answers, keep_nothing)(n)


class _Change(NamedTuple):
    number: int
    kind: str
    data: bytes = b""
    size: int = 0


class _File:
    def __init__(self, content: bytes = b"") -> None:
        self.durable = content
        self.changes: list[_Change] = []
        self.syncs: list[int] = []

    def content(self) -> bytes:
        return _applied(self.durable, self.changes)

    def after_crash(self, finished: int, choose: Choose) -> bytes:
        """Return the content when syncs up to effect `finished` are done and `choose` picks the other changes that
        survive."""
        synced = max((number for number in self.syncs if number <= finished), default=0)
        safe = [change for change in self.changes if change.number <= synced]
        rest = self.changes[len(safe) :]
        kept = choose(len(rest))
        content = _applied(self.durable, safe + rest[:kept])
        if kept < len(rest) and rest[kept].kind == "append":
            content += rest[kept].data[: choose(len(rest[kept].data))]
        return content


def _applied(content: bytes, changes: list[_Change]) -> bytes:
    for change in changes:
        if change.kind == "append":
            content += change.data
        elif change.kind == "write":
            content = change.data
        else:
            content = content[: change.size]
    return content


class MemoryStorage:
    """The `Storage` port over dictionaries, with crashes, and failures of the disk on demand.

    `effects` counts changes and fsyncs since the last crash, `fsyncs` those of the whole life.
    """

    def __init__(self) -> None:
        self.effects = 0
        self.fsyncs = 0
        self.effects_max: int | None = None
        """Raise `Crash` instead of the effect after this many."""
        self.failing = ""
        """The name of the operation that raises `Failure`; an append leaves half of its bytes first."""
        self._names: dict[str, _File] = {}
        self._directories: list[tuple[int, dict[str, _File]]] = [(0, {})]
        self._syncs = [0]

    def files(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(self._names)

    def read(self, file: str) -> bytes:
        """Return the whole content; empty when there is no such file."""
        return self._names[file].content() if file in self._names else b""

    def append(self, file: str, data: bytes) -> None:
        """Add `data` to the end of `file`."""
        if self.failing == "append":
            self._change(file, _Change(self._effect(""), "append", data[: len(data) // 2]))
        self._change(file, _Change(self._effect("append"), "append", data))

    def write(self, file: str, data: bytes) -> None:
        """Replace the content of `file`."""
        self._change(file, _Change(self._effect("write"), "write", data))

    def truncate(self, file: str, size: int) -> None:
        """Cut `file` to `size` bytes."""
        self._change(file, _Change(self._effect("truncate"), "truncate", size=size))

    def rename(self, old: str, new: str) -> None:
        """Rename `old`, replacing `new`."""
        number = self._effect("rename")
        self._names[new] = self._names.pop(old)
        self._directories.append((number, dict(self._names)))

    def delete(self, file: str) -> None:
        """Remove `file` and its content."""
        number = self._effect("delete")
        self._names.pop(file, None)
        self._directories.append((number, dict(self._names)))

    def fsync(self, file: str) -> None:
        """Make `file` and all names durable."""
        self.fsyncs += 1
        number = self._effect("fsync")
        self._syncs.append(number)
        if file in self._names:
            self._names[file].syncs.append(number)

    def fsync_folder(self) -> None:
        """Make all names durable, unless the last effect of names was followed by an fsync already."""
        if self._directories[-1][0] > self._syncs[-1]:
            self._syncs.append(self._effect("fsync"))

    def damage(self, file: str, position: int, mask: int = 1) -> None:
        """Flip bits of one durable byte."""
        content = bytearray(self.read(file))
        content[position] ^= mask
        self.put(file, bytes(content))

    def put(self, file: str, content: bytes) -> None:
        """Make `file` durably hold `content`."""
        self._names[file] = _File(content)
        self._settle()

    def crash(self, choose: Choose = keep_nothing, *, lagging: bool = False) -> int:
        """Lose changes that were not durable; return the number of the last effect whose fsync had finished."""
        finished = self._syncs[choose(len(self._syncs) - 1)] if lagging else self._syncs[-1]
        later = [names for number, names in self._directories if number > finished]
        synced = [names for number, names in self._directories if number <= finished][-1]
        names = synced if lagging else [synced, *later][choose(len(later))]
        self._names = {name: _File(file.after_crash(finished, choose)) for name, file in sorted(names.items())}
        self._settle()
        return finished

    def _settle(self) -> None:
        self._names = {name: _File(file.content()) for name, file in self._names.items()}
        self._directories = [(0, dict(self._names))]
        self._syncs = [0]
        self.effects = 0
        self.effects_max = None
        self.failing = ""

    def _effect(self, operation: str) -> int:
        if self.effects_max is not None and self.effects >= self.effects_max:
            raise Crash(f"before effect {self.effects + 1}")
        if operation and operation == self.failing:
            raise Failure(f"{operation} failed")
        self.effects += 1
        return self.effects

    def _change(self, file: str, change: _Change) -> None:
        if file not in self._names:
            self._names[file] = _File()
            self._directories.append((change.number, dict(self._names)))
        self._names[file].changes.append(change)
