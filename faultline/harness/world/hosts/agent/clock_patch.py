"""Putting the clock code into a process, changing its setting, and reading the time that the process sees.

Everything goes through `/proc/PID/mem`, which writes where the process itself may not; the kernel gives the process its
own copy of the page then, and others keep theirs. A child by fork has a copy of the patched page, with the setting
of that moment; a program started by exec has a fresh vDSO.

What the process sees is proved by running what is in its memory: the code and the setting are read back, put into
memory of ours and called. A function of the vDSO that does not lead there is an error.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import time
from typing import NamedTuple

from faultline.harness.world.hosts.agent.clock_code import (
    ACTIVE_OFFSET,
    BLOB,
    CODE_OFFSET,
    ENTRIES,
    MAGIC,
    Setting,
    active_setting,
    next_place,
)
from faultline.harness.world.hosts.agent.ptrace import PtraceError, PtraceStop
from faultline.harness.world.hosts.agent.vdso import ImageError, find_mapping, read_image

__all__ = ["ClockPatch", "ClockView", "PatchError", "patch_of", "patched"]

_ALIGNMENT = 64
_JUMP = b"\xe9"
_JUMP_BYTES = 5
_TRIES = 200
_PAUSE_S = 0.001
_REAL_TIME, _MONOTONIC = 0, 1
_NS = 1_000_000_000
_CLOCK_GETTIME = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.POINTER(ctypes.c_int64 * 2))


class PatchError(Exception):
    """The clock of a process cannot be changed or read, and why."""


class ClockView(NamedTuple):
    """The time that a process sees, minus the host's own time; and the setting in its memory."""

    wall_off_ns: int
    monotonic_off_ns: int
    setting: Setting


class ClockPatch:
    """The clock code in the process `pid`: where in its vDSO, which is mapped at `image`, it is or will be.

    `blob_at` is its own address, `functions` are those of the functions that it replaces. Raises PatchError.
    """

    def __init__(self, pid: int, image: range, blob_at: int, functions: dict[str, int]) -> None:
        self.pid = pid
        self._image = image
        self._blob_at = blob_at
        self._functions = functions

    def follow(self, setting: Setting) -> bool:
        """Let the process follow `setting`, with new code if need be, and return whether anything had to be changed."""
        try:
            if not self.is_in_force():
                self._put(setting)
                return True
            if self.setting() == setting:
                return False
            self.set(setting)
            return True
        except (OSError, PtraceError) as error:
            raise PatchError(str(error)) from error

    def is_in_force(self) -> bool:
        """Return whether the code is in the process and all functions lead to it, which an exec ends."""
        try:
            with _Memory(self.pid) as memory:
                blob = _read(memory, self._blob_at, len(BLOB))
                jumps = {name: _read(memory, start, _JUMP_BYTES) for name, start in self._functions.items()}
        except OSError:
            return False
        is_ours = blob[: len(MAGIC)] == MAGIC and blob[CODE_OFFSET:] == BLOB[CODE_OFFSET:]
        return is_ours and all(jump == self._jump(name) for name, jump in jumps.items())

    def set(self, setting: Setting) -> None:
        """Change the setting; every reading from now on follows it."""
        with _Memory(self.pid) as memory:
            self._choose(memory, setting)

    def setting(self) -> Setting:
        """Return the setting that is in the memory of the process."""
        return active_setting(self._blob())

    def view(self) -> ClockView:
        """Return the time that the process sees, found by running the code in its memory."""
        if not self.is_in_force():
            raise PatchError(f"the clock code is not in force in process {self.pid}")
        blob = self._blob()
        # Run here rather than in the process, which is not disturbed and may not even be able to run.
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
            page[: len(blob)] = blob
            wall, monotonic = _seen(page, _REAL_TIME), _seen(page, _MONOTONIC)
        return ClockView(wall, monotonic, active_setting(blob))

    def _put(self, setting: Setting) -> None:
        """Put code and setting into the process, which is stopped for that."""
        for _ in range(_TRIES):
            with PtraceStop(self.pid) as stop:
                # A thread in the midst of a function of the vDSO would go on in bytes that are half old, half new.
                if not any(place in self._image for place in stop.places()):
                    self._write_code(setting)
                    return
            # A thread was asking for the time at this very moment.
            time.sleep(_PAUSE_S)
        raise PatchError(f"process {self.pid} asks for the time without end")

    def _write_code(self, setting: Setting) -> None:
        with _Memory(self.pid) as memory:
            # The last page of the vDSO is filled up with zeros; anything else there belongs to a kernel we do not know.
            if any(_read(memory, self._blob_at, self._image.stop - self._blob_at)):
                raise PatchError("the room behind the vDSO is in use")
            _write(memory, self._blob_at, BLOB)
            self._choose(memory, setting)
            # Last, so that no jump leads to code or a setting that is not there yet.
            for name, start in self._functions.items():
                _write(memory, start, self._jump(name))

    def _choose(self, memory: _Memory, setting: Setting) -> None:
        # The process may be reading the time now: the new setting goes to a place that is not in use, and one write of
        # eight aligned bytes then chooses it.
        place = next_place(_read(memory, self._blob_at, CODE_OFFSET))
        _write(memory, self._blob_at + place, setting.packed())
        _write(memory, self._blob_at + ACTIVE_OFFSET, struct.pack("<q", place))

    def _blob(self) -> bytes:
        with _Memory(self.pid) as memory:
            return _read(memory, self._blob_at, len(BLOB))

    def _jump(self, name: str) -> bytes:
        start = self._functions[name]
        return _JUMP + struct.pack("<i", self._blob_at + ENTRIES[name] - start - _JUMP_BYTES)


