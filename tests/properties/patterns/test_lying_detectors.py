"""HB-I5: failure detectors that accuse at random cost elections, and never safety."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.world.ports import Clock, Ports
from faultline.registry import resolve
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.raft.key_value_server import KeyValueServer
from faultline.systems_under_test.reference.raft.parts import Elections, Parts
from faultline.systems_under_test.reference.raft.settings import RaftSettings

SEEDS = 6
LIVENESS = {"availability", "no-recovery", "HB-I3", "invariants"}
"""The invariants that a lie may break: the promise about the time of a suspicion, and that clients are answered."""


class LyingClock:
    """Shows a detector some other time, up to a second later than it is."""

    def __init__(self, clock: Clock, ports: Ports) -> None:
        self._clock = clock
        self._ports = ports
        self.wall_us = clock.wall_us

    def monotonic_us(self) -> int:
        return self._clock.monotonic_us() + self._ports.random.uniform_us("lie", 0, 200) ** 4 // 1_600


class LyingCore(ConsistentCore):
    def node(self, ports: Ports, members: Any, options: Any, planted_bugs: Any) -> Any:
        settings = RaftSettings.read(options)
        if settings.election == "external-store" and ports.node_id == members[-1]:
            return super().node(ports, members, options, planted_bugs)
        parts = Parts(elections=Elections(detector_clock=lambda clock: LyingClock(clock, ports)))
        return KeyValueServer(ports, members, settings, parts)


@pytest.mark.slow
@pytest.mark.rows("HB-I5")
@pytest.mark.parametrize("campaign", ["leadership", "zab-elections", "external-store-elections"])
def test_a_detector_that_lies_costs_elections_and_never_safety(campaign: str) -> None:
    plan = load_plan(campaign)
    cell = plan.cells()[0]
    options = {**plan.options, "failure_detector": "fixed-timeout"}
    early = 0
    for seed in range(SEEDS):
        request = RunRequest(
            system=cell.system,
            workload=cell.workload,
            faults=cell.faults,
            seed=seed,
            options=options,
            nodes=plan.nodes,
        )
        parts = dataclasses.replace(resolve(request), system=LyingCore())
        judgement = judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{seed}")
        found = {finding.anomaly for finding in judgement.findings} | {f.checker for f in judgement.findings}
        assert found <= LIVENESS, judgement.sentence
        early += "HB-I3" in found
    assert early == SEEDS
