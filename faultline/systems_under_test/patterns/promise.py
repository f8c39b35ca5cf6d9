"""A promise: the result of work that is not done yet, completed exactly once, without threads or an event loop.

The book's singular update queue answers with a `CompletableFuture`. A node has one thread of control and no scheduler
of its own, so its future is only a value and a list of callbacks: completing it calls them at once, in the order they
were added, and a callback added later is called at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["AlreadyCompleted", "NotCompleted", "Promise"]

Value = TypeVar("Value")


class AlreadyCompleted(RuntimeError):
    """The promise has its result already; a second result is a bug of the caller."""


class NotCompleted(RuntimeError):
    """The promise has no result yet."""


class Promise(Generic[Value]):
    """A value or an error, now or later."""

    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: Value | None = None
        self._error: Exception | None = None
        self._callbacks: list[tuple[Callable[[Value], None], Callable[[Exception], None] | None]] = []

    @property
    def done(self) -> bool:
        """True once it was completed, with a value or an error."""
        return self._done

    def result(self) -> Value:
        """Return the value; raises the error with which it failed, or `NotCompleted`."""
        if not self._done:
            raise NotCompleted("the promise has no result yet")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # done without an error

    def then(
        self, on_value: Callable[[Value], None], on_error: Callable[[Exception], None] | None = None
    ) -> Promise[Value]:
        """Call `on_value` with the value or `on_error` with the error, at once when it is completed.

        Return the promise.
        """
        if self._done:
            self._tell(on_value, on_error)
        else:
            self._callbacks.append((on_value, on_error))
        return self

    def complete(self, value: Value) -> None:
        """Complete the promise with `value`. Raises `AlreadyCompleted`."""
        self._finish(value, None)

    def fail(self, error: Exception) -> None:
        """Complete the promise with an error instead of a value. Raises `AlreadyCompleted`."""
        self._finish(None, error)

    def _finish(self, value: Value | None, error: Exception | None) -> None:
        if self._done:
            raise AlreadyCompleted("the promise was completed before")
        self._done = True
        self._value = value
        self._error = error
        if self._callbacks:
            callbacks, self._callbacks = self._callbacks, []
            for on_value, on_error in callbacks:
                self._tell(on_value, on_error)

    def _tell(self, on_value: Callable[[Value], None], on_error: Callable[[Exception], None] | None) -> None:
        if self._error is None:
            on_value(self._value)  # type: ignore[arg-type]  # done without an error
        elif on_error is not None:
            on_error(self._error)
