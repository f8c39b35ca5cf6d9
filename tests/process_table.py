"""What runs on this machine, as its kernel tells it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["processes_with"]


def processes_with(word: str) -> list[int]:
    """The processes that have `word` in their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # One that ends meanwhile is not there.
        with suppress(OSError):
            if word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found
