"""The ports of one node or client, for tests by hand: the test moves its clock and reads its sent messages.

    ports = FakePorts("athens")
    node = MyNode(ports, ("athens", "byzantium"))
    node.start()
    node.receive("client-0", Write("k", 1))
    assert ports.sent == [("byzantium", Copy("k", 1))]
    ports.pass_time(250_000)                    # timers that are due ring, in order

Storage is in memory and can crash in every way that a disk may (`MemoryStorage`). There is no randomness:
`uniform_us` answers with its lower bound, plus `random_offset_us`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultline.harness.world.ports import NodeId
from faultline.testing.memory_storage import MemoryStorage

__all__ = ["FakePorts", "FakeTimer"]

START_US = 1_000_000
"""The first value of the monotonic clock."""

_EPOCH_US = 10_000_000_000


class FakeTimer:
    """A timer that has been set; `callback` is None once it rang or was cancelled."""

    def __init__(self, due_us: int, interval_us: int, callback: Callable[[], None]) -> None:
        self.due_us = due_us
        self.interval_us = interval_us
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Never call the callback."""
        self.callback = None


class FakePorts:
    """All ports of one node or client: implements `Ports` with itself as most of them.

    `sent` holds the messages as pairs `(to, message)`, `events` and `marks` the trace. `now_us` is the monotonic
    clock and may be set; `wall_offset_us` is added to the wall clock.
    """

    def __init__(self, node_id: str = "athens", storage: MemoryStorage | None = None) -> None:
        self.node_id = NodeId(node_id)
        self.clock = self.network = self.timers = self.random = self.trace = self
        self.storage = MemoryStorage() if storage is None else storage
        self.now_us = START_US
        self.wall_offset_us = 0
        self.random_offset_us = 0
        self.sent: list[tuple[NodeId, Any]] = []
        self.events: list[Any] = []
        self.marks: list[str] = []
        self._timers: list[FakeTimer] = []

    def monotonic_us(self) -> int:
        """Return the time `now_us`."""
        return self.now_us

    def wall_us(self) -> int:
        """Return the time since the epoch as this node believes it."""
        return _EPOCH_US + self.now_us + self.wall_offset_us

    def send(self, to: NodeId, message: Any) -> None:
        """Note `message` in `sent`."""
        self.sent.append((to, message))

    def send_ahead(self, to: NodeId, message: Any) -> None:
        """Do the same as `send`, as every fsync is done at once."""
        self.sent.append((to, message))

    def take_sent(self) -> list[tuple[NodeId, Any]]:
        """Return the messages sent since the last call, and forget them."""
        taken, self.sent = self.sent, []
        return taken

    def after(self, delay_us: int, callback: Callable[[], None]) -> FakeTimer:
        """Set a timer that rings once."""
        return self._set(delay_us, 0, callback)

    def every(self, interval_us: int, callback: Callable[[], None]) -> FakeTimer:
        """Set a timer that rings again and again."""
        return self._set(interval_us, interval_us, callback)

    @property
    def waiting(self) -> list[FakeTimer]:
        """The timers that have been set, did not ring yet, and were not cancelled, in the order of setting."""
        self._timers = [timer for timer in self._timers if timer.callback is not None]
        return self._timers

    @waiting.setter
    def waiting(self, timers: list[FakeTimer]) -> None:
        self._timers = timers

    def next_timer(self) -> FakeTimer | None:
        """Return the timer that is due first, of several the one set first; None when none is set."""
        return min(self.waiting, key=lambda timer: timer.due_us, default=None)

    def ring(self, timer: FakeTimer | None = None) -> None:
        """Let `timer`, or the one due first, ring at the time it is due. Raise AssertionError when there is none."""
        timer = timer or self.next_timer()
        assert timer is not None, f"no timer of {self.node_id} is set"
        callback = timer.callback
        assert callback is not None, "the timer rang before, or was cancelled"
        self.now_us = max(self.now_us, timer.due_us)
        if timer.interval_us:
            timer.due_us = self.now_us + timer.interval_us
        else:
            timer.callback = None
        callback()

    def pass_time(self, duration_us: int) -> None:
        """Let time pass; timers that fall due in it ring at their times."""
        end_us = self.now_us + duration_us
        while (timer := self.next_timer()) is not None and timer.due_us <= end_us:
            self.ring(timer)
        self.now_us = end_us

    def forget_timers(self) -> None:
        """Lose all timers, as a process that ends does."""
        self._timers = []

    def _set(self, delay_us: int, interval_us: int, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self.now_us + delay_us, interval_us, callback)
        self._timers.append(timer)
        return timer

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        """Return the lower bound, plus `random_offset_us`."""
        return low_us + self.random_offset_us

    def emit(self, event: Any) -> None:
        """Note the event in `events`."""
        self.events.append(event)

    def sometimes(self, mark: str) -> None:
        """Note the mark in `marks`."""
        self.marks.append(mark)

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        """Raise AssertionError when `condition` does not hold."""
        assert condition, f"{mark}: {detail}"
