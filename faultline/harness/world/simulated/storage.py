"""A simulated disk: what was not fsynced may be lost in a crash, a suffix at a time and torn anywhere.

Each file is its durable bytes and the operations since. An fsync makes durable what the file held when the fsync began,
and with it every creation, rename and deletion until then, as the journal of ext4 does. A crash keeps a prefix of the
operations that were not durable, chosen by the weather, and may cut the next append anywhere: the torn last write.
"""

from __future__ import annotations

from typing import Protocol

from faultline.harness.world.ports import Files
from faultline.harness.world.weather import uniform

__all__ = ["Disk", "DiskSync", "SimulatedDisk", "Sync"]

_APPEND, _WRITE, _TRUNCATE = 0, 1, 2


class DiskSync(Protocol):
    """A sync under way."""

    def finish(self) -> None:
        """Make durable what the sync covers."""

    def pretend(self) -> None:
        """End, and make nothing durable."""

    def put_off(self) -> None:
        """Cancel this sync: the next one makes its data durable too."""


class Disk(Files, Protocol):
    """The files of one node, kept over crashes. `Storage` calls reach it through the node's outbox."""

    def want_sync(self, file: str) -> None:
        """Remember that `file` is to be made durable by the next sync."""

    def want_folder_sync(self) -> bool:
        """Remember that names are to be made durable by the next sync; return False when that takes none."""

    def want_names_again(self) -> None:
        """Let the next `want_folder_sync` ask for all names that are not durable."""

    def forget_unsynced(self, file: str) -> None:
        """Let a sync of `file` fail: whether a later one makes durable what this one did not is the disk's nature."""

    def begin_sync(self) -> DiskSync:
        """Start a sync of all that is wanted."""

    def crash(self, stream_salt: int, now_us: int, *, process_only: bool = False) -> None:
        """Lose the process, and what was not durable, or a part of it, unless the machine goes on."""


_Change = tuple[int, bytes, int]


class _File:
    __slots__ = ("changes", "durable")

    def __init__(self) -> None:
        self.durable = bytearray()
        self.changes: list[_Change] = []

    def content(self) -> bytes:
        content = bytearray(self.durable)
        for change in self.changes:
            _apply(content, change)
        return bytes(content)

    def settle(self, count: int) -> None:
        """Make the first `count` changes durable."""
        for change in self.changes[:count]:
            _apply(self.durable, change)
        del self.changes[:count]

    def crash(self, stream_salt: int, now_us: int) -> None:
        """Keep a prefix of the changes, half of the time none at all, and tear the append after it."""
        kept = max(0, uniform(stream_salt, now_us, -len(self.changes), len(self.changes) + 1))
        torn = self.changes[kept] if kept < len(self.changes) else None
        self.settle(kept)
        self.changes.clear()
        if torn is not None and torn[0] == _APPEND:
            size = uniform(stream_salt ^ 1, now_us, -len(torn[1]), len(torn[1]))
            self.durable += torn[1][: max(0, size)]


def _apply(content: bytearray, change: _Change) -> None:
    kind, data, size = change
    if kind == _APPEND:
        content += data
    elif kind == _WRITE:
        content[:] = data
    else:
        del content[size:]


class SimulatedDisk:
    """The files of one node, kept over crashes. `Storage` calls reach it through the node's outbox."""

    def __init__(self) -> None:
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._wanted: list[_File] = []
        self._names_changed = False

    def files(self) -> list[str]:
        return sorted(self._names)

    def read(self, file: str) -> bytes:
        found = self._names.get(file)
        return found.content() if found else b""

    def append(self, file: str, data: bytes) -> None:
        found = self._names.get(file)
        if found is None:
            found = self._names[file] = _File()
            self._names_changed = True
        found.changes.append((_APPEND, data, 0))

    def write(self, file: str, data: bytes) -> None:
        self._names_changed = self._names_changed or file not in self._names
        self._names.setdefault(file, _File()).changes.append((_WRITE, data, 0))

    def truncate(self, file: str, size: int) -> None:
        if file in self._names:
            self._names[file].changes.append((_TRUNCATE, b"", size))

    def rename(self, old: str, new: str) -> None:
        if old in self._names:
            self._names[new] = self._names.pop(old)
            self._names_changed = True

    def delete(self, file: str) -> None:
        self._names_changed = self._names.pop(file, None) is not None or self._names_changed

    def want_sync(self, file: str) -> None:
        """Remember that `file` is to be made durable by the next sync."""
        found = self._names.get(file)
        if found is not None and found not in self._wanted:
            self._wanted.append(found)
        self._names_changed = False

    def want_folder_sync(self) -> bool:
        """Return whether names changed since a sync was last asked for: each sync makes names durable too."""
        changed, self._names_changed = self._names_changed, False
        return changed

    def want_names_again(self) -> None:
        """Count the names as changed since the last sync."""
        self._names_changed = True

    def forget_unsynced(self, file: str) -> None:
        """Keep everything: a journal writes it down with the next sync."""

    def begin_sync(self) -> Sync:
        """Start a sync of all wanted files as they are now."""
        sync = Sync(self, [(file, len(file.changes)) for file in self._wanted], dict(self._names))
        self._wanted = []
        return sync

    def crash(self, stream_salt: int, now_us: int, *, process_only: bool = False) -> None:
        """Lose what is not durable, or a part of it; names go back to the last sync. Each crash is a loss of power."""
        self._names = dict(self._durable_names)
        self._wanted = []
        self._names_changed = False
        for number, file in enumerate(self._names.values()):
            file.crash(stream_salt ^ (number << 1), now_us)


class Sync:
    """An fsync under way: what it will have made durable when it ends."""

    __slots__ = ("_disk", "_files", "_names")

    def __init__(self, disk: SimulatedDisk, files: list[tuple[_File, int]], names: dict[str, _File]) -> None:
        self._disk = disk
        self._files = files
        self._names = names

    def finish(self) -> None:
        for file, count in self._files:
            file.settle(count)
        self._disk._durable_names = self._names

    def pretend(self) -> None:
        """Leave all as it is; `want_sync` asks for the same changes again."""

    def put_off(self) -> None:
        disk = self._disk
        disk._wanted = [*(file for file, _ in self._files if file not in disk._wanted), *disk._wanted]
        disk.want_names_again()
