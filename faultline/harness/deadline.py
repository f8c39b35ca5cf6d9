"""A limit on work that may never come to an end: a plug-in's loop, a search without a bound, a world that stands still.

The limit is generous, for its purpose is that there *is* an end, with a verdict that names what took so long. A timer
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
    """The limit of a `deadline` has passed. No Exception, so that a plug-in that catches those does not catch it."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Overdue in what is done inside when it takes more than `seconds`; again each second until it has left.

    Deadlines nest: an inner one that is longer is cut to what is left of the outer one. Without effect outside the main
    thread, and where there are no timers.
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
