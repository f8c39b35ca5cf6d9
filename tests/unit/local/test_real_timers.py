"""Timers run by the node's clock: in order, cancellable, and drift takes those that are set with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from faultline.harness.world.local.clock import ClockSetting, SkewedClock
from faultline.harness.world.local.timers import ClockTimers


class FakeHandle:
    def __init__(self, loop: FakeLoop, due_us: int, callback: Callable[[], None]) -> None:
        self.loop, self.due_us, self.callback = loop, due_us, callback

    def cancel(self) -> None:
        if self in self.loop.handles:
            self.loop.handles.remove(self)


class FakeLoop:
    """The part of an event loop that timers use, over time that is moved by hand."""

    def __init__(self) -> None:
        self.now_us = 0
        self.handles: list[FakeHandle] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeHandle:
        handle = FakeHandle(self, self.now_us + round(delay_s * 1_000_000), callback)
        self.handles.append(handle)
        return handle

    def advance(self, delta_us: int) -> None:
        end_us = self.now_us + delta_us
        while due := [handle for handle in self.handles if handle.due_us <= end_us]:
            first = min(due, key=lambda handle: handle.due_us)
            self.handles.remove(first)
            self.now_us = max(self.now_us, first.due_us)
            first.callback()
        self.now_us = end_us


class Bench:
    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.clock = SkewedClock(ClockSetting(), lambda: self.loop.now_us, lambda: self.loop.now_us)
        self.timers = ClockTimers(self.loop, self.clock)
        self.fired: list[tuple[str, int]] = []

    def note(self, name: str) -> Callable[[], None]:
        return lambda: self.fired.append((name, self.loop.now_us))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_timers_fire_in_order_of_their_deadlines(bench: Bench) -> None:
    bench.timers.after(300, bench.note("c"))
    bench.timers.after(100, bench.note("a"))
    bench.timers.after(200, bench.note("b"))
    bench.loop.advance(1_000)
    assert bench.fired == [("a", 100), ("b", 200), ("c", 300)]


def test_timers_due_together_fire_in_the_order_they_were_set(bench: Bench) -> None:
    for name in "abc":
        bench.timers.after(100, bench.note(name))
    bench.loop.advance(100)
    assert [name for name, _ in bench.fired] == ["a", "b", "c"]


def test_a_cancelled_timer_never_fires_and_cancelling_twice_is_harmless(bench: Bench) -> None:
    timer = bench.timers.after(100, bench.note("no"))
    timer.cancel()
    timer.cancel()
    bench.loop.advance(1_000)
    assert bench.fired == []


def test_every_repeats_with_a_fixed_delay_until_it_is_cancelled(bench: Bench) -> None:
    timer = bench.timers.every(100, bench.note("tick"))
    bench.timers.after(350, timer.cancel)
    bench.loop.advance(2_000)
    assert [at for _, at in bench.fired] == [100, 200, 300]


def test_a_repeating_timer_may_cancel_itself(bench: Bench) -> None:
    def once() -> None:
        bench.fired.append(("once", bench.loop.now_us))
        timer.cancel()

    timer = bench.timers.every(100, once)
    bench.loop.advance(1_000)
    assert bench.fired == [("once", 100)]


def test_a_clock_that_runs_fast_takes_the_timers_already_set_with_it(bench: Bench) -> None:
    bench.timers.after(1_000_000, bench.note("late"))
    bench.loop.advance(200_000)
    bench.clock.set(bench.clock.setting.drifting(1_000_000, bench.loop.now_us))
    bench.timers.clock_changed()
    bench.loop.advance(2_000_000)
    assert bench.fired == [("late", 600_000)]


def test_after_a_pause_all_overdue_timers_fire_in_order(bench: Bench) -> None:
    bench.timers.after(100, bench.note("a"))
    bench.timers.after(200, bench.note("b"))
    bench.loop.now_us = 5_000
    bench.loop.advance(0)
    assert bench.fired == [("a", 5_000), ("b", 5_000)]


def test_a_zero_delay_waits_for_the_next_round(bench: Bench) -> None:
    bench.timers.after(100, lambda: bench.timers.after(0, bench.note("next")))
    bench.timers.after(100, bench.note("same"))
    bench.loop.advance(100)
    assert [name for name, _ in bench.fired] == ["same", "next"]


def test_closed_timers_are_silent(bench: Bench) -> None:
    bench.timers.after(100, bench.note("no"))
    bench.timers.close()
    bench.timers.after(100, bench.note("never"))
    bench.loop.advance(1_000)
    assert bench.fired == []


def test_timers_work_on_a_real_event_loop() -> None:
    async def wait_for_one() -> str:
        loop = asyncio.get_running_loop()
        fired: asyncio.Future[str] = loop.create_future()
        timers = ClockTimers(loop, SkewedClock(ClockSetting()))
        timers.after(1_000, lambda: fired.set_result("fired"))
        return await asyncio.wait_for(fired, 30)

    assert asyncio.run(wait_for_one()) == "fired"
