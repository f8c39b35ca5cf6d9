"""The trace of a simulated world: hands typed events to the invariants that want them, counts marks, keeps breaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from faultline.harness.invariant import Breach, FinalInvariant, Invariant
from faultline.harness.world.simulated.scheduler import Scheduler

__all__ = ["SimulatedTrace"]

_Observe = Callable[[int, str, object, Callable[[Breach], None]], None]


class SimulatedTrace:
    """Collects what all nodes of one world report. The first breach of each invariant is kept."""

    def __init__(self, scheduler: Scheduler, invariants: Sequence[Invariant]) -> None:
        self.marks: dict[str, int] = {}
        self.scheduler = scheduler
        self._breaches: dict[str, Breach] = {}
        self._final = [invariant for invariant in invariants if isinstance(invariant, FinalInvariant)]
        self.observers: dict[type[msgspec.Struct], list[_Observe]] = {}
        for invariant in invariants:
            for event in invariant.events:
                self.observers.setdefault(event, []).append(invariant.observe)

    def port(self, node: str) -> _TracePort:
        """The `Trace` port of `node`."""
        return _TracePort(self, node)

    def report(self, breach: Breach) -> None:
        """Keep `breach` when it is the first of its invariant."""
        self._breaches.setdefault(breach.invariant, breach)

    def finish(self, healed_us: int) -> None:
        """The run is over: ask the invariants that speak about its end."""
        for invariant in self._final:
            invariant.finish(healed_us, self.scheduler.now_us, self.report)

    def breaches(self) -> list[Breach]:
        """The breaches, in order of time."""
        return sorted(self._breaches.values(), key=lambda breach: (breach.time_us, breach.invariant))


class _TracePort:
    __slots__ = ("_node", "_trace")

    def __init__(self, trace: SimulatedTrace, node: str) -> None:
        self._trace = trace
        self._node = node

    def emit(self, event: msgspec.Struct) -> None:
        trace = self._trace
        for observe in trace.observers.get(type(event), ()):
            observe(trace.scheduler.now_us, self._node, event, trace.report)

    def sometimes(self, mark: str) -> None:
        marks = self._trace.marks
        marks[mark] = marks.get(mark, 0) + 1

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        if not condition:
            now_us = self._trace.scheduler.now_us
            sentence = f"{mark} did not hold at {self._node}{': ' + detail if detail else ''}."
            self._trace.report(Breach(invariant=mark, sentence=sentence, time_us=now_us, node=self._node))
