"""A simulated disk behind a page cache: after a crash any part of what was not synced survives, in any order.

`SimulatedDisk` is as kind as a journal that orders data. This disk promises what POSIX does and no more (Pillai et al.,
"All File Systems Are Not Created Equal", OSDI 2014):

- A file is cut into units of 64 bytes. Between two syncs of the file each unit, and the file's size, goes to the disk
  when the kernel likes. A crash leaves each at any state that it had since. So a later write may survive an earlier
  one, and bytes that never arrived read as zeros. A unit is written whole, but for the last one that survives, which
  may be torn at any byte.
- An fsync of a file covers its bytes and not its name. Names are durable once the *folder* was synced. Until then a
  crash keeps the first few of the changes of names: they share one journal, so their order stays.
- A killed process loses its memory, and not the page cache: the next process reads bytes that are not on the disk. If
  they are never synced, the next loss of power takes them.

*Barriers.* What comes after the request of an fsync may be on the disk before the fsync has ended, as nodes do not wait
for it: appends to the same file, which share syncs (group commit), and writes to other files. Two orders are kept. A
change of names is later than each sync that was asked for before it. A truncation and the appends on either side of it
keep their order where a sync parts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from faultline.harness.world.weather import salt, uniform

__all__ = ["WRITE_UNIT_BYTES", "CachedSync", "PageCacheDisk"]

WRITE_UNIT_BYTES = 64
"""The bytes that are written whole: a line of persistent memory. Disks have larger ones, which tear less."""

_NOTHING, _ALL, _A_PREFIX = 0, 1, 2
"""The usual fates of unsynced changes, each by itself as likely as all the others together."""


class _Change(NamedTuple):
    """A change of a file: cut it to `size` bytes, then add `data`. `stamp` counts the syncs asked for before it."""

    stamp: int
    size: int
    data: bytes


class _Inode:
    __slots__ = ("changes", "content", "durable")

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = b""
        self.changes: list[_Change] = []

    def change(self, stamp: int, size: int, data: bytes) -> None:
        self.changes.append(_Change(stamp, size, data))
        self.content[size:] = data

    def forget(self, barrier: int) -> None:
        """Count the pages changed since the sync of that number was asked for as clean, though they are not on disk."""
        del self.changes[_before(self.changes, barrier) :]

    def settle(self, barrier: int) -> None:
        """Make durable what was changed before the sync of that number was asked for."""
        count = _before(self.changes, barrier)
        self.durable = _after(self.durable, self.changes[:count])
        del self.changes[:count]

    def lose_power(self, barriers: list[int], stream: int, now_us: int) -> None:
        """Keep any part of the first changes that no order holds apart; `barriers` are the syncs asked for."""
        changes = self._unordered(barriers)
        if changes:
            self.durable = _survivors(self.durable, changes, stream, now_us)
        self.content[:] = self.durable
        self.changes.clear()

    def _unordered(self, barriers: list[int]) -> list[_Change]:
        size, cut, previous = len(self.durable), False, 0
        for place, change in enumerate(self.changes):
            cuts = change.size < size
            parted = any(previous < barrier <= change.stamp for barrier in barriers)
            if parted and (cut or cuts) and place:
                return self.changes[:place]
            # The append after a cut that is on neither side of a barrier may mix with what the cut took away.
            cut, previous, size = cut or cuts, change.stamp, change.size + len(change.data)
        return self.changes

    def lose_process(self, barrier: int) -> None:
        """Keep in the cache what the process wrote before it waited for the sync of that number."""
        del self.changes[_before(self.changes, barrier) :]
        self.content[:] = _after(self.durable, self.changes)
        self.changes = [change._replace(stamp=0) for change in self.changes]


def _before(changes: list[_Change], barrier: int) -> int:
    return sum(1 for change in changes if change.stamp < barrier)


def _after(content: bytes, changes: Iterable[_Change]) -> bytes:
    for change in changes:
        # What a failed sync never wrote reads as zeros, once something behind it was.
        content = content[: change.size].ljust(change.size, b"\0") + change.data
    return content


def _survivors(durable: bytes, changes: list[_Change], stream: int, now_us: int) -> bytes:
    """Return the content of a file of which each unit, and the size, is at one of the states it went through."""
    states = [durable]
    for change in changes:
        states.append(_after(states[-1], [change]))
    fate = uniform(stream ^ 2, now_us, 0, 4)
    if fate == _NOTHING:
        return durable
    if fate == _ALL:
        return states[-1]
    if fate == _A_PREFIX:
        return states[uniform(stream ^ 4, now_us, 0, len(states))]
    size = len(states[uniform(stream ^ 6, now_us, 0, len(states))])
    content = bytearray()
    for start in range(0, size, WRITE_UNIT_BYTES):
        state = states[uniform(salt(stream, start), now_us, 0, len(states))]
        content += state[start : start + WRITE_UNIT_BYTES].ljust(WRITE_UNIT_BYTES, b"\0")
    # The bytes that all states have in common are on the disk already, so that the tear falls behind them.
    torn_from = max(min(map(len, states)), (size - 1) // WRITE_UNIT_BYTES * WRITE_UNIT_BYTES, 0)
    return bytes(content[: uniform(stream ^ 8, now_us, torn_from, size + 1) if torn_from < size else size])


class _NameChange(NamedTuple):
    """A change of the folder: `name` refers to `inode` from now on, or to none, and `old` is gone."""

    stamp: int
    name: str
    inode: _Inode | None
    old: str | None = None


class PageCacheDisk:
    """The files of one node, kept over crashes. `Storage` calls reach it through the node's outbox."""

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._name_changes: list[_NameChange] = []
        self._wanted: list[tuple[int, _Inode | None]] = []
        self._asked = 0
        self._names_asked = 0

    def files(self) -> list[str]:
        return sorted(self._names)

    def read(self, file: str) -> bytes:
        found = self._names.get(file)
        return bytes(found.content) if found else b""

    def append(self, file: str, data: bytes) -> None:
        inode = self._open(file)
        inode.change(self._asked, len(inode.content), data)

    def write(self, file: str, data: bytes) -> None:
        inode = self._open(file)
        inode.change(self._asked, 0, b"")
        inode.change(self._asked, 0, data)

    def truncate(self, file: str, size: int) -> None:
        inode = self._names.get(file)
        if inode is not None and size < len(inode.content):
            inode.change(self._asked, size, b"")

    def rename(self, old: str, new: str) -> None:
        if old in self._names:
            self._change_name(_NameChange(self._asked, new, self._names[old], old))

    def delete(self, file: str) -> None:
        if file in self._names:
            self._change_name(_NameChange(self._asked, file, None))

    def want_sync(self, file: str) -> None:
        """Remember that the bytes of `file` are to be made durable by the next sync."""
        self._asked += 1
        inode = self._names.get(file)
        if inode is not None:
            self._wanted.append((self._asked, inode))

    def want_folder_sync(self) -> bool:
        """Remember that names are to be made durable by the next sync; return False when none has changed."""
        if len(self._name_changes) == self._names_asked:
            return False
        self._asked += 1
        self._names_asked = len(self._name_changes)
        self._wanted.append((self._asked, None))
        return True

    def forget_unsynced(self, file: str) -> None:
        """Let a sync of `file` fail: no later one makes durable what this one should have."""
        inode = self._names.get(file)
        if inode is not None:
            # A sync that is under way writes its own pages: they are in the hands of the disk, and do not fail with it.
            inode.forget(max((number for number, wanted in self._wanted if wanted is inode), default=0))

    def want_names_again(self) -> None:
        """Let the next `want_folder_sync` ask for all names that are not durable; files are wanted until they are."""
        self._names_asked = 0

    def begin_sync(self) -> CachedSync:
        """Start a sync of all that is wanted now."""
        return CachedSync(self, self._asked)

    def settle(self, number: int) -> None:
        """Carry out the syncs that were wanted, up to the one of that number."""
        while self._wanted and self._wanted[0][0] <= number:
            barrier, inode = self._wanted.pop(0)
            if inode is not None:
                inode.settle(barrier)
            else:
                self._settle_names(sum(1 for change in self._name_changes if change.stamp < barrier))

    def pretend(self, number: int) -> None:
        """End the syncs that were wanted, up to the one of that number, and write nothing to the disk."""
        self._wanted = [wanted for wanted in self._wanted if wanted[0] > number]

    def crash(self, stream_salt: int, now_us: int, *, process_only: bool = False) -> None:
        """Lose the process, and the page cache with it unless the power stays."""
        reached = self._reach(stream_salt, now_us)
        if process_only:
            self._lose_process(reached)
        else:
            self._lose_power(reached, stream_salt, now_us)
        self._wanted.clear()
        self._asked = self._names_asked = 0

    def _lose_power(self, reached: int, stream: int, now_us: int) -> None:
        """Keep what is durable, and any part of the rest that the barriers allow."""
        possible = sum(1 for change in self._name_changes if change.stamp <= reached)
        self._settle_names(max(0, uniform(stream ^ 32, now_us, -possible, possible + 1)))
        for name, inode in sorted(self._durable_names.items()):
            barriers = [number for number, wanted in self._wanted if wanted is inode]
            inode.lose_power(barriers, salt(stream, name), now_us)
        self._names = dict(self._durable_names)
        self._name_changes.clear()

    def _lose_process(self, reached: int) -> None:
        """Keep all that the process had written before it waited for the sync during which it ended."""
        self._name_changes = [change._replace(stamp=0) for change in self._name_changes if change.stamp <= reached]
        self._names = dict(self._durable_names)
        for change in self._name_changes:
            _carry_out(change, self._names)
        # Files without a name are on the way out, but a loss of power may bring their names back.
        for inode in [*self._durable_names.values(), *(change.inode for change in self._name_changes)]:
            if inode is not None:
                inode.lose_process(reached + 1)

    def _reach(self, stream: int, now_us: int) -> int:
        """Draw the sync that was the last to end, although the process never heard of it, and carry it out.

        More often than not it is none of those under way: what they leave undone is what mistakes are about.
        """
        first = self._wanted[0][0] - 1 if self._wanted else self._asked
        reached = max(first, uniform(stream ^ 16, now_us, 3 * first - 2 * self._asked, self._asked + 1))
        self.settle(reached)
        return reached

    def _open(self, file: str) -> _Inode:
        inode = self._names.get(file)
        if inode is None:
            inode = _Inode()
            self._change_name(_NameChange(self._asked, file, inode))
        return inode

    def _change_name(self, change: _NameChange) -> None:
        _carry_out(change, self._names)
        self._name_changes.append(change)

    def _settle_names(self, count: int) -> None:
        for change in self._name_changes[:count]:
            _carry_out(change, self._durable_names)
        del self._name_changes[:count]
        self._names_asked = max(0, self._names_asked - count)


def _carry_out(change: _NameChange, names: dict[str, _Inode]) -> None:
    if change.old is not None:
        names.pop(change.old, None)
    if change.inode is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.inode


class CachedSync:
    """A sync under way: all that was wanted when it began."""

    __slots__ = ("_disk", "_number")

    def __init__(self, disk: PageCacheDisk, number: int) -> None:
        self._disk = disk
        self._number = number

    def finish(self) -> None:
        self._disk.settle(self._number)

    def pretend(self) -> None:
        self._disk.pretend(self._number)

    def put_off(self) -> None:
        self._disk.want_names_again()
