"""From the maps of a Jepsen-like history to rows: the meaning of an event, and the pairs of events.

An event is a map with `type` (invoke, ok, fail or info), `process`, `f`, `value`, and perhaps `key`, `index`, `time` in
nanoseconds (Jepsen) or `time_us` in microseconds (Faultline), `error`, `node` and `worker`. An operation is the
invocation of a process together with the next event of that process. Events that cannot come from single-threaded
clients are refused, by the number of the event: a completion without an invocation, a process that invokes twice, a
completion of another function, an index that does not grow.

Where the files of real tests are sparse, the following is assumed: without `f` a list of micro-operations is a
transaction (`txn`); without `process` all events are those of one process; without `time`, or when all times are equal,
the number of the event is the time. Events of the nemesis are counted and left out. An invocation without a value takes
that of its completion, for clients that choose the value while they write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome

__all__ = ["COLUMNS", "EventError", "EventRecorder", "is_micro_operations", "selected"]

COLUMNS = tuple(name for name, column in vars(History()).items() if isinstance(column, list) and name != "faults")
"""The names of the columns of a history."""

_COMPLETIONS = frozenset(("ok", "fail", "info"))
_INDEX_MAX = 1 << 60
_NUMBER_MAX = 1 << 63
_ERROR_LENGTH_MAX = 200


class EventError(ValueError):
    """An event that cannot follow those before it; the message is the cause, without the place."""


class EventRecorder:
    """A recorder that builds a history from events in their order."""

    def __init__(self) -> None:
        self.history = History()
        self.nemesis_events = 0
        self.events = 0
        self._open: dict[int, int] = {}
        self._has: dict[str, bool] = {}
        self._numbers: list[int] = []
        self._drained = 0

    def record(self, event: Any) -> None:
        """Take the next event. Raise EventError when it is no event, or cannot be the next."""
        self.events += 1
        if event.__class__ is not dict:
            raise EventError(f"an event must be a map with type, process, f and value, not {_shown(event)}")
        process = event.get("process")
        self._set_index(event.get("index"))
        if process == "nemesis":
            self.nemesis_events += 1
            return
        process = self._process(process)
        kind = event.get("type")
        if kind == "invoke":
            self._invoke(process, event)
        elif isinstance(kind, str) and kind in _COMPLETIONS:
            self._complete(process, kind, event)
        else:
            raise EventError(f"the type of an event must be invoke, ok, fail or info, not {_shown(kind)}")

    def drain(self) -> tuple[History, list[int]]:
        """Take the operations that have completed out of the history, each with its number among all operations.

        It is for histories that do not fit into memory; operations that are still open stay.
        """
        history, numbers = self.history, self._numbers
        numbers += range(self._drained + len(numbers), self._drained + len(history))
        still_open = set(self._open.values())
        done = [row for row in range(len(history)) if row not in still_open]
        stay = sorted(still_open)
        self.history = selected(history, stay)
        self._numbers = [numbers[row] for row in stay]
        self._drained += len(done)
        self._open = dict(zip(sorted(self._open, key=self._open.__getitem__), range(len(stay))))
        return selected(history, done), [numbers[row] for row in done]

    def close(self) -> None:
        """Let operations that are still open count as never completed: no more events come."""
        self._open = {}

    def finish(self) -> bool:
        """Return whether the history has times; otherwise its times are the numbers of the events."""
        history = self.history
        times = [*history.invoke_us, *(time for time in history.complete_us if time >= 0)]
        if self._has.get("time") and times and min(times) < max(times):
            return True
        history.invoke_us = history.invoke_index[:]
        history.complete_us = history.complete_index[:]
        return False

    def _invoke(self, process: int, event: dict[str, Any]) -> None:
        if process in self._open:
            hint = "" if self._has["process"] else "   (without names of processes, each must complete before the next)"
            raise EventError(f"process {process} invokes while its operation before is still open{hint}")
        f, key, value = event.get("f"), event.get("key"), event.get("value")
        if f is None and is_micro_operations(value):
            f = "txn"
        if f.__class__ is not str:
            raise EventError(f"an invocation must name its function in f, not {_shown(f)}")
        operation = Operation(process, f, None if key is None else str(key), value)
        worker, node = event.get("worker", process), event.get("node") or ""
        self._open[process] = self.history.invoke(operation, self._time_us(event), worker, str(node))

    def _complete(self, process: int, kind: str, event: dict[str, Any]) -> None:
        row = self._open.pop(process, None)
        history, f, value = self.history, event.get("f"), event.get("value")
        if row is None:
            raise EventError(f"process {process} completes {_shown(f)}, but it has invoked no operation")
        if f is not None and f != history.f[row]:
            raise EventError(f"process {process} completes {_shown(f)}, but it invoked {_shown(history.f[row])}")
        if kind == "ok":
            self._check_written(row, value)
            outcome = Outcome("ok", value, None, event.get("node"))
        else:
            error = _error_code(event.get("error"), kind)
            outcome = Outcome("fail" if kind == "fail" else "info", None, error, event.get("node"))
        history.complete(row, outcome, self._time_us(event))

    def _check_written(self, row: int, value: Any) -> None:
        """Raise EventError for a write or compare-and-set that completes with another value than it was invoked
        with."""
        history = self.history
        if history.f[row] not in ("write", "cas") or value is None or value == (asked := history.value[row]):
            return
        if asked is not None:
            raise EventError(f"a {history.f[row]} of {_shown(asked)} completes as one of {_shown(value)}")
        history.value[row] = value

    def _process(self, process: Any) -> int:
        has = process is not None
        if self._has.setdefault("process", has) is not has:
            raise EventError("some events name a process, and others do not")
        if not has:
            return 0
        if process.__class__ is not int or abs(process) >= _NUMBER_MAX:
            raise EventError(f"a process must be an integer or nemesis, not {_shown(process)}")
        number: int = process
        return number

    def _time_us(self, event: dict[str, Any]) -> int:
        time, divisor = event.get("time_us"), 1
        if time is None:
            time, divisor = event.get("time"), 1000
        has = time is not None and time != -1
        if self._has.setdefault("time", has) is not has:
            raise EventError("some events have a time, and others do not")
        if not has:
            return self.events - 1
        if time.__class__ is not int or not 0 <= time < _NUMBER_MAX:
            raise EventError(f"a time must be an integer, counted from the start, not {_shown(time)}")
        return int(time // divisor)

    def _set_index(self, index: Any) -> None:
        """Give the event its own index, or else its place in the file."""
        has = index is not None
        if self._has.setdefault("index", has) is not has:
            raise EventError("some events have an index, and others do not")
        index = index if has else self.events - 1
        if index.__class__ is not int or not 0 <= index < _INDEX_MAX:
            raise EventError(f"an index must be an integer from 0, not {_shown(index)}")
        if index < self.history.next_index:
            raise EventError(f"index {index} comes after index {self.history.next_index - 1}; they must grow")
        self.history.next_index = index


def selected(history: History, rows: Sequence[int]) -> History:
    """Return a history of some rows of another, with their indices and times."""
    selection = History()
    selection.next_index = history.next_index
    for name in COLUMNS:
        column = getattr(history, name)
        setattr(selection, name, [column[row] for row in rows])
    return selection


def is_micro_operations(value: Any) -> bool:
    """Return whether a value is a transaction: a list of `[function, key, value]` with names as functions, not
    empty."""
    return (
        value.__class__ is list
        and len(value) > 0
        and all(part.__class__ is list and 2 <= len(part) <= 3 and part[0].__class__ is str for part in value)
    )


def _error_code(error: Any, kind: str) -> str:
    if error is None:
        return "failed" if kind == "fail" else "unknown"
    return (error if isinstance(error, str) else str(error))[:_ERROR_LENGTH_MAX]


def _shown(value: Any) -> str:
    """Return a value in an error message, cut when it is long."""
    text = "a number of many digits" if value.__class__ is int and value.bit_length() > 400 else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
