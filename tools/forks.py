"""Forks of this process: what a risky action answers, from a process of its own that is ended with all it started.

The action may change anything in its process, run for ever or end it. In a fork it costs its own time and some 30 ms,
since everything is imported already, and nothing of it remains.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

__all__ = ["ForkFailed", "answer_of_fork", "lines_of_fork"]

_T = TypeVar("_T")
WALL_S_MAX = 120.0
"""The longest time that a fork may take for its answer, also when it only waits."""


class ForkFailed(Exception):
    """A fork ended without an answer: it was killed at its limit, or its process died."""


def answer_of_fork(action: Callable[[], _T], processor_s: float) -> _T:
    """Return what `action` returns in a fork. Raise `ForkFailed` when it gives no answer in that processor time."""

    def told(tell: Callable[[bytes], None]) -> None:
        used_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        limit = int(used_s + processor_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        tell(pickle.dumps(action()))

    answer, ended = _told_by_fork(told, time.monotonic() + WALL_S_MAX, None)
    if not ended or not answer:
        raise ForkFailed(f"no answer within {processor_s:.0f} s of processor time")
    result: _T = pickle.loads(answer)
    return result


def lines_of_fork(action: Callable[[Callable[[str], None]], None], silence_s: float) -> tuple[list[str], str]:
    """Return the lines that `action` told in a fork, and how this ended: an empty text, `"hung"` or `"died"`.

    A fork that tells no line for `silence_s` seconds has hung.
    """

    def told(tell: Callable[[bytes], None]) -> None:
        action(lambda line: tell(f"{line}\n".encode()))
        tell(_END)

    answer, ended = _told_by_fork(told, None, silence_s)
    *lines, last = answer.decode().split("\n")
    if not ended:
        return lines, "hung"
    return lines, "" if last == _END.decode() else "died"


_END = b"\0"
"""The last word of a fork that came to its end."""


def _told_by_fork(
    action: Callable[[Callable[[bytes], None]], None], deadline_s: float | None, silence_s: float | None
) -> tuple[bytes, bool]:
    """Return the bytes that a fork told, and whether it ended before the deadline and was never silent for so long."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_the_fork(action, writing)
    os.close(writing)
    answer, ended = b"", False
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while not ended:
            wait_s = silence_s if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            if not select.select([pipe], [], [], wait_s)[0]:
                break
            part = pipe.read(1 << 20)
            answer += part
            ended = not part
    # The action may have started processes, which are in the group of the fork.
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answer, ended


def _in_the_fork(action: Callable[[Callable[[bytes], None]], None], writing: int) -> NoReturn:
    """Carry out `action` quietly, in a group of its own; this process ends here, whatever happens."""
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            action(lambda told: _write(pipe.fileno(), told))
    finally:
        os._exit(0)


def _write(number: int, told: bytes) -> None:
    while told:
        told = told[os.write(number, told) :]
