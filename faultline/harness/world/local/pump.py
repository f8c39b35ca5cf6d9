"""Starts the operations of a real run when they are due, and wakes up no more often than that needs.

On a processor that is idle otherwise, waking up costs more than an operation does: caches are cold, and the event loop
goes round once for nothing else. So operations that fall due within two milliseconds of each other start together,
the first of them that much late. A plan says when an operation starts at the earliest, the history when it did; at the
150 operations a second of an ordinary run hardly two ever share a wake-up.

A worker whose operation went wrong starts the next one when its client has a connection again. A process that is dead
refuses at once, and an eager worker would use up its operations on that before anything serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from faultline.harness.interpreter import Dispatch, Interpreter
from faultline.harness.outcome import NOT_CONNECTED, Outcome
from faultline.harness.world.local.cluster import Clients

__all__ = ["OperationPump"]

_TOGETHER_US = 2_000


class OperationPump:
    """Moves operations from `interpreter` to `clients`, and their outcomes back.

    `now_us` is the run's clock, which stood at 0 when the event loop's stood at `start_us`. Only what is due before
    `due_before_us` starts, which may change with time; what has started still completes. `on_finished` is called when
    no operation is left.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        clients: Clients,
        *,
        loop: asyncio.AbstractEventLoop,
        now_us: Callable[[], int],
        start_us: int,
        due_before_us: Callable[[], int],
        on_finished: Callable[[], None],
    ) -> None:
        self._interpreter = interpreter
        self._clients = clients
        self._loop = loop
        self._now_us = now_us
        self._start_us = start_us
        self._due_before_us = due_before_us
        self._on_finished = on_finished
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_us: int | None = None

    def pump(self) -> None:
        """Invoke everything that may start now, and be woken when the next operation may."""
        before_us = self._due_before_us()
        if not before_us:
            self.stop()
            return
        for dispatch in self._interpreter.poll(self._now_us(), before_us - 1, self._is_ready):
            self._clients.invoke(dispatch.worker, dispatch.operation, self._when_done(dispatch))
        due_us = self._interpreter.next_wake_us()
        self._wake_for(None if due_us is None or due_us >= before_us else due_us)
        if self._interpreter.finished:
            self._on_finished()

    def stop(self) -> None:
        """Be woken no more; until `pump` is called again, or an operation completes."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_us = None

    def _wake_for(self, due_us: int | None) -> None:
        """Be woken for what is due at `due_us`, and at no other time. Most completions leave the alarm as it is."""
        alarm_us = None if due_us is None else -(-due_us // _TOGETHER_US) * _TOGETHER_US
        if alarm_us == self._alarm_us:
            return
        self.stop()
        if alarm_us is not None:
            self._alarm = self._loop.call_at((self._start_us + alarm_us) / 1_000_000, self._wake)
            self._alarm_us = alarm_us

    def _wake(self) -> None:
        self._alarm = self._alarm_us = None
        self.pump()

    def _when_done(self, dispatch: Dispatch) -> Callable[[Outcome], None]:
        def done(outcome: Outcome) -> None:
            worker = dispatch.worker
            self._interpreter.complete(worker, outcome, self._now_us(), hold=outcome.error is not None)
            if outcome.error is not None:
                self._reconnect(worker, outcome.error)
            self.pump()

        return done

    def _is_ready(self, worker: int) -> bool:
        """Return whether the client of `worker` can be asked; tell it to connect otherwise."""
        if self._clients.is_ready(worker):
            return True
        self._loop.call_soon(self._reconnect, worker, NOT_CONNECTED)
        return False

    def _reconnect(self, worker: int, error: str) -> None:
        process = self._interpreter.process_of(worker)
        self._clients.reconnect(worker, process, error, self._when_connected(worker))

    def _when_connected(self, worker: int) -> Callable[[], None]:
        def connected() -> None:
            self._interpreter.release(worker)
            self.pump()

        return connected
