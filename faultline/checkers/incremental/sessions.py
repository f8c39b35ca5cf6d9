"""Session guarantees while operations come and go: the incremental twin of `checkers.classic.sessions`.

The operations of one session follow each other, so an answer is compared with the newest version that its session has
read and written of the key. A version that already has another value is wrong in any session.

State: two versions for each session and key, until the session ends with an operation of unknown outcome; and the
values of the VERSIONS_KEPT versions of a key that were seen last. Another value of a still earlier version is left to
the check afterwards.
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.common.words import token
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["IncrementalSessions"]

VERSIONS_KEPT = 1_000
"""The most versions of one key whose values are kept."""

_Seen = tuple[int, int]
"""A version, and the row that answered it."""


class IncrementalSessions:
    """The four session guarantees of each process, and that a version has one value."""

    name = "sessions"

    def __init__(self) -> None:
        self._newest: dict[int, dict[tuple[str | None, str], _Seen]] = {}
        self._values: dict[str | None, dict[int, tuple[Any, int]]] = {}
        self._open: dict[int, Operation] = {}

    @property
    def size(self) -> int:
        """The number of versions and open operations that are kept."""
        newest, values = self._newest.values(), self._values.values()
        return len(self._open) + sum(map(len, newest)) + sum(map(len, values))

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        self._open[row] = operation

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return the rows of two answers that contradict each other, none without."""
        operation = self._open.pop(row)
        if outcome.kind == "info":
            # The process has retired: its session is over.
            self._newest.pop(operation.process, None)
        version = _version(operation.f, outcome.value) if outcome.kind == "ok" else None
        if version is None:
            return ()
        key, f = operation.key, operation.f
        newest = self._newest.setdefault(operation.process, {})
        for other in ("write", "read"):
            before = newest.get((key, other))
            # A write needs a version of its own; a read may see one again.
            if before is not None and (version < before[0] or (f == "write" and version == before[0])):
                return (before[1], row)
        if (key, f) not in newest or version > newest[key, f][0]:
            newest[key, f] = version, row
        return self._valued(operation, version, row, outcome.value) if version else ()

    def _valued(self, operation: Operation, version: int, row: int, answer: Any) -> tuple[int, ...]:
        values = self._values.setdefault(operation.key, {})
        if operation.f == "write":
            value = token(operation.value)
        else:
            value = token(answer.get("value") if isinstance(answer, dict) else answer[1])
        known = values.setdefault(version, (value, row))
        if known[0] != value:
            return (known[1], row)
        if len(values) > VERSIONS_KEPT:
            del values[next(iter(values))]
        return ()


def _version(f: str, answer: Any) -> int | None:
    """Return the version that was answered; None for a shape that the check afterwards refuses."""
    if isinstance(answer, list | tuple):
        version = answer[0] if len(answer) == 2 else None
    elif isinstance(answer, dict):
        version = answer.get("version")
    else:
        return answer if type(answer) is int and f == "write" else (0 if answer is None and f == "read" else None)
    if version is None and f == "read":
        return 0
    return version if type(version) is int else None
