"""An operation: one request of a client process to the store.

`process` is a logical single-threaded client. A *worker* is the harness's own thread of work: it starts as process
`w` and, each time an operation of its process ends in `info`, goes on under a new process id, because a process whose
operation may still be running must never invoke again (Jepsen, interpreter).
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["NEMESIS", "AnswerOf", "Operation"]

NEMESIS = -1
"""The worker (and process) number under which faults are injected."""


class Operation(msgspec.Struct, frozen=True):
    """An invocation: function `f` on `key` with argument `value` (any JSON value), by `process`."""

    process: int
    f: str
    key: str | None = None
    value: Any = None


class AnswerOf(msgspec.Struct, frozen=True):
    """The last answer that `worker` has got to the operation `f` on `key`, null before the first.

    An operation that is planned with it is invoked with the value `[value, answer]`. Only `ok` operations have answers.
    A worker remembers them when its process retires: it is the application, and the process its client.
    """

    worker: int
    f: str
    key: str | None = None
