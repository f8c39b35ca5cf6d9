"""The disks and the power of hosts made of namespaces.

**What dies.** At a power-off the disk stops first, so that nothing written from then on can reach it; then the whole
host is gone: every process in it, its sshd, its network card. Its peers get no reset and no farewell, as from a machine
whose plug was pulled: their connections stay half open until it is back. Several hosts lose power within the time that
a few system calls take.

**What stays.** The disk holds the node's data folder. The host's other folders are layers in memory which outlive the
host, so what a program wrote to its /var or /etc, synced or not, is there after the reboot; `/run` is empty again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import DiskState
from faultline.harness.world.hosts.namespaces.disk import HostDisk

__all__ = ["NamespaceDisks"]

SIZE_MB = 2_048
"""The image is sparse: it takes the room that is written."""
_TRIAL_MB = 16


class NamespaceDisks:
    """Implements `faultline.harness.world.hosts.storage.disks.HostDisks`.

    `folder` is the supervisor's, `supervisor_process` its entry in /proc and `process_of` that of a host; `stop`,
    `start` and `is_running` act on the host itself.
    """

    def __init__(
        self,
        folder: Path,
        supervisor_process: Path,
        process_of: Callable[[str], Path],
        *,
        stop: Callable[[str], None],
        start: Callable[[str], None],
        is_running: Callable[[str], bool],
    ) -> None:
        self._folder = folder
        self._supervisor_process = supervisor_process
        self._process_of = process_of
        self._stop = stop
        self._start = start
        self._is_running = is_running
        self._disks: dict[str, HostDisk] = {}
        self._refusal: str | None = None

    def refusal(self) -> str:
        """Return the reason why no disk can be made, cut from power and mounted again here; empty when one was."""
        if self._refusal is None:
            self._refusal = self._tried()
        return self._refusal

    def attach(self, host: str, folder: str) -> None:
        """Make the disk and mount it."""
        disk = HostDisk(self._folder / host / "disk.img", folder, lambda: self._process_of(host))
        disk.make(SIZE_MB)
        self._disks[host] = disk

    def detach(self, host: str) -> None:
        """Unmount the disk and remove it; a host without power is started for that."""
        disk = self._disks.pop(host, None)
        if disk is None:
            return
        if not self._is_running(host):
            self._start(host)
        disk.unmount()
        disk.image.unlink(missing_ok=True)

    def flush(self, host: str) -> None:
        """Write down everything the disk was given."""
        self._disks[host].flush()

    def power_off(self, hosts: Sequence[str]) -> None:
        """Stop first all disks, then the hosts."""
        disks = [self._disks[host] for host in hosts]
        for disk in disks:
            disk.cut_power()
        for host in hosts:
            self._stop(host)
        for disk in disks:
            disk.wait_until_released()

    def power_on(self, host: str) -> None:
        """Boot, mount, and look at the canaries."""
        if self._is_running(host) or host not in self._disks:
            return
        self._start(host)
        self._disks[host].mount_after_cut()

    def has_power(self, host: str) -> bool:
        """Return whether the host's outermost process exists."""
        return self._is_running(host)

    def thaw(self, host: str) -> None:
        """Let writers that hang go on."""
        if host in self._disks:
            self._disks[host].thaw()

    def strike(self, host: str, state: DiskState) -> None:
        """Bring the disk into `state`."""
        self._disks[host].strike(state)

    def mend(self, host: str) -> None:
        """Bring the disk into order."""
        self._disks[host].mend()

    def state(self, host: str) -> DiskState:
        """Return the fate of a write to the disk of `host`."""
        return self._disks[host].state()

    def _tried(self) -> str:
        folder = self._folder / "trial"
        folder.mkdir(exist_ok=True)
        disk = HostDisk(folder / "disk.img", str(folder), lambda: self._supervisor_process)
        try:
            disk.make(_TRIAL_MB)
            disk.cut_power()
            disk.unmount()
            disk.mount_after_cut()
        except (HarnessError, OSError) as error:
            return str(error).rstrip(".")
        finally:
            with suppress(HarnessError, OSError):
                disk.unmount()
            with suppress(OSError):
                os.unlink(disk.image)
        return ""
