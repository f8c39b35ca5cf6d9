"""The trace of a simulated world: keeps typed events for the invariants that want them, counts marks, keeps breaches.

An invariant cannot influence the run, so nothing is looked at while it goes on: an event becomes a row, and each
invariant sees its rows in one go, in the order of the reports, as it does after a run of real processes. Then it is
also known whether any event has occurred that could break it (`broken_by`): what comes after the last of them need not
be looked at, and of many invariants that is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import msgspec

from faultline.harness.invariant import Breach, Invariant, events_that_break
from faultline.harness.world.simulated.scheduler import Scheduler

__all__ = ["SimulatedTrace", "Watch"]

_ROWS_MAX = 50_000
"""The number of rows at which they are looked at in between: a long run must not keep all of its events."""

_Row = tuple[int, str, msgspec.Struct]
_EventType = type[msgspec.Struct]
Watch = Callable[[str, str], None]
"""Called with the node and the name of each event and mark that it reports."""


class SimulatedTrace:
    """Collects what all nodes of one world report. The first breach of each invariant is kept."""

    def __init__(self, scheduler: Scheduler, invariants: Sequence[Invariant]) -> None:
        self.marks: dict[str, int] = {}
        self.scheduler = scheduler
        self.wanted = frozenset(event for invariant in invariants for event in invariant.events)
        self.rows: list[_Row] = []
        self._invariants = invariants
        self._rows_before = 0
        self._breaches: dict[str, tuple[int, Breach]] = {}

    def port(self, node: str, watch: Watch | None = None) -> _TracePort:
        """Return the `Trace` port of `node`, with a `watch` over what it reports."""
        return _TracePort(self, node) if watch is None else _WatchedTracePort(self, node, watch)

    def report(self, breach: Breach) -> None:
        """Take a `breach` that shows at this point of the run."""
        self._keep(len(self.rows), breach)

    def finish(self, healed_us: int) -> None:
        """Show the last rows of the run, and ask the invariants that speak about its end."""
        self.show_rows(nothing_follows=True)
        for invariant in self._invariants:
            finish = getattr(invariant, "finish", None)
            if finish is not None:
                finish(healed_us, self.scheduler.now_us, self.report)

    def breaches(self) -> list[Breach]:
        """Return the breaches until now, in order of time."""
        self.show_rows()
        found = [breach for _, breach in self._breaches.values()]
        return sorted(found, key=lambda breach: (breach.time_us, breach.invariant))

    def show_rows(self, *, nothing_follows: bool = False) -> None:
        """Show every invariant the rows it wants; those that cannot break it any more only if something follows."""
        rows = self.rows
        if not rows:
            return
        positions = _Positions(rows)
        for invariant in self._invariants:
            wanted = positions.of(invariant.events)
            breaking = events_that_break(invariant) if nothing_follows else ()
            if breaking:
                last = positions.last_of(breaking)
                wanted = [position for position in wanted if position <= last] if last >= 0 else []
            self._show(invariant, rows, wanted)
        self._rows_before += len(rows)
        self.rows = []

    def _show(self, invariant: Invariant, rows: list[_Row], wanted: list[int]) -> None:
        found: list[Breach] = []
        observe, report = invariant.observe, found.append
        for position in wanted:
            time_us, node, event = rows[position]
            observe(time_us, node, event, report)
            if found:
                for breach in found:
                    self._keep(position, breach)
                found.clear()

    def _keep(self, position: int, breach: Breach) -> None:
        """Keep the first breach of each invariant, by the order of the reports and not by that of looking at them."""
        position += self._rows_before
        before = self._breaches.get(breach.invariant)
        if before is None or position < before[0]:
            self._breaches[breach.invariant] = (position, breach)


class _Positions:
    """The positions in `rows` of the events of each type."""

    def __init__(self, rows: list[_Row]) -> None:
        self._of_type: dict[_EventType, list[int]] = {}
        for position, (_, _, event) in enumerate(rows):
            self._of_type.setdefault(type(event), []).append(position)
        self._merged: dict[tuple[_EventType, ...], list[int]] = {}

    def of(self, events: tuple[_EventType, ...]) -> list[int]:
        """Return the positions of all `events`, in order."""
        present = tuple(event for event in events if event in self._of_type)
        merged = self._merged.get(present)
        if merged is None:
            merged = sorted(chain.from_iterable(self._of_type[event] for event in present))
            self._merged[present] = merged
        return merged

    def last_of(self, events: tuple[_EventType, ...]) -> int:
        """Return the position of the last of `events`; -1 when there is none."""
        return max((self._of_type[event][-1] for event in events if event in self._of_type), default=-1)


class _TracePort:
    __slots__ = ("_node", "_trace")

    def __init__(self, trace: SimulatedTrace, node: str) -> None:
        self._trace = trace
        self._node = node

    def emit(self, event: msgspec.Struct) -> None:
        trace = self._trace
        if type(event) in trace.wanted:
            trace.rows.append((trace.scheduler.now_us, self._node, event))
            if len(trace.rows) >= _ROWS_MAX:
                trace.show_rows()

    def sometimes(self, mark: str) -> None:
        marks = self._trace.marks
        marks[mark] = marks.get(mark, 0) + 1

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        if not condition:
            now_us = self._trace.scheduler.now_us
            sentence = f"{mark} did not hold at {self._node}{': ' + detail if detail else ''}."
            self._trace.report(Breach(invariant=mark, sentence=sentence, time_us=now_us, node=self._node))


class _WatchedTracePort(_TracePort):
    __slots__ = ("_watch",)

    def __init__(self, trace: SimulatedTrace, node: str, watch: Watch) -> None:
        super().__init__(trace, node)
        self._watch = watch

    def emit(self, event: msgspec.Struct) -> None:
        super().emit(event)
        self._watch(self._node, type(event).__name__)

    def sometimes(self, mark: str) -> None:
        super().sometimes(mark)
        self._watch(self._node, mark)
