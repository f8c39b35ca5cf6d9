"""Runs on a host in front of a program whose disk lies: fsync is answered without being carried out.

This file is sent to the host and run there by the host's own Python, so it uses nothing but the standard library.

    python3 fsync_filter.py lies|fails COMMAND...
    python3 fsync_filter.py asks FILE COMMAND...

It gives itself a *seccomp* filter (seccomp(2)) and becomes COMMAND; whatever that starts inherits the filter, in any
language, statically linked or not. The kernel then answers fsync, fdatasync, sync_file_range, msync, sync and syncfs
itself: with success (`lies`), as a disk does that acknowledges what is still in its cache, or with EIO (`fails`).
Everything else of the file system works, so nothing is noticed until power is lost.

With `asks`, each call is decided when it is made: the kernel holds it up and asks a *supervisor*, a process of ours
that was forked off before (seccomp_unotify(2)), which looks into FILE. While that says `fails`, the call is answered
with EIO and counted in FILE.answered; else it is carried out as ever. The supervisor ends with the last process
under the filter. What it costs is two switches of processes for each fsync.

Before COMMAND starts, fsync is asked to flush a file that is not open. Only a filter can answer that with anything but
EBADF; when it does not, COMMAND is not started.

Not caught: files opened with O_SYNC or O_DSYNC, flushes asked of io_uring or libaio, and programs of 32 bits.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import sys
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import NoReturn

__all__ = ["ANSWERS", "be_supervised", "install", "main", "program"]

ANSWERS = {"lies": 0, "fails": errno.EIO}
"""The effect of the filtered calls, by the name of the filter."""

# The audit architecture, and the numbers of fsync, fdatasync, sync_file_range, msync, sync and syncfs.
_MACHINES = {
    "x86_64": (0xC000003E, (74, 75, 277, 26, 162, 306)),
    "aarch64": (0xC00000B7, (82, 83, 84, 227, 81, 267)),
}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO, _ASK = 0x7FFF0000, 0x00050000, 0x7FC00000
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NOTIFICATION_BYTES = 80
_CONTINUE = 1
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4


class _Program(ctypes.Structure):
    """The structure sock_fprog of seccomp(2)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(machine: str, action: int) -> bytes:
    """Return the filter as instructions of the classic BPF, one struct sock_filter after the other. Raises KeyError."""
    architecture, numbers = _MACHINES[machine]
    last = len(numbers)
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, last + 1, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_JUMP_IF_EQUAL, last - index, 0, number) for index, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, action),
    ]
    return b"".join(pack("=HBBI", *instruction) for instruction in instructions)


def install(machine: str, answer: int) -> None:
    """Put this process under the filter. Raises OSError when the kernel refuses, or does not do what it should."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = program(machine, _ERRNO | answer)
    filtered = _Program(len(instructions) // 8, instructions)
    # Root may do it as it is; others only when they give up set-user-ID programs, which some stores start with.
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filtered), 0, 0):
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filtered), 0, 0):
            raise OSError(ctypes.get_errno(), "the kernel takes no seccomp filter")
    ctypes.set_errno(0)
    if (libc.fsync(-1), ctypes.get_errno()) != ((-1, answer) if answer else (0, 0)):
        raise OSError(errno.ENOTSUP, "the filter is in place and does not answer fsync")


def be_supervised(machine: str, switch: str) -> None:
    """Put this process under a filter that asks a supervisor, which reads `switch`. Raises OSError."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        # Twice, so that process 1 adopts it: the command may wait for children it does not know.
        if os.fork() == 0:
            _supervise(theirs, switch)
        os._exit(0)
    os.waitpid(child, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = program(machine, _ASK)
    filtered = _Program(len(instructions) // 8, instructions)
    listener = libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(filtered))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no seccomp filter that asks")
    socket.send_fds(ours, [b"listener"], [listener])
    os.close(listener)
    ctypes.set_errno(0)
    # The file is not open, or fsync is to fail already; without an answer the kernel would say ENOSYS.
    if libc.fsync(-1) != -1 or ctypes.get_errno() not in (errno.EBADF, errno.EIO):
        raise OSError(errno.ENOTSUP, "the supervisor does not answer")


def _supervise(theirs: socket.socket, switch: str) -> None:
    """Answer what the kernel asks until no process is left under the filter."""
    _, (listener, *_), _, _ = socket.recv_fds(theirs, 16, 1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2, theirs.fileno()):
        os.dup2(nothing, descriptor)
    answered = 0
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while not any(event & select.POLLHUP for _, event in poll.poll()):
        asked = bytearray(_NOTIFICATION_BYTES)
        # Who asked may have been killed meanwhile, before we heard it or before we answer.
        with suppress(OSError):
            fcntl.ioctl(listener, _RECEIVE, asked)
            fails = _content_of(switch) == "fails"
            verdict = (0, -errno.EIO, 0) if fails else (0, 0, _CONTINUE)
            if fails:
                answered += 1
                Path(f"{switch}.answered").write_text(str(answered))
            fcntl.ioctl(listener, _SEND, bytes(asked[:8]) + pack("=qiI", *verdict))


def _content_of(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError:
        return ""


def main(arguments: list[str]) -> NoReturn:
    """Become the command, under the filter; ends with 4 and the reason when that cannot be."""
    kind, command = arguments[0], arguments[1:]
    try:
        if kind == "asks":
            be_supervised(platform.machine(), command.pop(0))
        else:
            install(platform.machine(), ANSWERS[kind])
    except KeyError:
        _refuse(f"fsync={kind}: the system calls of {platform.machine()} are not known")
    except OSError as error:
        _refuse(f"fsync={kind}: {error.strerror}")
    os.execvp(command[0], command)


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"{reason}\n")
    sys.exit(4)


if __name__ == "__main__":
    main(sys.argv[1:])
