"""Timers that ring when a test says so."""

from __future__ import annotations

from collections.abc import Callable


class _Timer:
    def cancel(self) -> None:
        raise AssertionError("nothing here cancels its timers")


class ManualTimers:
    """The `Timers` port: remembers what is due, and after how long."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def after(self, delay_us: int, callback: Callable[[], None]) -> _Timer:
        self.waiting.append((delay_us, callback))
        return _Timer()

    def every(self, interval_us: int, callback: Callable[[], None]) -> _Timer:
        raise AssertionError("nothing here repeats by itself")

    def ring(self) -> None:
        """Let the timer that was set first ring."""
        (_, callback), self.waiting = self.waiting[0], self.waiting[1:]
        callback()
