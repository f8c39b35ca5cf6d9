"""A tiny deterministic world for campaign tests: what each seed comes to is decided by the seed alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from faultline.campaign.engine import Engine
from faultline.campaign.matrix import CampaignPlan
from faultline.harness.feature import Feature
from faultline.harness.history import History
from faultline.harness.invariant import Invariant
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.system import OptionDescription, PlantedBug
from faultline.harness.verdict import CheckResult, Finding, Verdict
from faultline.nemesis import combined

STALE_EVERY = 5
BROKEN_SEED = 7


FEATURES = (Feature("leader-changed", "another leader took over"), Feature("log-truncated", "entries were cut off"))


class FakeSystem:
    """A system without options, invariants and planted bugs, and with features that it declares; one of another name
    declares none."""

    options: ClassVar[dict[str, OptionDescription]] = {}
    planted_bugs: ClassVar[dict[str, PlantedBug]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.features = FEATURES if name == "fake" else ()

    def invariants(self) -> list[Invariant]:
        return []


class FakeChecker:
    """Finds a stale read in every fifth seed of a planted bug, with two operations more than the seed has digits."""

    name = "linearizability"

    def check(self, history: History, run: RunRecord) -> CheckResult:
        seed = run.plan.seed
        if not run.plan.planted_bugs or seed % STALE_EVERY:
            return CheckResult(checker=self.name, verdict=Verdict.PASS, sentence="All operations are linearizable.")
        rows = tuple(range(len(str(seed)) + 1))
        finding = Finding(
            checker=self.name, anomaly="stale-read", sentence=f"Seed {seed} read a stale value.", operations=rows
        )
        return CheckResult(checker=self.name, verdict=Verdict.VIOLATION, sentence=finding.sentence, findings=(finding,))


def resolve(request: RunRequest) -> Parts:
    system: Any = FakeSystem(request.system)
    nothing: Any = None
    return Parts(
        system=system,
        system_path="campaign_fakes:FakeSystem",
        workload=nothing,
        checkers=(FakeChecker(),),
        nemeses={},
        package=combined(()),
        heal=lambda _port: [],
    )


def refuse(_plan: Plan, _parts: Parts) -> None:
    """This world can carry out anything."""


def make_plan(request: RunRequest, _parts: Parts) -> Plan:
    return Plan(
        system=request.system,
        workload=request.workload,
        seed=request.seed,
        nodes=("athens",),
        workers=1,
        operations=(),
        fault_set=request.faults,
        planted_bugs=request.planted_bugs,
        heal_us=50_000,
        end_us=100_000,
    )


def simulate(plan: Plan, _parts: Parts, _record_messages: bool) -> RunRecord:
    if plan.seed == BROKEN_SEED:
        raise ZeroDivisionError("seed seven")
    history = History()
    for number in range(6):
        row = history.invoke(Operation(0, "read", f"k{number % 2}"), 10_000 * number, 0, "athens")
        history.complete(row, ok(number), 10_000 * number + 1_000 + plan.seed)
    fault = FaultInterval(kind="partition", target="leader", start_us=15_000, stop_us=35_000)
    marks = {"leader-changed": 2} if plan.system == "fake" else {"quorum-asked": 1}
    return RunRecord(plan=plan, world="simulated", history=history, faults=[fault], marks=marks)


def simulate_or_die(plan: Plan, parts: Parts, record_messages: bool) -> RunRecord:
    """A seed of which takes its worker with it, as a run does that needs more memory than there is."""
    if plan.seed == BROKEN_SEED:
        os._exit(9)
    return simulate(plan, parts, record_messages)


def collect(plan: Plan, parts: Parts, folder: Path) -> RunRecord:
    record = simulate(plan, parts, False)
    (folder / "history.jsonl").write_bytes(record.history.to_jsonl())
    return msgspec.structs.replace(record, world="local")


def judged(record: RunRecord, parts: Parts, run_id: str) -> Judgement:
    return judge(record, parts, run_id=run_id)


def fake_engine() -> Engine:
    """An engine made of the functions above."""
    return Engine(resolve=resolve, refuse=refuse, plan=make_plan, simulate=simulate, collect=collect, judge=judged)


def fake_plan(**changes: Any) -> CampaignPlan:
    """Twelve seeds of a planted bug and of the correct system, in units of five."""
    plan = CampaignPlan(
        name="fake",
        systems=("fake",),
        workloads=("register",),
        fault_sets=(("partition",),),
        planted_bugs=((), ("stale-read",)),
        seeds="0..11",
        seeds_per_task=5,
    )
    return msgspec.structs.replace(plan, **changes)
