"""Stops of a whole process by ptrace(2), so that its code can be changed without its noticing.

All threads are seized and interrupted, which puts each into a ptrace-stop. SIGSTOP would do as well, but it is also a
fault of ours, and a SIGCONT that ends one of two such stops ends both; a ptrace-stop adds to others and takes nothing
away from them. And ptrace tells where each thread is, which decides whether the code may be changed under it.

A thread that the disk or a freezer holds up (state D) cannot be stopped by anything, nor need it be: it does not run. A
thread that got there between the look and the stop is let go as soon as it comes back.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from contextlib import suppress
from types import TracebackType

__all__ = ["PtraceError", "PtraceStop", "release_late_threads"]

_SEIZE, _INTERRUPT, _GET_REGISTERS, _DETACH = 0x4206, 0x4207, 12, 17
_WAIT_FOR_THREADS = 0x40000000
_REGISTERS_BYTES = 27 * 8
_INSTRUCTION_POINTER = 16 * 8
_EVENT_STOP = 128
_DEADLINE_S = 5.0
_POLL_S = 0.0005
_library = ctypes.CDLL(None, use_errno=True)
_library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_library.ptrace.restype = ctypes.c_long
_late: set[int] = set()
"""Threads that were told to stop and did not in time; they will, and `release_late_threads` lets them go on then."""


class PtraceError(Exception):
    """The process cannot be stopped, and why."""


class PtraceStop:
    """A context in which no thread of process `pid` runs. Raises PtraceError, also when another process traces it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._signals: dict[int, int] = {}
        """The threads that are held, with the signal that each was about to be given, or 0."""

    def __enter__(self) -> PtraceStop:
        try:
            # Until no thread is new: a thread that is not held yet may have started another.
            while new := [thread for thread in self._threads() if thread not in self._signals]:
                for thread in new:
                    self._hold(thread)
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._let_go()

    def places(self) -> list[int]:
        """Return the addresses at which the threads will go on, those that the disk holds up included."""
        found = [place for place in map(self._place_in_kernel, self._all_threads()) if place is not None]
        for thread in self._signals:
            registers = ctypes.create_string_buffer(_REGISTERS_BYTES)
            _ptrace(_GET_REGISTERS, thread, ctypes.addressof(registers))
            found.append(struct.unpack_from("<Q", registers, _INSTRUCTION_POINTER)[0])
        return found

    def _threads(self) -> list[int]:
        """Return the threads that can be held."""
        return [thread for thread in self._all_threads() if _state(self._pid, thread) not in ("D", "Z", "X")]

    def _all_threads(self) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"/proc/{self._pid}/task")]
        except FileNotFoundError:
            raise PtraceError(f"process {self._pid} has ended") from None

    def _place_in_kernel(self, thread: int) -> int | None:
        """Return the address at which a thread that is not held will go on, as far as the kernel tells."""
        if thread in self._signals:
            return None
        with suppress(OSError, ValueError), open(f"/proc/{self._pid}/task/{thread}/syscall") as call:
            return int(call.read().split()[-1], 16)
        return None

    def _hold(self, thread: int) -> None:
        try:
            # Seized rather than attached: PTRACE_ATTACH sends a SIGSTOP, which would mix with the stops of our faults.
            _ptrace(_SEIZE, thread)
            _ptrace(_INTERRUPT, thread)
            status = self._wait(thread)
        except ProcessLookupError:
            return
        if os.WIFSTOPPED(status):
            # Stopped on the way to a signal's handler rather than by us: it is given that signal when it goes on.
            self._signals[thread] = 0 if status >> 16 == _EVENT_STOP else os.WSTOPSIG(status)

    def _wait(self, thread: int) -> int:
        deadline_s = time.monotonic() + _DEADLINE_S
        while time.monotonic() < deadline_s:
            try:
                # Threads are no children, hence __WALL; and a wait without end would hang with a thread in state D.
                found, status = os.waitpid(thread, _WAIT_FOR_THREADS | os.WNOHANG)
            except ChildProcessError:
                raise ProcessLookupError from None
            if found:
                return status
            time.sleep(_POLL_S)
        _late.add(thread)
        raise PtraceError(f"thread {thread} of process {self._pid} could not be stopped in {_DEADLINE_S:g} s")

    def _let_go(self) -> None:
        for thread, number in self._signals.items():
            with suppress(OSError):
                _ptrace(_DETACH, thread, number)
        self._signals.clear()


def release_late_threads() -> None:
    """Let threads go on that stopped too late; to be called now and then."""
    for thread in sorted(_late):
        try:
            found, _ = os.waitpid(thread, _WAIT_FOR_THREADS | os.WNOHANG)
            if not found:
                continue
            _ptrace(_DETACH, thread)
        except OSError:
            pass
        _late.discard(thread)


def _ptrace(request: int, thread: int, data: int = 0) -> None:
    if _library.ptrace(request, thread, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _state(pid: int, thread: int) -> str:
    """Return the state letter of a thread; X when it is gone."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat") as stat:
            # The name in parentheses may hold blanks; the state is the first field after it.
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
