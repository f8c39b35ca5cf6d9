"""libfaketime in front of a program: what it needs around it, and which processes it is in.

It is loaded by LD_PRELOAD, from Debian's package `libfaketime`, in the variant for several threads, and answers the C
library's questions for the time in its place. A program that does not ask the C library (in Go, or linked
statically) is not reached, although the library may be mapped there; so it counts whether a process has read the file,
which is to be seen in the library's own variables.

Only wall clocks are moved (DONT_FAKE_MONOTONIC): libfaketime knows one offset for all clocks, and a monotonic clock
that steps, or goes back at the heal, is a fault that no machine has. The moment from which a drift counts is told to
all processes by the shared memory in which libfaketime looks for it (FAKETIME_SHARED: a semaphore and the record);
without it, each would count from its own start. Times of files are left as they are.
"""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import re
import struct
import subprocess
import time
from contextlib import suppress

from faultline.harness.world.hosts.agent.clock_code import Skew
from faultline.harness.world.hosts.agent.clock_patch import PatchError
from faultline.harness.world.hosts.agent.control_file import control_line

__all__ = ["Preload", "files_of", "find_library", "has_read"]

_LIBRARY = "libfaketimeMT.so.1"
_PLACES = ("/usr/lib/{machine}-*/faketime/", "/usr/lib*/faketime/", "/usr/local/lib/faketime/")
_SHARED = "/dev/shm"
_RECORD = struct.Struct("=QQ8q")
"""`struct ft_shared_s`: ticks, index, and the start by the clocks realtime, monotonic, raw, since boot."""
_START_AT = 2
_SEATS = 100_000
"""The processes that may be in the semaphore at a time: one that is killed in there must not keep others out."""
_NS = 1_000_000_000
_READINGS, _SHARP_NS = 5, 20_000_000
_MAPPED = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)")


def find_library() -> str:
    """Return the path of libfaketime on this host. Raises PatchError when it is not installed."""
    for place in _PLACES:
        found = sorted(glob.glob(place.format(machine=platform.machine()) + _LIBRARY))
        if found:
            return found[0]
    raise PatchError("the Debian package libfaketime is not installed")


class Preload:
    """The control file and the shared start of one member. `name` is its own on this kernel. Raises PatchError.

    Right clocks to begin with; a start that is there already is kept, since programs count from it.
    """

    def __init__(self, name: str, file: str) -> None:
        self._library = find_library()
        self._name = name
        self._file = file
        self._record = f"{_SHARED}/{name}.start"
        self._start_ns = self._share_start()
        self.line = ""
        self.write(Skew())

    def environment(self) -> dict[str, str]:
        """Return the environment that lets a program follow the control file."""
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_SHARED": f"/{self._name} /{self._name}.start",
            "FAKETIME_TIMESTAMP_FILE": self._file,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "FAKE_UTIME": "0",
        }

    def write(self, skew: Skew) -> None:
        """Let `skew` answer every question for the time from now on. A reader finds the old line or the new."""
        self.line = control_line(skew, self._start_ns, time.monotonic_ns())
        with open(f"{self._file}.next", "w") as file:
            file.write(self.line + "\n")
        os.chmod(f"{self._file}.next", 0o644)
        os.replace(f"{self._file}.next", self._file)

    def off_ns(self) -> int:
        """Return the time that a program of ours with the same environment sees, minus the host's own time."""
        readings: list[tuple[int, int]] = []
        while not readings or (min(readings)[0] > _SHARP_NS and len(readings) < _READINGS):
            before_ns = time.time_ns()
            told_ns = self._told_ns()
            after_ns = time.time_ns()
            readings.append((after_ns - before_ns, told_ns - (before_ns + after_ns) // 2))
        return min(readings)[1]

    def close(self) -> None:
        """Take everything away; a program that still runs goes by the true time."""
        for file in (self._file, self._record, f"{_SHARED}/sem.{self._name}"):
            with suppress(OSError):
                os.unlink(file)

    def _told_ns(self) -> int:
        asked = subprocess.run(["date", "+%s%N"], env=os.environ | self.environment(), stdout=subprocess.PIPE)
        try:
            return int(asked.stdout)
        except ValueError as error:
            raise PatchError("a program that libfaketime is loaded into does not tell the time") from error

    def _share_start(self) -> int:
        with suppress(OSError, struct.error):
            with open(self._record, "rb") as record:
                numbers = _RECORD.unpack(record.read())
            return int(numbers[_START_AT] * _NS + numbers[_START_AT + 1])
        libc = ctypes.CDLL(None, use_errno=True)
        libc.sem_open.restype = ctypes.c_void_p
        if not libc.sem_open(f"/{self._name}".encode(), os.O_CREAT, 0o666, _SEATS):
            raise PatchError(f"no semaphore for libfaketime: {os.strerror(ctypes.get_errno())}")
        start_ns = time.time_ns()
        moment = divmod(start_ns, _NS)
        with open(self._record, "wb") as record:
            # The wall clock's start for the others too: libfaketime takes it for waits that it thinks are faked.
            record.write(_RECORD.pack(0, 0, *moment * 4))
        for file in (self._record, f"{_SHARED}/sem.{self._name}"):
            # Stores that run as users of their own read and post there; our umask is not to decide that.
            os.chmod(file, 0o666)
        return start_ns


def files_of(pid: int) -> list[str]:
    """Return the files that are mapped into a process. Raises OSError for one that has ended."""
    return [path for *_, path in _mappings(pid) if path]


def has_read(pid: int, line: str) -> bool:
    """Return whether `line` is in the variables of libfaketime in process `pid`. Raises OSError when it has ended."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end in _variables(pid):
            memory.seek(start)
            if line.encode() + b"\0" in memory.read(end - start):
                return True
    return False


def _variables(pid: int) -> list[tuple[int, int]]:
    """Return the bounds of libfaketime's variables: its writable mappings, and a nameless one right behind them."""
    found, behind = [], -1
    for start, end, rights, path in _mappings(pid):
        is_ours = path.endswith(f"/{_LIBRARY}") or (not path and start == behind)
        behind = end if is_ours else -1
        if is_ours and "w" in rights:
            found.append((start, end))
    return found


def _mappings(pid: int) -> list[tuple[int, int, str, str]]:
    with open(f"/proc/{pid}/maps") as maps:
        matches = [_MAPPED.match(mapping) for mapping in maps]
    return [(int(match[1], 16), int(match[2], 16), match[3], match[4]) for match in matches if match]
