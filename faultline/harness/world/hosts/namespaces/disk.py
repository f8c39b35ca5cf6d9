"""A disk of a host's own: an ext4 image on a loop device, which can lose power, fill up, turn read-only and freeze.

The disk is mounted in the host's own mount namespace and nowhere else, so that it goes with the host: the kernel
unmounts it with the namespace, and the loop device, which is set to clear itself, lets the image go.

    FOLDER/disk     the whole disk: canaries, probes and ballast stand here
    FOLDER/data     its folder `data`, where the node writes: empty at first, without the `lost+found` of ext4

**Power.** EXT4_IOC_SHUTDOWN stops the file system without flushing its journal: from one moment to the next all writes
fail, and what had not been flushed is gone at the next mount. The journal is committed when a program calls fsync, and
otherwise every five minutes (`commit=300`), so an unsynced write is lost for sure in a run shorter than that; its data
may be written back after half a minute, but no name or length leads there.

**Proof.** There are two canaries: one written with fsync when the disk is mounted, one without right before the cut.
After the next mount the first must be there and the second must not. And right after the cut a write must fail.

**Read-only.** The kernel is told that it found an error (`trigger_fs_error`), upon which ext4 turns read-only as it
does on a failing disk, under the feet of programs that have files open; mending is what an operator does: unmount,
check, mount.

All of it is done from outside through `/proc/PID/root` of a process of the host, at the cost of a system call, and
works also when nothing on the host answers.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import DiskState

__all__ = ["HostDisk"]

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN, whose argument 2 says: do not flush the log."""
FREEZE, THAW = 0xC0045877, 0xC0045878
_OPTIONS = "loop,commit=300,errors=remount-ro"
_SYNCED, _UNSYNCED = "canary.synced", "canary.unsynced"
_BALLAST = "ballast"
_BLOCK_DEVICES = Path("/sys/block")
_REMOVED = " (deleted)"
"""Follows the kernel's name of a file that is open and has no name any more."""
_RELEASE_TIMEOUT_S = 20.0
_PROBE_TIMEOUT_S = 15.0
_STALLED_TIMEOUT_S = 0.2
_POLL_S = 0.005
_COMPLAINTS: tuple[tuple[str, DiskState], ...] = (
    ("No space left on device", "full"),
    ("Read-only file system", "read-only"),
)


