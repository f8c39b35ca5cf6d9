"""Runs on a host beside one member of a store: starts it, adopts what it leaves behind, and ends it with the harness.

This file is sent to the host and run there by the host's own Python, so it uses nothing but the standard library.

    python3 supervisor.py COMMAND...

Standard input is the lifeline: when it ends, because the harness or the connection has ended, the store is killed. The
supervisor is a *subreaper* (prctl(2)): a process of the store whose parent ends, as a daemon's does, becomes the
supervisor's child. So all the store's processes are the supervisor's descendants at any moment, and those that outlive
the command are killed too. The supervisor ends with the command's exit code, 128 plus the signal's number when a signal
ended it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["descendants", "kill_all", "mind"]

PR_SET_CHILD_SUBREAPER = 36
POLL_MS = 500


def descendants(pid: int) -> list[int]:
    """Return all processes under `pid` as the kernel knows them, parents first."""
    found = []
    for child in _children(pid):
        found += [child, *descendants(child)]
    return found


def _children(pid: int) -> list[int]:
    """Return the processes that any thread of `pid` has started; both end while they are looked at."""
    children: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                children += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return children


def kill_all(pid: int) -> None:
    """Kill everything under `pid` and reap it. Stopped first, so that nothing has children meanwhile."""
    while found := descendants(pid):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
        with suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass


def mind(command: list[str]) -> int:
    """Run `command` until it ends or the lifeline does; leave nothing of it behind. Returns the exit code."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    store = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    code = _wait(store.pid, woken)
    kill_all(os.getpid())
    return code


def _wait(pid: int, woken: int) -> int:
    """Return the exit code of `pid`, or 0 when the lifeline ended first. Orphans that end are reaped on the way."""
    lifeline = sys.stdin.fileno()
    while True:
        while (ended := _reap()) is not None:
            if ended[0] == pid:
                return ended[1]
        poll = select.poll()
        poll.register(lifeline, select.POLLIN | select.POLLHUP)
        poll.register(woken, select.POLLIN)
        for descriptor, _ in poll.poll(POLL_MS):
            if not os.read(descriptor, 4096) and descriptor == lifeline:
                return 0


def _reap() -> tuple[int, int] | None:
    """Return a child that has ended, with its exit code; None while all go on."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return pid, code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(mind(sys.argv[1:]))
