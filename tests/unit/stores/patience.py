"""The time limits of the tests of stores, and a clock by which locks end when a test says so.

An event that must come has a limit that no slow machine reaches, since it costs nothing. An event that never comes is
waited for shortly, and only where nothing else has to happen within that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["HASTY_S", "PATIENT_S", "HandSetClock", "wait_until"]

PATIENT_S = 30.0
"""The limit for an answer that comes: only a failing test waits so long."""

HASTY_S = 0.1
"""The limit for an answer that never comes."""


class HandSetClock:
    """Shows what it was set to."""

    def __init__(self) -> None:
        self.now_us = 0

    def monotonic_us(self) -> int:
        return self.now_us

    def wall_us(self) -> int:
        return self.now_us


def wait_until(is_so: Callable[[], bool], limit_s: float = PATIENT_S) -> None:
    """Wait until `is_so()`; fail after `limit_s`."""
    end_s = time.monotonic() + limit_s
    waiting = threading.Event()
    while not is_so():
        assert time.monotonic() < end_s, "it never came about"
        waiting.wait(0.005)
