"""The faults of a simulated disk: one that is full, read-only or stalled, and fsyncs that fail.

They strike as the kernel lets them. A *full* disk takes the first part of a write, as far as there is room, and answers
the rest with ENOSPC; names and truncations take no room. A *read-only* one answers every change with EROFS. On a
*stalled* one no fsync ends, so the messages behind it do not leave, and nothing is refused.

An fsync that *fails* is answered with EIO. Behind a page cache the kernel then counts the pages as clean: they are read
as before, and no later fsync writes them down (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX
ATC 2020). A journaled disk keeps them, and the next fsync that does not fail makes them durable.

Here a process learns of all this in the call itself, and the node decides what becomes of it. One that raises ends.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from faultline.harness.world.faults import DiskState
from faultline.harness.world.simulated.storage import Disk
from faultline.harness.world.weather import uniform

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
        self.read = disk.read
        self.begin_sync = disk.begin_sync
        self.crash = disk.crash
        self.syncs_fail = False
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

    def begin_process(self) -> None:
        """Note that a process starts from the disk as it is now."""
        self.struck = self.state != "well" or self.syncs_fail

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
        if self.state == "full":
            self._disk.write(file, b"")
            self.append(file, data)
        self._require_writable(file)
        self._disk.write(file, data)

    def truncate(self, file: str, size: int) -> None:
        self._require_writable(file)
        self._disk.truncate(file, size)

    def rename(self, old: str, new: str) -> None:
        self._require_writable(old)
        self._disk.rename(old, new)

    def delete(self, file: str) -> None:
        self._require_writable(file)
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


def _refusal(number: int, file: str) -> OSError:
    return OSError(number, os.strerror(number), file)
