"""A limit on work that may never end: a plug-in's loop, a search without a bound, a world that stands still.

The limit is generous, because it only has to ensure an end, with a verdict that names the slow part. A timer
of the process (setitimer(2)) interrupts Python code wherever it is, in the main thread only. Code in C that does not
return is beyond it; there the supervisor of the command ends the process.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Overdue", "deadline"]

_AGAIN_S = 1.0


class Overdue(BaseException):
    """The limit of a `deadline` has passed. It is no `Exception`, so that a plug-in's `except Exception` does not catch
    it."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Overdue in the block when it takes more than `seconds`, and again each second until the block is left.

    Deadlines nest: a longer inner one is cut to the rest of the outer one. A deadline has no effect outside the main
    thread and on platforms without timers.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _raise_overdue)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    if left_s and left_s < seconds:
        signal.setitimer(signal.ITIMER_REAL, left_s, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)
        signal.signal(signal.SIGALRM, before)


def _raise_overdue(_number: int, _frame: FrameType | None) -> None:
    raise Overdue
