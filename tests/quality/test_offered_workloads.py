"""Each workload that `faultline list workloads` offers for a reference system runs there, calmly and with faults."""

from __future__ import annotations

import pytest

from faultline.campaign.engine import default_engine
from faultline.cli.serving import served
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest
from faultline.harness.system import HasUsualTest
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, load_workload, systems, workloads

SHOWN = (Verdict.PASS, Verdict.VACUOUS)
OFFERED = [
    (system, *offered.split(" "))
    for system in sorted(systems())
    for offered in served(load_system(system), [load_workload(name) for name in sorted(workloads())])
]


IN_MEMORY = {"data-grid"}
"""Systems that promise nothing where several processes end, since data are in memory."""


@pytest.mark.slow
@pytest.mark.parametrize("faults", [(), ("partition", "kill")], ids=["calm", "faults"])
@pytest.mark.parametrize("offered", OFFERED, ids=" ".join)
def test_an_offered_workload_is_run_and_decided(offered: tuple[str, ...], faults: tuple[str, ...]) -> None:
    name, workload, *settings = offered
    system, engine = load_system(name), default_engine("simulated")
    request = RunRequest(
        system=name,
        workload=workload,
        faults=("partition", "pause") if faults and name in IN_MEMORY else faults,
        seed=1,
        options=dict(setting.split("=", 1) for setting in settings),
        nodes=system.usual_nodes if isinstance(system, HasUsualTest) else 3,
        operations=60,
    )
    judgement = engine.judged(request)
    assert judgement.verdict in SHOWN, judgement.sentence


def test_every_reference_system_is_offered_something() -> None:
    assert {offered[0] for offered in OFFERED} == set(systems())


def test_after_the_heal_long_fork_reads_whole_pairs_only() -> None:
    request = RunRequest(system="transactional-kv", workload="long-fork", faults=(), seed=1, operations=150)
    engine = default_engine("simulated")
    parts = engine.resolve(request)
    plan = engine.plan(request, parts)
    pairs = [{key for _, key, _ in operation.value} for operation in plan.operations if operation.value[0][0] == "r"]
    assert all(len(pair) == 2 for pair in pairs)
    assert len({frozenset(pair) for pair in pairs}) >= 17


def test_one_worker_cannot_both_write_and_watch() -> None:
    request = RunRequest(system="coordination-service", workload="watches", workers=1)
    with pytest.raises(UsageError, match="one worker is too few"):
        default_engine("simulated").plan(request, default_engine("simulated").resolve(request))
