"""Hosts whose fsync lies or fails: the filter is brought there, tried, and switched while it is in force."""

from __future__ import annotations

import shlex
from pathlib import Path

from faultline.harness.errors import UsageError
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.storage import fsync_filter

__all__ = ["SyncSwitch", "bring_filter"]


def bring_filter(connection: Connection, folder: str, *kind: str) -> tuple[str, ...]:
    """Put the filter into `folder` of the host; the words before a command that let it live under the filter.

    Raises UsageError when the host's kernel or its kind of processor has no such filter.
    """
    there = f"{folder}/fsync_filter.py"
    connection.upload(Path(fsync_filter.__file__).read_bytes(), there)
    words = ("python3", there, *kind)
    tried = connection.run(shlex.join([*words, "true"]), check=False)
    if tried.exit_code:
        said = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise UsageError(
            f"On {connection.host.name}, fsync cannot be made to be wrong: {said}.",
            "Leave --host-option fsync and the fault fsync-fail out.",
        )
    return words


class SyncSwitch:
    """The file on a host that a supervisor looks into, and its count of the calls it let fail."""

    def __init__(self, connection: Connection, folder: str) -> None:
        self._connection = connection
        self._folder = folder
        self.file = f"{folder}/sync.switch"
        self._quoted = shlex.quote(self.file)

    def let_fail(self) -> None:
        """Let every fsync fail from now on."""
        self._connection.run(f"rm -f {self._quoted}.answered; echo fails >{self._quoted}")

    def let_pass(self) -> None:
        """Let no fsync fail from now on."""
        self._connection.run(f"rm -f {self._quoted}; rm -f {self._quoted}.answered")

    def has_answered(self) -> bool:
        """Return whether an fsync of the node has failed since they are to."""
        return self._connection.run(f"test -s {self._quoted}.answered", check=False).exit_code == 0

    def fails_a_probe(self) -> bool:
        """Return whether an fsync fails for a process of ours, whose supervisor looks into the same file."""
        words = ("python3", f"{self._folder}/fsync_filter.py", "asks", self.file, "sync", f"{self._folder}/config.json")
        told = self._connection.run(f"touch {shlex.quote(words[-1])}; {shlex.join(words)}", check=False)
        return b"Input/output error" in told.stderr
