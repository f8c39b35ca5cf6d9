"""Hosts whose fsync lies or fails (`--host-option fsync=lies`): the filter is brought there and tried."""

from __future__ import annotations

import shlex
from pathlib import Path

from faultline.harness.errors import UsageError
from faultline.hosts import fsync_filter
from faultline.hosts.connection import Connection

__all__ = ["bring_filter"]


def bring_filter(connection: Connection, folder: str, kind: str) -> tuple[str, ...]:
    """Put the filter into `folder` of the host; the words before a command that let it live under the filter.

    Raises UsageError when the host's kernel or its kind of processor has no such filter.
    """
    there = f"{folder}/fsync_filter.py"
    connection.upload(Path(fsync_filter.__file__).read_bytes(), there)
    words = ("python3", there, kind)
    tried = connection.run(shlex.join([*words, "true"]), check=False)
    if tried.exit_code:
        said = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise UsageError(
            f"On {connection.host.name}, fsync cannot be made to be wrong: {said}.", "Leave --host-option fsync out."
        )
    return words
