"""The outbox: nothing that was sent after a write leaves before that write is durable.

Each fsync gets the next number. A message that is sent while fsyncs are outstanding waits for the last of them;
sends are released in order when their number is durable. Fsyncs that are asked for while the disk works are carried
out together in the next round: group commit, with no timer to tune.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from faultline.harness.world.local.storage import Commit

__all__ = ["Outbox"]

CarryOut = Callable[[Sequence[Commit]], None]


class Outbox:
    """Orders a node's sends after its fsyncs. `on_failure` is told when the disk refuses."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        carry_out: CarryOut,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._carry_out = carry_out
        self._on_failure = on_failure
        self._queue: list[Commit] = []
        self._asked = 0
        self._durable = 0
        self._busy = False
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def commit(self, commit: Commit) -> None:
        """Make `commit` durable soon; what is submitted from now on waits for it."""
        self._asked += 1
        self._queue.append(commit)
        if not self._busy:
            self._busy = True
            # The round starts after the handler that asked, so that all its fsyncs share it.
            self._loop.call_soon(self._start_round)

    def submit(self, effect: Callable[[], None]) -> None:
        """Run `effect` once everything committed so far is durable; at once when it is."""
        if self._durable == self._asked:
            effect()
        else:
            self._waiting.append((self._asked, effect))

    def _start_round(self) -> None:
        commits, self._queue = self._queue, []
        work = self._loop.run_in_executor(self._executor, self._carry_out, commits)
        work.add_done_callback(lambda done: self._end_round(done, self._durable + len(commits)))

    def _end_round(self, work: asyncio.Future[None], durable: int) -> None:
        if work.cancelled():
            return
        failure = work.exception()
        if failure is not None:
            self._on_failure(failure)
            return
        self._durable = durable
        if self._queue:
            self._start_round()
        else:
            self._busy = False
        self._release()

    def _release(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._durable:
            waiting.popleft()[1]()
