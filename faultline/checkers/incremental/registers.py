"""The incremental twin of the linearizability checker for registers: every key apart, each by the cheaper way.

A key begins with zones (`zones`), which cost the same for every operation. A compare-and-set, or a write of a value
that a read could still return from an earlier write, needs the frontier (`frontier`) from then on. The frontier must
know how the operations that are open by then began, so the events since the last quiescent moment of the key are kept,
at most EVENTS_KEPT of them. At such a moment the zones say which values the register may hold, and that is all.

A key for which this is too much – more events than those, or more than CONFIGURATIONS_MAX configurations – is left to
the check after the run. It is never called legal: an incremental checker only ever says *violation*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from faultline.checkers.incremental.frontier import (
    MATCH,
    MISMATCH,
    FrontierRegister,
    Request,
    TooManyConfigurations,
)
from faultline.checkers.incremental.zones import INITIAL, ZoneRegister
from faultline.checkers.linearizability.operations import OBSERVE, SWAP, WRITE, FailedCas, Value, canonical
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, Outcome

__all__ = ["CONFIGURATIONS_MAX", "EVENTS_KEPT", "IncrementalRegisters"]

CONFIGURATIONS_MAX = 4_000
"""The largest frontier of one key: some ten milliseconds of work at a return."""

EVENTS_KEPT = 1_000
"""The most events of one key that are kept between quiescent moments."""


class IncrementalRegisters:
    """Registers that are read, written and replaced by compare-and-set; `functions` are those that the model knows.

    `failed_cas` says whether a compare-and-set that was refused is an observation, as in the checker.
    """

    name = "linearizability"

    def __init__(
        self,
        failed_cas: FailedCas = "observe",
        functions: frozenset[str] = frozenset(("read", "write", "cas")),
        *,
        configurations_max: int = CONFIGURATIONS_MAX,
    ) -> None:
        self._failed_cas, self._functions = failed_cas, functions
        self._configurations_max = configurations_max
        self._keys: dict[str | None, _Key] = {}
        self._open: dict[int, tuple[_Key, Request]] = {}

    @property
    def left(self) -> list[str | None]:
        """The keys that are left to the check after the run, in order of first use."""
        return [name for name, key in self._keys.items() if key.is_left]

    @property
    def size(self) -> int:
        """The number of values, configurations, events and open operations that are kept."""
        return len(self._open) + sum(key.size for key in self._keys.values())

    def invoke(self, row: int, operation: Operation) -> None:
        """Take an invocation."""
        key = self._keys.get(operation.key)
        if key is None:
            key = self._keys[operation.key] = _Key(self._configurations_max)
        request = _READ if operation.f == "read" else self._request(operation)
        if request is None:
            key.leave()
        elif not key.is_left:
            key.invoke(row, request)
            self._open[row] = key, request

    def complete(self, row: int, outcome: Outcome) -> tuple[int, ...]:
        """Take a completion; return rows that show that its key cannot be linearized, none while it may be."""
        opened = self._open.pop(row, None)
        if opened is None or opened[0].is_left:
            return ()
        key, request = opened
        kind = outcome.kind
        if kind == "ok":
            return key.complete(row, request, kind, canonical(outcome.value) if request.kind == OBSERVE else MATCH)
        if kind == "fail" and outcome.error == CAS_MISMATCH and self._failed_cas == "observe":
            return key.complete(row, request, "refused", MISMATCH)
        return key.complete(row, request, kind, None)

    def _request(self, operation: Operation) -> Request | None:
        """Return the call, None for one that the model does not know: the checker refuses such a history."""
        f, value = operation.f, operation.value
        if f not in self._functions:
            return None
        if f == "write":
            return Request(WRITE, produce=canonical(value))
        if not isinstance(value, list | tuple) or len(value) != 2:
            return None
        return Request(SWAP, canonical(value[0]), canonical(value[1]))


_READ = Request(OBSERVE)

_Event = tuple[int, Request, str, Value]
"""The row and the call; and at its end the kind of that and the answer, before that ''."""


class _Key:
    """One key: zones as long as they do, then a frontier, and neither when it is left to the check afterwards."""

    def __init__(self, configurations_max: int) -> None:
        self._configurations_max = configurations_max
        self._zones: ZoneRegister | None = ZoneRegister()
        self._frontier: FrontierRegister | None = None
        self._begin: tuple[list[Value], list[tuple[int, Value]]] | None = ([INITIAL], [])
        self._events: list[_Event] = []
        self.is_left = False

    @property
    def size(self) -> int:
        judges = (self._zones, self._frontier)
        return len(self._events) + sum(judge.size for judge in judges if judge is not None)

    def invoke(self, row: int, request: Request) -> None:
        zones, kind = self._zones, request.kind
        if zones is not None:
            if kind == OBSERVE:
                self._note((row, request, "", None))
                zones.invoke_read(row)
                return
            if kind == WRITE and not zones.is_alive(request.produce):
                self._note((row, request, "", None))
                zones.invoke_write(row, request.produce)
                return
            self._change_over()
        if self._frontier is not None:
            self._frontier.invoke(row, request)

    def complete(self, row: int, request: Request, ending: str, answer: Value) -> tuple[int, ...]:
        zones = self._zones
        if zones is not None:
            rows = _end_in_zones(zones, row, request, ending, answer)
            if zones.is_quiescent:
                self._begin = (list(zones.last_values()), list(zones.unseen_writes()))
                self._events.clear()
            else:
                self._note((row, request, ending, answer))
            return rows
        assert self._frontier is not None
        try:
            return () if _end_in_frontier(self._frontier, row, request, ending, answer) else (row,)
        except TooManyConfigurations:
            self.leave()
            return ()

    def leave(self) -> None:
        """Leave this key to the check after the run."""
        self.is_left = True
        self._zones = self._frontier = self._begin = None
        self._events.clear()

    def _note(self, event: _Event) -> None:
        """Keep `event` for a frontier; when they become too many, keep none until the next quiescent moment."""
        events = self._events
        if self._begin is not None:
            events.append(event)
            if len(events) > EVENTS_KEPT:
                self._begin = None
                events.clear()

    def _change_over(self) -> None:
        """Go on with a frontier, which takes the events since the last quiescent moment once more."""
        if self._begin is None:
            self.leave()
            return
        values, crashed = self._begin
        frontier = FrontierRegister(values, crashed, configurations_max=self._configurations_max)
        try:
            _take(frontier, self._events)
        except TooManyConfigurations:
            self.leave()
            return
        self._zones, self._frontier = None, frontier
        self._events.clear()


def _take(frontier: FrontierRegister, events: Iterable[_Event]) -> None:
    for row, request, ending, answer in events:
        if ending:
            _end_in_frontier(frontier, row, request, ending, answer)
        else:
            frontier.invoke(row, request)


def _end_in_zones(zones: ZoneRegister, row: int, request: Request, ending: str, answer: Value) -> tuple[int, ...]:
    if request.kind == OBSERVE:
        if ending == "ok":
            return zones.complete_read(row, answer)
        zones.abandon_read(row)
    elif ending == "ok":
        return zones.complete_write(row)
    elif ending == "info":
        zones.crash_write(row)
    else:
        return zones.fail_write(row)
    return ()


def _end_in_frontier(frontier: FrontierRegister, row: int, request: Request, ending: str, answer: Any) -> bool:
    """End the operation; return whether the history is still legal. `refused` is a failure that observed the value."""
    if ending == "info":
        frontier.crashed(row)
        return True
    if request.kind == OBSERVE:
        return frontier.observed(row, answer) if ending == "ok" else frontier.ineffective(row)
    if ending == "ok":
        return frontier.changed(row) if request.changes else frontier.observed(row, MATCH)
    if ending == "refused" and request.kind == SWAP:
        return frontier.observed(row, MISMATCH)
    return frontier.ineffective(row)
