"""The offset of each node's clock over time, as data for a plot (Jepsen's `clock-plot`).

Shape: any history. Offsets come from two places:

- fault events that carry `clock_offsets_us`, or Jepsen's `clock-offsets` in seconds: a map from node to offset;
- Faultline's own clock faults. A step moves the clock at its start and is undone at its end; a strobe lies between
  its two ends all the time, so both are given; a drift grows with time. The plan has the amounts, and only faults
  whose probe confirmed them count.

`detail["offsets_us"]` maps each node to `[time_us, offset_us]` in order of time, to be drawn as steps. The verdict is
always *pass*."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faultline.checkers.common.words import counted
from faultline.harness.history import FaultEvent, History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

__all__ = ["ClockChecker"]

_Point = tuple[str, int, int]

_KINDS = ("clock-step", "clock-strobe", "clock-drift")


class ClockChecker:
    """A collector of the offsets of clocks. `detail["unmeasured"]` counts clock faults of an unknown amount."""

    name = "clock"
    judges_the_test = True

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the offsets over time in `history`; `run` has the amounts by which its faults moved the clocks."""
        offsets: dict[str, list[list[int]]] = {}
        planned = _Planned(run)
        for event in history.faults:
            for node, time_us, offset_us in (*_reported(event), *planned.points(event)):
                offsets.setdefault(node, []).append([time_us, offset_us])
        series = {node: sorted(points, key=lambda point: point[0]) for node, points in sorted(offsets.items())}
        return CheckResult(
            checker=self.name,
            verdict=Verdict.PASS,
            sentence=_sentence(series),
            detail={"offsets_us": series, "unmeasured": planned.unmeasured},
        )


def _sentence(series: dict[str, list[list[int]]]) -> str:
    worst = max((abs(offset_us) for points in series.values() for _, offset_us in points), default=0)
    if not series:
        return "No clock was seen wrong."
    return f"The clocks of {counted(len(series), 'node')} were wrong by up to {worst / 1000:g} ms."


def _reported(event: FaultEvent) -> Iterator[_Point]:
    """Yield the offsets in the event itself."""
    exact: dict[str, Any] = event.value.get("clock_offsets_us") or {}
    seconds: dict[str, Any] = event.value.get("clock-offsets") or {}
    for node, offset_us in exact.items():
        yield str(node), event.time_us, int(offset_us)
    for node, offset_s in seconds.items():
        yield str(node), event.time_us, round(offset_s * 1_000_000)


class _Planned:
    """The offsets that follow from the clock faults of the run's plan: each fault by its number, from start to stop."""

    def __init__(self, run: RunRecord | None) -> None:
        self._faults = run.plan.faults if run is not None else ()
        self._active: dict[int, tuple[FaultEvent, int]] = {}
        self.unmeasured = 0

    def points(self, event: FaultEvent) -> Iterator[_Point]:
        """Yield the points that an event adds to the series."""
        step, _, kind = event.f.partition("-")
        number = event.value.get("fault")
        if kind not in _KINDS or not isinstance(number, int):
            return
        if step == "start" and event.value.get("applied") is None:
            yield from self._started(event, kind, number)
        elif number in self._active:
            yield from self._stopped(event, kind, number)

    def _started(self, event: FaultEvent, kind: str, number: int) -> Iterator[_Point]:
        argument = self._faults[number].argument if number < len(self._faults) else {}
        amount = argument.get("rate_ppm" if kind == "clock-drift" else "delta_us")
        if amount is None:
            self.unmeasured += 1
            return
        self._active[number] = (event, int(amount))
        for node in event.value.get("nodes", ()):
            yield node, event.time_us, 0
            if kind != "clock-drift":
                yield node, event.time_us, int(amount)

    def _stopped(self, event: FaultEvent, kind: str, number: int) -> Iterator[_Point]:
        start, amount = self._active.pop(number)
        drifted_us = amount * (event.time_us - start.time_us) // 1_000_000
        for node in start.value.get("nodes", ()):
            yield node, event.time_us, drifted_us if kind == "clock-drift" else amount
            yield node, event.time_us, 0
