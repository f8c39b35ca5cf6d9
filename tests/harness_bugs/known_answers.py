"""Runs, checkers and files whose answer is known by construction, for the scenarios."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from faultline.cli.main import carry_out
from faultline.harness.history import History
from faultline.harness.judge import judge_by
from faultline.harness.judgement import Judgement
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.plan import Plan, PlannedFault
from faultline.harness.planning import RunRequest
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.verdict import CheckResult, Finding, Verdict

Scenario = Callable[[Path], None]

HEAL_US = 50_000
PARTITION = FaultInterval(kind="partition", target="leader", start_us=15_000, stop_us=35_000, nodes=("athens",))


def plan(**changes: Any) -> Plan:
    """A plan of three nodes and two workers with one partition; healed at 50 ms."""
    known: dict[str, Any] = {
        "system": "consistent-core",
        "workload": "register",
        "seed": 3,
        "nodes": ("athens", "byzantium", "cyrene"),
        "workers": 2,
        "operations": (),
        "faults": (PlannedFault("partition", 15_000, 20_000, "leader"),),
        "fault_set": ("partition",),
        "heal_us": HEAL_US,
        "end_us": 100_000,
    }
    return Plan(**(known | changes))


def history(*rows: tuple[Any, ...]) -> History:
    """Operations as (process, f, key, value, outcome, result, invoke_us, complete_us); open ones without an end."""
    made = History()
    events: list[tuple[int, int, tuple[Any, ...]]] = []
    for number, row in enumerate(rows):
        events.append((row[6], number, row))
        if row[7] is not None:
            events.append((row[7], number, row))
    at: dict[int, int] = {}
    for time_us, number, (process, f, key, value, outcome, result, *_) in sorted(events, key=lambda event: event[:2]):
        if number not in at:
            at[number] = made.invoke(Operation(process, f, key, value), time_us, process, "athens")
        else:
            error = None if outcome == "ok" else "timed-out" if outcome == "info" else "refused"
            made.complete(at[number], Outcome(outcome, result, error), time_us)
    return made


def sound_history() -> History:
    """A write, a read and a refused compare-and-set during the partition, an unknown write, and a read at the end."""
    return history(
        (0, "write", "k0", 1, "ok", None, 1_000, 12_000),
        (1, "read", "k0", None, "ok", 1, 11_000, 20_000),
        (0, "cas", "k0", [4, 5], "fail", None, 16_000, 22_000),
        (1, "write", "k1", 2, "info", None, 24_000, 60_000),
        (0, "read", "k0", None, "ok", 1, 61_000, 70_000),
        (3, "read", "k1", None, "ok", 2, 62_000, 71_000),
    )


def dense_history() -> History:
    """Twenty writes and fifteen reads of three values at once, which no search decides in a few steps."""
    together = [
        (number, "write", "k0", number % 3, "ok", None, 1_000 + number, 9_000 + number)
        if number < 20
        else (number, "read", "k0", None, "ok", number % 3, 1_000 + number, 9_000 + number)
        for number in range(35)
    ]
    return history(*together, (40, "read", "k0", None, "ok", 2, 10_000, 11_000))


def record(made: History | None = None, **changes: Any) -> RunRecord:
    """A run with the sound history, in which the partition took effect."""
    known: dict[str, Any] = {"plan": plan(), "world": "simulated", "faults": [PARTITION]}
    return RunRecord(**(known | {"history": sound_history() if made is None else made} | changes))


class Says:
    """A checker with a fixed answer: a verdict, with one finding if it is a violation; or whatever else it is given."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self._answer = answer

    def check(self, _history: History, _run: RunRecord) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        if not isinstance(self._answer, Verdict):
            return self._answer
        violates = self._answer is Verdict.VIOLATION
        finding = Finding(checker=self.name, anomaly="odd", sentence=f"{self.name} saw something odd.", operations=(1,))
        return CheckResult(
            checker=self.name,
            verdict=self._answer,
            sentence=f"{self.name} says {self._answer.value}.",
            findings=(finding,) if violates else (),
        )


def judged(answers: Iterable[tuple[str, Any]], run: RunRecord | None = None, **settings: Any) -> Judgement:
    """The judgement of a run by checkers that say what `answers` hold, by name."""
    return judge_by([Says(name, answer) for name, answer in answers], run or record(), run_id="r", **settings)


def request(**changes: Any) -> RunRequest:
    """Return the request of the runs of these scenarios, with `changes`."""
    return RunRequest(**({"system": "consistent-core", "workload": "register", "seed": 7} | changes))


def faultline(*arguments: object) -> tuple[int, str]:
    """Carry out a command in this process: its exit code, and what it printed on both outputs."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = carry_out([str(argument) for argument in arguments])
    return code, out.getvalue()


def the_run(store: Path) -> Path:
    """The folder of the only run in `store`."""
    (folder,) = (store / "runs").iterdir()
    return folder


def events_in(path: Path) -> list[dict[str, Any]]:
    """The events of a history file, as any other program reads them."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def verdict_in(folder: Path) -> dict[str, Any]:
    """Return the content of a run's verdict file, as any other program reads it."""
    told: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return told


def outcomes(events: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count the operations that were invoked and those of each outcome, from the events of the file."""
    kinds = [event["type"] for event in events if event["process"] != "nemesis"]
    counted = {"invoked": kinds.count("invoke"), "ok": kinds.count("ok"), "fail": kinds.count("fail")}
    return counted | {"info": counted["invoked"] - counted["ok"] - counted["fail"]}
