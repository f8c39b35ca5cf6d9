"""The processes of this machine, as its kernel lists them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["descendants_of", "processes_with"]


def processes_with(word: str) -> list[int]:
    """The processes that have `word` in their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # One that ends meanwhile is not there.
        with suppress(OSError):
            if word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def descendants_of(process: int) -> list[int]:
    """The processes that `process` has started, those that they have, and so on."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name, in parentheses, may hold spaces; after it: state, parent.
            parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    found = [child for child, parent in parents.items() if parent == process]
    for child in found:
        found += [grandchild for grandchild, parent in parents.items() if parent == child]
    return found
