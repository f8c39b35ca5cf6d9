"""The pump of a real run: operations start when they are due, and the event loop is woken no more than that needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from faultline.harness.generator.scheduled import scheduled
from faultline.harness.history import History
from faultline.harness.interpreter import Interpreter
from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, fail, ok
from faultline.harness.plan import PlannedOperation
from faultline.harness.world.local.pump import OperationPump
from faultline.harness.world.ports import NodeId

START_US = 5_000_000
"""The time on the event loop's clock when the run's shows 0."""


@dataclass
class Alarm:
    """A timer of `HandLoop`."""

    at_us: int
    callback: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class HandLoop:
    """An event loop whose clock is turned by hand; it keeps every alarm that was ever set."""

    now_us: int = 0
    alarms: list[Alarm] = field(default_factory=list)

    def call_at(self, when_s: float, callback: Callable[[], object]) -> Alarm:
        assert len(self.alarms) < 100, "the pump is woken again and again for nothing"
        alarm = Alarm(round(when_s * 1_000_000) - START_US, callback)
        self.alarms.append(alarm)
        return alarm

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        self.call_at((START_US + self.now_us) / 1_000_000, lambda: callback(*arguments))

    def turn_to(self, now_us: int) -> None:
        """Let time pass, ringing what is due."""
        while due := [alarm for alarm in self.alarms if not alarm.cancelled and alarm.at_us <= now_us]:
            first = min(due, key=lambda alarm: alarm.at_us)
            first.cancelled = True
            self.now_us = max(self.now_us, first.at_us)
            first.callback()
        self.now_us = now_us


class OpenClients:
    """Clients that answer when the test says so."""

    def __init__(self) -> None:
        self.open: dict[int, Callable[[Outcome], None]] = {}
        self.connecting: dict[int, Callable[[], None]] = {}
        self.lost: set[int] = set()

    def is_ready(self, worker: int) -> bool:
        return worker not in self.lost

    def reconnect(self, worker: int, process: int, error: str, done: Callable[[], None]) -> None:
        self.connecting[worker] = done

    def connect(self, worker: int) -> None:
        self.lost.discard(worker)
        self.connecting.pop(worker)()

    def node_of(self, worker: int) -> NodeId:
        return NodeId("athens")

    def invoke(self, worker: int, operation: Operation, done: Callable[[Outcome], None]) -> None:
        self.open[worker] = done

    def answer(self, worker: int, outcome: Outcome | None = None) -> None:
        self.open.pop(worker)(outcome or ok())

    def close(self) -> None:
        """Nothing is open."""


class Bench:
    """A pump over planned reads, as (worker, due in microseconds)."""

    def __init__(self, *reads: tuple[int, int]) -> None:
        self.loop = HandLoop()
        self.clients = OpenClients()
        self.history = History()
        self.due_before_us = 1_000_000
        self.finished = 0
        interpreter = Interpreter(
            scheduled([PlannedOperation(worker, due_us, "read") for worker, due_us in reads]),
            workers=3,
            seed=0,
            history=self.history,
            node_of=self.clients.node_of,
        )
        self.pump = OperationPump(
            interpreter,
            self.clients,
            loop=cast(asyncio.AbstractEventLoop, self.loop),
            now_us=lambda: self.loop.now_us,
            start_us=START_US,
            due_before_us=lambda: self.due_before_us,
            on_finished=self._finish,
        )
        self.pump.pump()

    def _finish(self) -> None:
        self.finished += 1


def test_no_operation_starts_before_it_is_due_and_none_more_than_two_milliseconds_late() -> None:
    due_us = [0, 1, 1_999, 2_000, 2_001, 7_300, 50_000]
    bench = Bench(*((0, at_us) for at_us in due_us))
    for now_us in range(0, 60_000, 100):
        bench.loop.turn_to(now_us)
        if bench.clients.open:
            bench.clients.answer(0)
    late_us = [started - due for started, due in zip(bench.history.invoke_us, due_us, strict=True)]
    assert min(late_us) >= 0
    assert max(late_us) <= 2_100  # the clock of this test goes in steps of 100


def test_operations_that_fall_due_together_share_one_alarm() -> None:
    bench = Bench((0, 10_100), (1, 10_900), (2, 11_800))
    bench.loop.turn_to(20_000)
    assert bench.history.invoke_us == [12_000] * 3
    assert len(bench.loop.alarms) == 1


def test_a_completion_that_changes_nothing_leaves_the_alarm_as_it_is() -> None:
    bench = Bench((0, 0), (1, 0), (2, 30_000))
    (alarm,) = bench.loop.alarms
    bench.clients.answer(0)
    bench.clients.answer(1)
    assert bench.loop.alarms == [alarm] and not alarm.cancelled
    assert alarm.at_us == 30_000


def test_an_overdue_operation_starts_as_soon_as_its_worker_is_free_and_not_at_the_next_alarm() -> None:
    bench = Bench((0, 0), (0, 1_000), (1, 90_000))
    bench.loop.turn_to(40_500)
    bench.clients.answer(0)
    assert bench.history.invoke_us == [0, 40_500]


def test_a_completion_brings_an_earlier_alarm_and_the_later_one_never_rings() -> None:
    bench = Bench((0, 0), (0, 20_000), (1, 90_000))
    bench.clients.answer(0)
    later, earlier = bench.loop.alarms
    assert (later.at_us, later.cancelled) == (90_000, True)
    assert (earlier.at_us, earlier.cancelled) == (20_000, False)


def test_while_it_is_held_nothing_starts_and_what_has_started_still_completes() -> None:
    bench = Bench((0, 0), (1, 10_000))
    bench.due_before_us = 0
    bench.loop.turn_to(15_000)
    bench.clients.answer(0)
    assert bench.history.outcome == ["ok"]
    assert all(alarm.cancelled for alarm in bench.loop.alarms)
    bench.due_before_us = 1_000_000
    bench.pump.pump()
    assert bench.history.invoke_us == [0, 15_000]


def test_what_is_late_may_still_start_when_what_is_due_later_may_not() -> None:
    bench = Bench((0, 0), (0, 10_000), (1, 20_000))
    bench.due_before_us = 20_000
    bench.loop.turn_to(30_000)
    assert bench.history.invoke_us == [0]
    bench.clients.answer(0)
    assert bench.history.invoke_us == [0, 30_000]
    assert all(alarm.cancelled or alarm.at_us < 30_000 for alarm in bench.loop.alarms)
    bench.due_before_us = 20_001
    bench.pump.pump()
    assert bench.history.invoke_us == [0, 30_000, 30_000]


def test_a_stopped_pump_is_woken_no_more() -> None:
    bench = Bench((0, 10_000))
    bench.pump.stop()
    bench.loop.turn_to(20_000)
    assert len(bench.history) == 0


def test_it_says_when_no_operation_is_left() -> None:
    bench = Bench((0, 0))
    assert bench.finished == 0
    bench.clients.answer(0)
    assert bench.finished == 1


def test_a_worker_whose_operation_went_wrong_waits_for_its_connection() -> None:
    bench = Bench((0, 0), (0, 1_000), (1, 1_000))
    bench.clients.answer(0, fail(NOT_CONNECTED))
    bench.loop.turn_to(10_000)
    assert bench.history.worker == [0, 1]
    bench.clients.connect(0)
    assert bench.history.worker == [0, 1, 0]


def test_a_worker_that_has_lost_its_connection_meanwhile_invokes_nothing_on_it() -> None:
    bench = Bench((0, 0), (0, 5_000))
    bench.clients.answer(0)
    bench.clients.lost.add(0)
    bench.loop.turn_to(10_000)
    assert len(bench.history) == 1 and not bench.finished
    bench.clients.connect(0)
    assert len(bench.history) == 2
    bench.clients.answer(0)
    assert bench.finished
