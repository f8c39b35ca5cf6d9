"""`faultline list` says which system can serve which workload, and says the same as planning a run does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner

from faultline.cli.main import cli
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest, make_plan
from faultline.registry import resolve, workloads


def listed(what: str) -> dict[str, dict[str, Any]]:
    entries = json.loads(CliRunner().invoke(cli, ["list", what, "--json"]).stdout)
    return {entry["name"]: entry for entry in entries}


def is_planned(system: str, workload: str, settings: dict[str, str]) -> bool:
    request = RunRequest(system=system, workload=workload, faults=(), options=settings, operations=1)
    try:
        make_plan(request, resolve(request))
    except UsageError:
        return False
    return True


def test_each_workload_is_listed_with_the_systems_that_can_serve_it() -> None:
    printed = CliRunner().invoke(cli, ["list", "workloads"]).stdout
    block = printed[printed.index("\nlocks ") :].splitlines()
    assert block[2] == "    on: coordination-service, etcd, redis-sentinel, zookeeper"
    assert listed("workloads")["locks"]["systems"] == [
        "coordination-service",
        "etcd",
        "redis-sentinel",
        "zookeeper",
    ]


def test_each_system_is_listed_with_the_workloads_it_can_serve() -> None:
    printed = CliRunner().invoke(cli, ["list", "systems"]).stdout
    entry = re.search(r"\nrange-kv .*\n    serves: ((.|\n    )+)", printed)
    assert entry is not None and "scans" in entry[1] and "queue" not in entry[1]


def test_both_listings_tell_the_same_pairs() -> None:
    by_workload = {
        (system.split(" ")[0], name) for name, entry in listed("workloads").items() for system in entry["systems"]
    }
    by_system = {
        (name, workload.split(" ")[0]) for name, entry in listed("systems").items() for workload in entry["workloads"]
    }
    assert by_workload == by_system


@pytest.mark.parametrize("system", ["consistent-core", "coordination-service", "follower-reads", "gossip", "range-kv"])
def test_a_run_is_planned_for_what_is_listed_and_refused_for_the_rest(system: str) -> None:
    split = [served.split(" ") for served in listed("systems")[system]["workloads"]]
    served = {name: dict(setting.split("=") for setting in settings) for name, *settings in split}
    assert {name for name in workloads() if is_planned(system, name, served.get(name, {}))} == set(served)
    assert not any(is_planned(system, name, {}) for name, settings in served.items() if settings)