class HostDisk:
    """The disk in `image` for the folder `folder` of a host; `host_process` is a process of that host, as it is now."""

    def __init__(self, image: Path, folder: str, host_process: Callable[[], Path]) -> None:
        self.image = image
        self.folder = folder
        self._host_process = host_process
        self._struck: DiskState = "well"
        self._canary = 0
        self._hanging: list[subprocess.Popen[str]] = []

    @property
    def whole(self) -> Path:
        """The root of the disk, seen from here."""
        return Path(f"{self._host_process()}/root{self.folder}/disk")

    def make(self, size_mb: int) -> None:
        """Make the image and mount it for the first time. Raises HarnessError with what the tools said."""
        self.image.unlink(missing_ok=True)
        with self.image.open("wb") as file:
            file.truncate(size_mb * 1024 * 1024)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard", str(self.image))
        self.mount()
        self._write_synced_canary()

    def mount(self) -> None:
        """Mount the disk on its host, and its folder `data` over the node's."""
        disk, data = f"{self.folder}/disk", f"{self.folder}/data"
        self._on_host("mkdir", "-p", disk, data)
        self._on_host("mount", "-o", _OPTIONS, str(self.image), disk)
        self._on_host("mkdir", "-p", f"{disk}/data")
        self._on_host("mount", "--bind", f"{disk}/data", data)
        self._struck = "well"

    def unmount(self) -> None:
        """Unmount it where it is mounted, and wait until the loop device has let the image go."""
        self.thaw()
        for place in ("data", "disk"):
            if _is_mounted(f"{self._host_process()}/root{self.folder}/{place}"):
                self._unmount(f"{self.folder}/{place}")
        self.wait_until_released()

    def _unmount(self, place: str) -> None:
        # A process counts as ended with its first thread, while others may still be closing their files.
        deadline_s = time.monotonic() + _RELEASE_TIMEOUT_S
        while True:
            try:
                return self._on_host("umount", place)
            except HarnessError as error:
                if "target is busy" not in error.message or time.monotonic() > deadline_s:
                    raise
            time.sleep(_POLL_S)

    def wait_until_released(self) -> None:
        """Wait until no loop device has the image any more: the kernel unmounts with the last process."""
        deadline_s = time.monotonic() + _RELEASE_TIMEOUT_S
        while self._is_attached():
            if time.monotonic() > deadline_s:
                raise HarnessError(f"The disk {self.image} does not come free.", "Does `losetup -a` name its user?")
            time.sleep(_POLL_S)

    def flush(self) -> None:
        """Let the file system write down everything it holds."""
        _run("sync", "-f", str(self.whole))

    def _write_synced_canary(self) -> None:
        """Write the file that must survive the next cut. Early: fsync flushes names and lengths of all other files."""
        self._canary += 1
        descriptor = os.open(self.whole / _SYNCED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, self._content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def cut_power(self) -> None:
        """Write what must not survive, and stop the file system. Raises HarnessError when it still takes writes."""
        root = os.open(self.whole, os.O_RDONLY)
        try:
            descriptor = os.open(_UNSYNCED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=root)
            os.write(descriptor, self._content)
            os.close(descriptor)
            # Through a descriptor that was open before: from now on no path on this disk can be looked up.
            fcntl.ioctl(root, SHUTDOWN, struct.pack("I", 2))
            self._refuse_if_writable(root)
        finally:
            os.close(root)

    def mount_after_cut(self) -> None:
        """Mount it again, and see that what must be is lost and what must be is kept. Raises HarnessError."""
        self.mount()
        synced, unsynced = (_content_of(self.whole / name) for name in (_SYNCED, _UNSYNCED))
        if synced != self._content:
            raise HarnessError(f"The disk of {self.folder} lost what was synced before the power went.")
        if unsynced == self._content:
            raise HarnessError(f"The disk of {self.folder} kept what was not synced when the power went.")
        self._write_synced_canary()

    @property
    def _content(self) -> bytes:
        return b"%d\n" % self._canary

    def _refuse_if_writable(self, root: int) -> None:
        with suppress(OSError):
            os.close(os.open("after-the-cut", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=root))
            raise HarnessError(f"The disk of {self.folder} still takes writes after its power was cut.")

    def strike(self, state: DiskState) -> None:
        """Bring the disk into `state`."""
        if state == "full":
            self._fill()
        elif state == "read-only":
            Path(f"/sys/fs/ext4/{self._device()}/trigger_fs_error").write_text("struck by faultline\n")
        elif state == "stalled":
            # For the supervisor: a process held by a frozen file system cannot be killed, so it thaws this one first.
            self._frozen_note.write_text(f"{self.folder}/disk\n")
            self._ioctl(FREEZE)
        self._struck = state

    def mend(self) -> None:
        """Bring the disk into order again, whatever was done to it."""
        if self._struck == "full":
            (self.whole / _BALLAST).unlink(missing_ok=True)
        self.thaw()
        if self._struck == "read-only":
            self.unmount()
            _run("e2fsck", "-p", str(self.image), fine=(0, 1))
            self.mount()
        self._struck = "well"

    def state(self) -> DiskState:
        """Write a file and return its fate. A writer that is expected to hang is not waited for as long."""
        probe = f"{self.whole}/probe.{time.monotonic_ns()}"
        command = ["/bin/sh", "-c", 'dd if=/dev/zero of="$1" bs=65536 count=1 && rm -f "$1"', "probe", probe]
        writer = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        try:
            _, complaint = writer.communicate(
                timeout=_STALLED_TIMEOUT_S if self._struck == "stalled" else _PROBE_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            self._hanging.append(writer)
            return "stalled"
        with suppress(OSError):
            os.unlink(probe)
        found = [state for words, state in _COMPLAINTS if words in complaint]
        if writer.returncode and not found:
            raise HarnessError(f"The disk of {self.folder} cannot be probed: {complaint.strip()}.")
        return found[0] if found else "well"

    def _fill(self) -> None:
        """Take all room, in ever smaller pieces; nothing is written for it."""
        descriptor = os.open(self.whole / _BALLAST, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            length, piece = 0, 1 << 30
            while piece >= 1024:
                try:
                    os.posix_fallocate(descriptor, length, piece)
                    length += piece
                except OSError:
                    length = max(length, os.fstat(descriptor).st_size)
                    piece //= 4
        finally:
            os.close(descriptor)

    def thaw(self) -> None:
        """Let writers that hang go on; harmless when there are none."""
        if self._struck != "stalled":
            return
        # Thawed already, or gone: there is nothing left to thaw.
        with suppress(OSError):
            self._ioctl(THAW)
        self._frozen_note.unlink(missing_ok=True)
        for writer in self._hanging:
            writer.communicate()
        self._hanging.clear()
        self._struck = "well"

    def _ioctl(self, request: int) -> None:
        root = os.open(self.whole, os.O_RDONLY)
        try:
            fcntl.ioctl(root, request, 0)
        finally:
            os.close(root)

    @property
    def _frozen_note(self) -> Path:
        return self.image.with_name("frozen")

    def _device(self) -> str:
        number = self.whole.stat().st_dev
        return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name

    def _is_attached(self) -> bool:
        for backing in _BLOCK_DEVICES.glob("loop*/loop/backing_file"):
            with suppress(OSError):
                if backing.read_text().strip().removesuffix(_REMOVED) == str(self.image):
                    return True
        return False

    def _on_host(self, *command: str) -> None:
        _run("nsenter", f"--mount={self._host_process()}/ns/mnt", *command)


def _run(*command: str, fine: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "LC_ALL": "C"},
    )
    if done.returncode not in fine:
        said = " / ".join(done.stderr.strip().splitlines()[:2]).rstrip(".") or f"it ended with {done.returncode}"
        raise HarnessError(
            f"`{' '.join(command)}` failed: {said}.",
            "Does this machine allow loop devices (in a container: --privileged)?",
        )


def _is_mounted(place: str) -> bool:
    # os.path.ismount resolves the links in /proc by their text, which means something else in our own namespace.
    try:
        return os.stat(place).st_dev != os.stat(f"{place}/..").st_dev
    except OSError:
        return False


def _content_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
