"""The faults of a simulated disk: one that is full, read-only or stalled, fsyncs that fail or lie, and damaged data.

They strike as the kernel lets them. A *full* disk takes the first part of a write, as far as there is room, and answers
the rest with ENOSPC; names and truncations take no room. A *read-only* one answers every change with EROFS. On a
*stalled* one no fsync ends, so the messages behind it do not leave, and nothing is refused.

An fsync that *fails* is answered with EIO. Behind a page cache the kernel then counts the pages as clean: they are read
as before, and no later fsync writes them down (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX
ATC 2020). A journaled disk keeps them, and the next fsync that does not fail makes them durable.

Here a process learns of all this in the call itself, and the node decides what becomes of it. One that raises ends.

An fsync that *lies* is answered as if it had synced, and syncs nothing: the next loss of power may take all that was
written since. *Damage* is met by the next process that reads the files (`latent_damage`). A mended disk holds again
what was written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from faultline.harness.world.faults import DiskState
from faultline.harness.world.simulated.latent_damage import Damage, LatentDamage
from faultline.harness.world.simulated.storage import Disk, DiskSync
from faultline.harness.world.weather import salt, uniform

__all__ = ["FailingDisk"]


class FailingDisk:
    """`disk` under faults: `state` is the fate of its writes, `syncs_fail` that of its fsyncs.

    `struck` holds from a fault on until a process starts from a disk that is well: an end in between is no finding.
    """

    def __init__(self, disk: Disk, stream_salt: int) -> None:
        self._disk = disk
        self._salt = stream_salt
        self.state: DiskState = "well"
        self.struck = False
        self.files = disk.files
        self.read: Callable[[str], bytes] = disk.read
        self.begin_sync: Callable[[], DiskSync] = disk.begin_sync
        self.crash = disk.crash
        self.damage = LatentDamage()
        self.syncs_fail = False
        self.syncs_lie = False
        self.want_sync: Callable[[str], None] = disk.want_sync
        self.want_folder_sync: Callable[[], bool] = disk.want_folder_sync

    def strike(self, state: DiskState) -> None:
        """Bring the disk into a bad state."""
        self.state = state
        self.struck = True

    def fail_syncs(self) -> None:
        """Answer every fsync with an error from now on; one that is under way ends well."""
        self.syncs_fail = self.struck = True
        self.want_sync = self._fail_sync
        self.want_folder_sync = self._fail_folder_sync

    def allow_syncs(self) -> None:
        """Let every fsync succeed: the disk's own methods then take it, at no cost of this class."""
        self.syncs_fail = False
        self.want_sync = self._disk.want_sync
        self.want_folder_sync = self._disk.want_folder_sync

    def lie_about_syncs(self) -> None:
        """Answer every fsync that begins from now on, and sync nothing."""
        self.syncs_lie = self.struck = True
        self.begin_sync = lambda: _LyingSync(self._disk.begin_sync())

    def sync_in_truth(self) -> None:
        """Sync again from now on: what was answered meanwhile is durable now."""
        if self.syncs_lie:
            self.syncs_lie = False
            self.begin_sync = self._disk.begin_sync
            for file in self._disk.files():
                self._disk.want_sync(file)
            self._disk.want_names_again()
            self._disk.want_folder_sync()
            self._disk.begin_sync().finish()

    def damage_data(self, damage: Damage, stream: int, now_us: int) -> None:
        """Damage one place of what is stored, which the next process that finds something stored meets."""
        self.struck = True
        self.damage.strike(damage, salt(stream, damage), now_us)

    def begin_process(self) -> None:
        """Note that a process starts from the disk as it is now, and meets the damage there."""
        self.struck = self.state != "well" or self.syncs_fail or self.syncs_lie or bool(self.damage)
        self.read = self._disk.read
        if self.damage:
            self.damage.meet({file: self._disk.read(file) for file in self._disk.files()})
            self.read = self._read_medium

    def _read_medium(self, file: str) -> bytes:
        return self.damage.seen_in(file, self._disk.read(file))

    def append(self, file: str, data: bytes) -> None:
        if self.state == "full":
            # The room that is left hangs on the file's size alone, so that a run is repeated byte for byte.
            room = uniform(self._salt, len(self.read(file)), 0, max(1, len(data)))
            self._disk.append(file, data[:room])
            raise _refusal(errno.ENOSPC, file)
        if self.state == "read-only":
            raise _refusal(errno.EROFS, file)
        self._disk.append(file, data)

    def write(self, file: str, data: bytes) -> None:
        if self.damage:
            self.damage.write_over(file)
        if self.state == "full":
            self._disk.write(file, b"")
            self.append(file, data)
        self._require_writable(file)
        self._disk.write(file, data)

    def truncate(self, file: str, size: int) -> None:
        self._require_writable(file)
        if self.damage:
            self.damage.write_over(file, size)
        self._disk.truncate(file, size)

    def rename(self, old: str, new: str) -> None:
        self._require_writable(old)
        if self.damage:
            self.damage.rename(old, new)
        self._disk.rename(old, new)

    def delete(self, file: str) -> None:
        self._require_writable(file)
        if self.damage:
            self.damage.write_over(file)
        self._disk.delete(file)

    def _fail_sync(self, file: str) -> None:
        self._disk.forget_unsynced(file)
        raise _refusal(errno.EIO, file)

    def _fail_folder_sync(self) -> bool:
        if self._disk.want_folder_sync():
            self._disk.want_names_again()
            raise _refusal(errno.EIO, "the folder")
        return False

    def _require_writable(self, file: str) -> None:
        if self.state == "read-only":
            raise _refusal(errno.EROFS, file)


class _LyingSync:
    """A sync that is answered and makes nothing durable."""

    def __init__(self, sync: DiskSync) -> None:
        self.finish = sync.pretend
        self.put_off = sync.put_off
        self.pretend = sync.pretend


def _refusal(number: int, file: str) -> OSError:
    return OSError(number, os.strerror(number), file)
