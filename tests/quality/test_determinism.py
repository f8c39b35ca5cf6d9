"""One seed is one execution: the same bytes in other processes, whatever the hash seed."""

import json
import os
import subprocess
import sys

import pytest

from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve

SCRIPT = """
import json, sys
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve
import msgspec
digests = {}
for seed, faults, mutants in json.loads(sys.argv[1]):
    request = RunRequest(system="consistent-core", faults=tuple(faults), seed=seed, mutants=tuple(mutants))
    parts = resolve(request)
    plan = make_plan(request, parts)
    record = run_simulated(plan, parts)
    verdict = msgspec.json.encode(judge(record, parts, run_id="same")).decode()
    digests[f"{seed} {faults} {mutants}"] = [plan.digest(), record.history.digest(), record.statistics, verdict]
print(json.dumps(digests))
"""

RUNS = [
    [1, ["leadership"], []],
    [2, ["all"], []],
    [3, ["durability"], ["ack-before-fsync"]],
    [4, ["clocks"], ["wall-clock-lease"]],
    [5, ["retries"], ["no-duplicate-detection"]],
]


def digests(hash_seed: str) -> dict[str, object]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT, json.dumps(RUNS)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(ended.stdout)


def test_one_seed_gives_the_same_bytes_in_processes_with_different_hash_seeds():
    first = digests("0")
    assert len(first) == len(RUNS)
    assert digests("4242") == first
    assert digests("random") == first


def test_different_seeds_give_different_histories():
    parts = resolve(RunRequest(system="consistent-core"))
    histories = {
        run_simulated(make_plan(RunRequest(system="consistent-core", seed=seed), parts), parts).history.digest()
        for seed in range(8)
    }
    assert len(histories) == 8


@pytest.mark.parametrize("seed", [11, 12])
def test_recording_messages_changes_nothing_else(seed):
    request = RunRequest(system="consistent-core", seed=seed)
    parts = resolve(request)
    plan = make_plan(request, parts)
    plain, recorded = run_simulated(plan, parts), run_simulated(plan, parts, record_messages=True)
    assert plain.history.to_jsonl() == recorded.history.to_jsonl()
    assert (plain.statistics, plain.marks) == (recorded.statistics, recorded.marks)
    assert recorded.messages and not plain.messages
