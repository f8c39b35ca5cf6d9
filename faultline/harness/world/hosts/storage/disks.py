"""Disks of hosts and the power they run on, whatever the means.

A disk that faults strike must be the node's own: no other process may notice when it fills up, freezes or forgets. And
it must forget like a real one. What a program wrote without fsync lies in the kernel's memory until it is flushed, so a
host that merely loses its processes loses nothing; losing power means that the disk's file system stops at one moment
with what had been flushed until then.

`attach` gives a host such a disk for one folder, `power_off` takes host and unflushed bytes away in one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import DiskState

__all__ = ["HostDisks", "NoDisks"]


class HostDisks(Protocol):
    """The disks and the power of one set of hosts, each named by its host."""

    def refusal(self) -> str:
        """Return why these hosts have no disks of their own; empty when they do. The first call tries it out."""

    def attach(self, host: str, folder: str) -> None:
        """Give `host` a disk of its own, empty, for what is in its `folder`, which must exist."""

    def detach(self, host: str) -> None:
        """Take the disk away again, with everything on it; harmless when there is none."""

    def flush(self, host: str) -> None:
        """Let the disk write down everything it was given, as real ones do sooner or later."""

    def power_off(self, hosts: Sequence[str]) -> None:
        """Stop the disks of `hosts`, unflushed bytes lost, and end every process on those hosts."""

    def power_on(self, host: str) -> None:
        """Start the host again with what is on its disk. Raises HarnessError when the cut was none."""

    def has_power(self, host: str) -> bool:
        """Probe: return whether the host runs."""

    def thaw(self, host: str) -> None:
        """Let writers that hang go on; harmless when there are none."""

    def strike(self, host: str, state: DiskState) -> None:
        """Bring the disk into a bad state."""

    def mend(self, host: str) -> None:
        """Bring the disk into order; after `read-only` nothing may run on it meanwhile."""

    def state(self, host: str) -> DiskState:
        """Probe: return the fate of a write."""


class NoDisks:
    """Hosts whose disks cannot be struck, because of `reason`."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def refusal(self) -> str:
        return self._reason

    def attach(self, host: str, folder: str) -> None:
        """Refuse by name."""
        raise self._refused()

    def detach(self, host: str) -> None:
        """There is none."""

    def flush(self, host: str) -> None:
        """Refuse by name."""
        raise self._refused()

    def power_off(self, hosts: Iterable[str]) -> None:
        """Refuse by name."""
        raise self._refused()

    def power_on(self, host: str) -> None:
        """It was never off."""

    def has_power(self, host: str) -> bool:
        """It was never off."""
        return True

    def thaw(self, host: str) -> None:
        """Do nothing: no writer hangs."""

    def strike(self, host: str, state: DiskState) -> None:
        """Refuse by name."""
        raise self._refused()

    def mend(self, host: str) -> None:
        """It was never struck."""

    def state(self, host: str) -> DiskState:
        """It was never struck."""
        return "well"

    def _refused(self) -> HarnessError:
        return HarnessError(
            f"These hosts have no disks of their own: {self._reason}.", "Leave power-off and disk faults out."
        )
