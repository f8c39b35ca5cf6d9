"""Runs on a host in front of a program whose disk lies: fsync is answered without being carried out.

This file is sent to the host and run there by the host's own Python, so it uses nothing but the standard library.

    python3 fsync_filter.py lies|fails COMMAND...

It gives itself a *seccomp* filter (seccomp(2)) and becomes COMMAND; whatever that starts inherits the filter, in any
language, statically linked or not. The kernel then answers fsync, fdatasync, sync_file_range, msync, sync and syncfs
itself: with success (`lies`), as a disk does that acknowledges what is still in its cache, or with EIO (`fails`).
Everything else of the file system works, so nothing is noticed until power is lost.

Before COMMAND starts, fsync is asked to flush a file that is not open. Only a filter can answer that with anything but
EBADF; when it does not, COMMAND is not started.

Not caught: files opened with O_SYNC or O_DSYNC, flushes asked of io_uring or libaio, and programs of 32 bits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from struct import pack
from typing import NoReturn

__all__ = ["ANSWERS", "install", "main", "program"]

ANSWERS = {"lies": 0, "fails": errno.EIO}
"""What the filtered calls come to, by the name of the filter."""

# The audit architecture, and the numbers of fsync, fdatasync, sync_file_range, msync, sync and syncfs.
_MACHINES = {
    "x86_64": (0xC000003E, (74, 75, 277, 26, 162, 306)),
    "aarch64": (0xC00000B7, (82, 83, 84, 227, 81, 267)),
}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str, answer: int) -> bytes:
    """The filter, as instructions of the classic BPF: struct sock_filter, one after the other. Raises KeyError."""
    architecture, numbers = _MACHINES[machine]
    last = len(numbers)
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, last + 1, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_JUMP_IF_EQUAL, last - index, 0, number) for index, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | answer),
    ]
    return b"".join(pack("=HBBI", *instruction) for instruction in instructions)


def install(machine: str, answer: int) -> None:
    """Put this process under the filter. Raises OSError when the kernel refuses, or does not do what it should."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = program(machine, answer)
    filtered = _Program(len(instructions) // 8, instructions)
    # Root may do it as it is; others only when they give up set-user-ID programs, which some stores start with.
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filtered), 0, 0):
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filtered), 0, 0):
            raise OSError(ctypes.get_errno(), "the kernel takes no seccomp filter")
    ctypes.set_errno(0)
    if (libc.fsync(-1), ctypes.get_errno()) != ((-1, answer) if answer else (0, 0)):
        raise OSError(errno.ENOTSUP, "the filter is in place and does not answer fsync")


def main(arguments: list[str]) -> NoReturn:
    """Become the command, under the filter; ends with 4 and the reason when that cannot be."""
    kind, command = arguments[0], arguments[1:]
    try:
        install(platform.machine(), ANSWERS[kind])
    except KeyError:
        _refuse(f"fsync={kind}: the system calls of {platform.machine()} are not known")
    except OSError as error:
        _refuse(f"fsync={kind}: {error.strerror}")
    os.execvp(command[0], command)  # the command is the store's own


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"{reason}\n")
    sys.exit(4)


if __name__ == "__main__":
    main(sys.argv[1:])
