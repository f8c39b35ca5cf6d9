"""Faults that are late on a slow machine happen all the same, or it is said that they did not."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from toy_run import MS, START_US, Pause, fault, operation, parts, plan

from faultline.harness.nemesis import Injection
from faultline.harness.plan import PlannedFault
from faultline.harness.run_record import RunRecord
from faultline.harness.world.faults import FaultPort
from faultline.harness.world.local import run as real_run
from faultline.harness.world.local.world import run_local

pytestmark = pytest.mark.real

HEAL_MS = 150
KILL_MS = 60
FINAL = 8
FINAL_US = START_US + 20 * FINAL * MS
"""The first operation after the planned heal, and its time."""

PLAN = plan(
    *[operation(20 * n, "append", n) for n in range(20)],
    faults=(
        fault("dawdle", 10, 30, "byzantium"),
        fault("kill", 50, 50 + KILL_MS, "cyrene"),
        fault("kill", 120, 500, "byzantium"),
    ),
    heal_ms=HEAL_MS,
    end_ms=10_000,
)


class Dawdle(Pause):
    """A pause that takes the nemesis longer to inject than the whole run was to last until its heal."""

    kind = "dawdle"

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        threading.Event().wait(2 * HEAL_MS / 1_000)
        return super().start(port, fault, seed)


def run(folder: Path) -> RunRecord:
    toy = parts()
    return run_local(PLAN, replace(toy, nemeses={**toy.nemeses, "dawdle": Dawdle()}), folder=folder)


def test_faults_that_are_late_happen_and_last_as_long_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_run, "LATE_FAULTS_S", (60.0, 60.0))  # a restart may take seconds
    record = run(tmp_path)
    assert record.errors == []
    assert [(one.kind, one.applied) for one in record.faults] == [("dawdle", None), ("kill", None), ("kill", None)]
    dawdled, late, to_the_heal = record.faults
    assert dawdled.start_us > PLAN.heal_us and dawdled.stop_us - dawdled.start_us >= 20 * MS
    assert dawdled.stop_us <= late.start_us and late.stop_us - late.start_us >= KILL_MS * MS
    assert late.stop_us <= to_the_heal.start_us
    assert record.statistics["node_starts"] == 5
    assert all(outcome == "ok" for outcome in record.history.outcome)
    # What was planned for after the heal comes after it, by as much as planned.
    (healed_us,) = {event.time_us for event in record.history.faults if event.f == "heal"}
    assert record.healed_us == healed_us > PLAN.heal_us
    final = [row.invoke_us for row in record.history.rows() if row.value >= FINAL]
    assert len(final) == 20 - FINAL and min(final) >= healed_us + FINAL_US - PLAN.heal_us


def test_a_fault_for_which_no_time_is_left_is_among_the_faults_as_not_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_run, "LATE_FAULTS_S", (0.0, 0.0))
    record = run(tmp_path)
    assert record.errors == []
    reason = "it had not begun when everything was healed"
    assert [(one.kind, one.applied) for one in record.faults] == [("dawdle", None), ("kill", reason), ("kill", reason)]
    assert record.statistics["node_starts"] == 3
    told = [event.value["applied"] for event in record.history.faults if event.f == "start-kill"]
    assert told == [reason, reason]
