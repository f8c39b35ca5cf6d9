"""The nemesis of a real run: a thread that carries out the plan's faults in order of time, then heals everything.

A thread, because killing, waiting and probing block, and the proxies and clients in the event loop must not. A fault
that raises is recorded as an error of the harness and never stops the others, nor the heal.

Finding out which node leads, and reaching every host, can take longer than a fault is to last. So a fault lasts as long
as planned from when it is in place, what was planned to begin after its end still does, and the heal waits for those
that are late: a fault that was planned happens, unless the nemesis is told to hurry.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable

from faultline.harness.fault_schedule import FaultSchedule
from faultline.harness.plan import Plan

__all__ = ["NemesisThread"]

JOIN_TIMEOUT_S = 30.0


class NemesisThread:
    """Runs `schedule` by the run's clock `now_us`.

    `on_heal` is called in the thread when the heal begins, `on_healed` when it is done.
    """

    def __init__(
        self,
        plan: Plan,
        schedule: FaultSchedule,
        now_us: Callable[[], int],
        on_heal: Callable[[], None],
        on_healed: Callable[[], None],
        errors: list[str],
    ) -> None:
        self._plan = plan
        self._schedule = schedule
        self._now_us = now_us
        self._on_heal = on_heal
        self._on_healed = on_healed
        self._errors = errors
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._entered = 0
        self._stops_us: dict[int, tuple[int, int]] = {}
        """The moments when faults that are on will stop, and when the plan had them stop."""
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)

    def start(self) -> None:
        """Begin; times of the plan count from the run's clock."""
        for number, fault in enumerate(self._plan.faults):
            if fault.at_us < self._plan.heal_us:
                self._enter(fault.at_us, self._start_of(number))
        self._thread.start()

    def heal_now(self) -> None:
        """Start no more faults, heal at once."""
        self._hurry.set()

    def join(self) -> bool:
        """Wait until the thread has healed and ended; False when it does not come to an end."""
        if self._thread.ident is not None:
            self._thread.join(JOIN_TIMEOUT_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._agenda:
            at_us, _, action = heapq.heappop(self._agenda)
            if self._wait_until(at_us):
                break
            self._attempt(action, "A fault")
        self._wait_until(self._plan.heal_us)
        self._on_heal()
        self._attempt(self._schedule.heal, "The heal")
        self._on_healed()

    def _wait_until(self, at_us: int) -> bool:
        """Wait for the run's time `at_us`; True when the nemesis was told to hurry instead."""
        return self._hurry.wait(max(at_us - self._now_us(), 0) / 1_000_000)

    def _attempt(self, action: Callable[[], None], what: str) -> None:
        try:
            action()
        except Exception as error:
            self._errors.append(f"{what} could not be carried out at {self._now_us()} us: {error!r}")

    def _enter(self, at_us: int, action: Callable[[], None]) -> None:
        self._entered += 1
        heapq.heappush(self._agenda, (at_us, self._entered, action))

    def _start_of(self, number: int) -> Callable[[], None]:
        fault = self._plan.faults[number]

        def start() -> None:
            earlier_us = [at_us for at_us, stop_us in self._stops_us.values() if stop_us <= fault.at_us]
            if earlier_us:
                self._enter(max(earlier_us), start)
                return
            self._schedule.start(number)
            stop_us = self._plan.heal_us
            if fault.stop_us < self._plan.heal_us:
                stop_us = self._now_us() + fault.duration_us
                self._stops_us[number] = (stop_us, fault.stop_us)
                self._enter(stop_us, self._stop_of(number))
            tick_us = self._schedule.tick_us(number)
            if tick_us:
                self._enter_tick(number, tick_us, 1, stop_us)

        return start

    def _stop_of(self, number: int) -> Callable[[], None]:
        def stop() -> None:
            del self._stops_us[number]
            self._schedule.stop(number)

        return stop

    def _enter_tick(self, number: int, tick_us: int, count: int, stop_us: int) -> None:
        """Let fault `number` act again in a while, if it lasts until then."""

        def tick() -> None:
            self._schedule.tick(number, count)
            self._enter_tick(number, tick_us, count + 1, stop_us)

        at_us = self._now_us() + tick_us
        if self._schedule.is_active(number) and at_us < stop_us:
            self._enter(at_us, tick)
