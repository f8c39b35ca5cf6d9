"""Calls from other threads into the event loop of the harness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from faultline.harness.errors import HarnessError

__all__ = ["InLoop"]

LOOP_TIMEOUT_S = 10.0
Result = TypeVar("Result")


class InLoop:
    """Runs actions in the thread of `loop`, for other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, action: Callable[[], Result]) -> Result:
        """Run `action` in the loop's thread and return its result. Raises HarnessError when it does not answer."""
        done: Future[Result] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                # The waiting thread raises it; the loop must outlive whatever a fault runs into.
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        try:
            return done.result(LOOP_TIMEOUT_S)
        except TimeoutError as error:
            raise HarnessError("The harness's own event loop did not answer.", "Is the machine overloaded?") from error