def patch_of(pid: int) -> ClockPatch:
    """Return the patch of process `pid`, where its code is, as in a child of a patched process, or has room."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            start, size = find_mapping(maps.read())
        with _Memory(pid) as memory:
            found = read_image(_read(memory, start, size))
    except (OSError, ImageError) as error:
        raise PatchError(str(error)) from error
    missing = sorted(set(ENTRIES) - set(found.functions))
    if missing:
        raise PatchError(f"the vDSO has no {missing[0]}")
    room_at = -(-found.end // _ALIGNMENT) * _ALIGNMENT
    if room_at + len(BLOB) > size:
        raise PatchError("behind the vDSO there is no room")
    functions = {name: start + found.functions[name] for name in ENTRIES}
    return ClockPatch(pid, range(start, start + size), start + room_at, functions)


def patched(pid: int, setting: Setting) -> ClockPatch:
    """Return the patch of process `pid`, which follows `setting` when this returns. Raises PatchError."""
    patch = patch_of(pid)
    patch.follow(setting)
    return patch


class _Memory:
    """The memory of a process, open for reading and writing."""

    def __init__(self, pid: int) -> None:
        self.descriptor = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.descriptor)


def _read(memory: _Memory, address: int, count: int) -> bytes:
    found = os.pread(memory.descriptor, count, address)
    if len(found) != count:
        # The memory of a process that has ended can be opened, but there is nothing in it.
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return found


def _write(memory: _Memory, address: int, content: bytes) -> None:
    if os.pwrite(memory.descriptor, content, address) != len(content):
        raise PatchError("the kernel took only a part of what was to be written")


def _seen(page: mmap.mmap, clock: int) -> int:
    """Return the answer of the code in `page` for `clock`, minus true time."""
    function = _CLOCK_GETTIME(ctypes.addressof(ctypes.c_char.from_buffer(page)) + ENTRIES["__vdso_clock_gettime"])
    answer = (ctypes.c_int64 * 2)()
    before_ns = time.clock_gettime_ns(clock)
    if function(clock, ctypes.byref(answer)):
        raise PatchError("the clock code answers with an error")
    after_ns = time.clock_gettime_ns(clock)
    return int(answer[0] * _NS + answer[1] - (before_ns + after_ns) // 2)
