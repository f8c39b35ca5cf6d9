"""Messages that are repeated until their request is carried out, each with a back-off of its own.

The coordinator must not stop after one attempt, nor wait for one member before it tells the next. The messages that it
still has to send follow from its replicated state, so that a new leader finds the same list. `keep` takes that list
whenever the state has changed. New messages are sent at once, then after 2, 4, 8 … milliseconds, up to a limit, each
time with some jitter, so that the retries of many do not coincide. A message that is no longer on the list is
forgotten. No message goes to a member that is suspected to be dead. When it returns, its back-off starts again.

Sources: Patterns of Distributed Systems ch. 19, `RetryableTask`. There only a failed *send* is repeated; a lost message
or a lost answer looks the same to the sender, and must be repeated too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from faultline.harness.world.ports import Ports, Timer

__all__ = ["Addressed", "RetriedMessages"]

Addressed = tuple[str, Any]
"""A member, and the message to it."""

_ATTEMPT_MAX = 8
_JITTER_US = 50_000


class RetriedMessages:
    """The messages that one leader still has to send, by a name for each task."""

    def __init__(self, ports: Ports, send: Callable[[str, Any], None]) -> None:
        self._ports = ports
        self._send = send
        self._tasks: dict[str, _Task] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def keep(self, wanted: Mapping[str, Addressed]) -> None:
        """Go on with the messages that are `wanted`, begin the new ones, and forget the rest."""
        for name in [name for name in self._tasks if name not in wanted]:
            self._tasks.pop(name).timer.cancel()
        for name, addressed in wanted.items():
            if name not in self._tasks:
                self._tasks[name] = self._begin(name, addressed)

    def _begin(self, name: str, addressed: Addressed) -> _Task:
        task = _Task(addressed, self._ports.timers.after(self._delay_us(name, 0), lambda: self._repeat(name, task)))
        self._send(*addressed)
        return task

    def _repeat(self, name: str, task: _Task) -> None:
        task.attempt += 1
        task.timer = self._ports.timers.after(self._delay_us(name, task.attempt), lambda: self._repeat(name, task))
        self._ports.trace.sometimes("control-message-repeated")
        self._send(*task.addressed)

    def _delay_us(self, name: str, attempt: int) -> int:
        """Return 2 to the power of `attempt` in milliseconds, and 0 to 49 more."""
        jitter_us = self._ports.random.uniform_us(f"retry-{name}-{attempt}", 0, _JITTER_US)
        return 1_000 * (1 << min(attempt, _ATTEMPT_MAX)) + jitter_us


class _Task:
    __slots__ = ("addressed", "attempt", "timer")

    def __init__(self, addressed: Addressed, timer: Timer) -> None:
        self.addressed = addressed
        self.attempt = 0
        self.timer = timer
