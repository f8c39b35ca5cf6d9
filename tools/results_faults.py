"""Faults in the writing of results: the n-th write, sync or rename of a command fails, in any process.

`faultline.harness.results` is the one door through which a results folder is written. `install` replaces its
primitives by ones that count their calls, over all processes that were given the same control folder, and lets the one
with the number in the file `target` fail as that file says.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["CONTROL", "MODES", "Control", "install", "spare_this_process"]

CONTROL = "FAULTLINE_RESULTS_FAULTS"
"""The environment variable that names the control folder, for the processes of Spark."""

MODES = ("full", "torn", "broken", "die")
"""The ways in which a call fails: no room; half written, then no room; an input/output error; death of the process."""

_DIED = 137
_immortal = 0


def spare_this_process() -> None:
    """Let calls of this process that were to die with it fail by an input/output error instead."""
    global _immortal
    _immortal = os.getpid()


class Control:
    """The control folder: the number of calls, and the one that fails, with its mode."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def aim(self, target: int, mode: str) -> None:
        """Count from the beginning, and let call number `target` (from 1; 0 for none) fail by `mode`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "target").write_text(f"{target} {mode}")
        (self.folder / "calls").write_text("")

    def calls(self) -> list[str]:
        """Return the kinds of the calls, in order."""
        return (self.folder / "calls").read_text().splitlines()

    def count(self, what: str) -> str:
        """Count a call; return the mode by which it must fail, '' when it must not."""
        with (self.folder / "calls").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            number = len(file.readlines()) + 1
            file.write(f"{what}\n")
        target, mode = (self.folder / "target").read_text().split()
        return mode if number == int(target) else ""


def install(control: Control, door: ModuleType | None = None) -> Callable[[], None]:
    """Replace the primitives of the results door; return a function that restores them."""
    results: Any = door
    if results is None:
        from faultline.harness import results

    primitives: dict[str, Any] = {name: getattr(results, name) for name in ("_write", "_sync", "_rename", "_link")}

    def write(descriptor: int, data: Any) -> None:
        mode = control.count(f"write {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        if mode in ("torn", "die"):
            os.write(descriptor, memoryview(data).cast("B")[: len(memoryview(data).cast("B")) // 2])
        _fail(mode)
        primitives["_write"](descriptor, data)

    def counted(name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            _fail(control.count(f"{name} {arguments[-1]}"))
            primitives[name](*arguments)

        return call

    results._write = write
    for name in ("_sync", "_rename", "_link"):
        setattr(results, name, counted(name))

    def put_back() -> None:
        for name, primitive in primitives.items():
            setattr(results, name, primitive)

    return put_back


def _fail(mode: str) -> None:
    if mode == "die" and os.getpid() != _immortal:
        os._exit(_DIED)
    if mode in ("broken", "die"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    if mode:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
