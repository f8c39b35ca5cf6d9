"""One seed is one execution: the same bytes in other processes, whatever the hash seed."""

import json
import os
import subprocess
import sys

import msgspec
import pytest

from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import load_system, resolve, systems

SCRIPT = """
import json, sys
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve
import msgspec
digests = {}
for request in json.loads(sys.argv[1]):
    request = msgspec.convert(request, RunRequest)
    parts = resolve(request)
    plan = make_plan(request, parts)
    record = run_simulated(plan, parts)
    verdict = msgspec.json.encode(judge(record, parts, run_id="same")).decode()
    digests[str(request)] = [plan.digest(), record.history.digest(), record.statistics, verdict]
print(json.dumps(digests))
"""

CORE = [
    RunRequest(system="consistent-core", faults=faults, seed=seed, planted_bugs=planted_bugs)
    for seed, faults, planted_bugs in (
        (1, ("leadership",), ()),
        (2, ("all",), ()),
        (3, ("durability",), ("ack-before-fsync",)),
        (4, ("clocks",), ("wall-clock-lease",)),
        (5, ("retries",), ("no-duplicate-detection",)),
    )
]


def requests_of(system: str) -> list[RunRequest]:
    """One run in each shipped campaign of the correct `system`, and one of a planted bug."""
    plans = [load_plan(name) for name in shipped_plans()]
    places = [
        (plan, cell) for plan in plans for cell in plan.cells() if cell.system == system and not cell.planted_bugs
    ]
    correct = {plan.name: plan.request(cell, seed) for seed, (plan, cell) in enumerate(places)}
    planted = [
        msgspec.structs.replace(correct[planted_bug.campaign], planted_bugs=(name,))
        for name, planted_bug in sorted(load_system(system).planted_bugs.items())
        if planted_bug.campaign in correct
    ]
    return [*correct.values(), *planted[:1]]


SYSTEMS = sorted(name for name, path in systems().items() if path.startswith("faultline."))
RUNS = CORE + [request for system in SYSTEMS for request in requests_of(system)]


def digests(hash_seed: str) -> dict[str, object]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT, msgspec.json.encode(RUNS).decode()]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(ended.stdout)


def test_one_seed_gives_the_same_bytes_in_processes_with_different_hash_seeds():
    assert {request.system for request in RUNS} == set(SYSTEMS)
    first = digests("0")
    assert len(first) == len({str(request) for request in RUNS})
    assert digests("4242") == first
    assert digests("random") == first


@pytest.mark.parametrize("system", SYSTEMS)
def test_different_seeds_give_different_histories(system):
    request = requests_of(system)[0]
    parts = resolve(request)
    plans = (make_plan(msgspec.structs.replace(request, seed=seed), parts) for seed in range(8))
    assert len({run_simulated(plan, parts).history.digest() for plan in plans}) == 8


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("seed", [11, 12])
def test_recording_messages_changes_nothing_else(system, seed):
    request = msgspec.structs.replace(requests_of(system)[0], seed=seed)
    parts = resolve(request)
    plan = make_plan(request, parts)
    plain, recorded = run_simulated(plan, parts), run_simulated(plan, parts, record_messages=True)
    assert plain.history.to_jsonl() == recorded.history.to_jsonl()
    assert (plain.statistics, plain.marks) == (recorded.statistics, recorded.marks)
    assert recorded.messages and not plain.messages
