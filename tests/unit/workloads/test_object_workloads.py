"""The workloads on counters, sets and accounts: what they plan, and that each convicts a bug and lets a twin go."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any, ClassVar

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.harness.generator import planned_operations
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.plan import PlannedOperation
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import options_missing
from faultline.harness.verdict import Verdict
from faultline.registry import load_system, load_workload, resolve
from faultline.systems_under_test.reference.coordination_service.system import CoordinationService
from faultline.systems_under_test.reference.leases_and_watches.client import SERVICE_FUNCTIONS
from faultline.workloads.transfer import OPENING

WORKLOADS = ("transfer", "counter", "set", "append", "log-order", "sequential", "sessions", "unique-ids")


def rows(workload: str, seed: int, workers: int = 5) -> tuple[PlannedOperation, ...]:
    generator = load_workload(workload).generator(workers=workers, operations=200, seed=seed)
    return planned_operations(generator, workers=workers, seed=seed, latency_us=4_000)


def final_rows(workload: str, seed: int) -> tuple[PlannedOperation, ...]:
    generator = load_workload(workload).final_generator(workers=5, seed=seed)
    return planned_operations(generator, workers=5, seed=seed, latency_us=4_000)


def judged(workload: str, seed: int, faults: str, **changed: Any) -> Judgement:
    asked = {"system": "consistent-core", "workload": workload, "faults": (faults,), "seed": seed, **changed}
    request = RunRequest(**asked, beyond_promise=True)
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{seed}")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_plan_is_full_and_uses_the_functions_that_the_workload_names(workload: str) -> None:
    planned = [row for seed in range(5) for row in (*rows(workload, seed), *final_rows(workload, seed))]
    assert len(rows(workload, 3)) == 200
    assert {row.f for row in planned} == set(load_workload(workload).functions)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("workers", [1, 2, 12])
def test_any_number_of_workers_will_do(workload: str, workers: int) -> None:
    assert {row.worker for row in rows(workload, 4, workers)} <= set(range(workers))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_plan_is_a_function_of_the_seed(workload: str) -> None:
    assert rows(workload, 7) == rows(workload, 7) != rows(workload, 8)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_all_workers_look_again_after_the_heal(workload: str) -> None:
    looks = Counter(row.worker for row in final_rows(workload, 1))
    assert sorted(looks) == [0, 1, 2, 3, 4] and min(looks.values()) >= 2


@pytest.mark.parametrize("workload", ["counter", "set", "sessions"])
def test_objects_that_were_used_are_read_at_the_end(workload: str) -> None:
    last = {row.key for row in rows(workload, 5)[-20:]}
    assert last <= {row.key for row in final_rows(workload, 5)}


def test_elements_are_added_once_and_transfers_have_two_ends() -> None:
    added = [(row.key, row.value) for row in rows("set", 2) if row.f == "add"]
    assert len(added) == len(set(added)) > 50
    moved = [row.value for row in rows("transfer", 2) if row.f == "transfer"]
    assert all(each["from"] != each["to"] and 1 <= each["amount"] <= 10 for each in moved)
    assert sum(OPENING.values()) == 183


CONTROLS = [
    ("transfer", "retries", {"planted_bugs": ("no-duplicate-detection",)}, "balance-out-of-bounds"),
    ("counter", "retries", {"planted_bugs": ("no-duplicate-detection",)}, "counter-out-of-bounds"),
    ("counter", "leadership", {"options": {"read_mode": "stale"}}, "not-monotonic"),
    ("set", "leadership", {"planted_bugs": ("ack-before-quorum",)}, "lost-element"),
    ("set", "leadership", {"options": {"read_mode": "stale"}}, "stale-element"),
    ("append", "leadership", {"planted_bugs": ("ack-before-quorum",)}, "incompatible-order"),
    ("append", "retries", {"planted_bugs": ("no-duplicate-detection",)}, "duplicate-elements"),
    ("append", "leadership", {"options": {"read_mode": "stale"}}, "G-single-item-realtime"),
    (
        "log-order",
        "leadership",
        {"options": {"read_mode": "stale"}, "planted_bugs": ("no-truncate-on-conflict",)},
        "incompatible-order",
    ),
    ("sequential", "leadership", {"planted_bugs": ("ack-before-quorum",)}, "causal-reverse"),
    ("sequential", "leadership", {"options": {"read_mode": "stale"}}, "monotonic-reads-violated"),
    ("sessions", "leadership", {"options": {"read_mode": "stale"}}, "read-your-writes-violated"),
    ("sessions", "leadership", {"options": {"read_mode": "stale"}}, "monotonic-reads-violated"),
    ("sessions", "leadership", {"planted_bugs": ("ack-before-quorum",)}, "monotonic-writes-violated"),
    ("unique-ids", "leadership", {"planted_bugs": ("ack-before-quorum",)}, "duplicated-id"),
]


@pytest.mark.parametrize(("workload", "faults", "broken", "anomaly"), CONTROLS)
@pytest.mark.rows("IDR-I5")
def test_a_broken_store_is_convicted_by_the_workloads_own_checker(
    workload: str, faults: str, broken: dict[str, Any], anomaly: str
) -> None:
    seen: set[str] = set()
    for seed in range(60):
        seen |= {finding.anomaly for finding in judged(workload, seed, faults, **broken).findings}
        if anomaly in seen:
            return
    pytest.fail(f"{anomaly} was not found in 60 seeds of {workload}; seen: {sorted(seen)}")


@pytest.mark.parametrize("faults", ["retries", "leadership"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_correct_store_passes(workload: str, faults: str) -> None:
    # Seeds from 0 on belong to the campaigns' own tests in tests/planted_bugs.
    judgements = [judged(workload, seed, faults) for seed in range(1_000, 1_004)]
    assert [each.sentence for each in judgements if each.verdict is not Verdict.PASS] == []


@pytest.mark.rows("IDR-R10", "IDR-R16")
@pytest.mark.parametrize("policy", ["last-responses", "one-at-a-time", "acknowledged"])
def test_under_every_discard_policy_increments_count_once_though_sessions_end_in_the_middle(policy: str) -> None:
    options = {"discard_policy": policy, "session_timeout_ms": "150", "session_check_ms": "50"}
    judgements = [judged("counter", seed, "retries", options=options) for seed in range(8)]
    assert [each.sentence for each in judgements if each.verdict is not Verdict.PASS] == []


def test_stale_reads_of_a_log_in_order_break_no_order_of_writes() -> None:
    anomalies = {
        finding.anomaly
        for seed in range(30)
        for finding in judged("sequential", seed, "leadership", options={"read_mode": "stale"}).findings
    }
    assert anomalies == {"monotonic-reads-violated"}


@pytest.mark.rows("LOG-I1", "LOG-I4")
def test_stale_reads_of_lists_are_beginnings_of_one_order() -> None:
    options = {"read_mode": "stale"}
    judgements = [judged("log-order", seed, "leadership", options=options) for seed in range(20)]
    assert [each.sentence for each in judgements if each.verdict is not Verdict.PASS] == []


def test_a_system_that_lacks_an_operation_refuses_the_workload_by_name() -> None:
    request = RunRequest(system="quorum-register", workload="transfer")
    with pytest.raises(
        UsageError, match="quorum-register cannot serve the workload transfer: it has no function cas or transfer"
    ):
        make_plan(request, resolve(request))


class _Switched(CoordinationService):
    """A plug-in whose leases and watches are switched on by an option."""

    function_options: ClassVar[dict[str, dict[str, str]]] = {
        name: {"watch_delivery": "pull"} for name in SERVICE_FUNCTIONS
    }


@pytest.mark.parametrize(("workload", "first"), [("locks", "acquire"), ("watches", "put")])
def test_a_workload_that_the_options_switch_off_is_refused_with_the_option_it_needs(workload: str, first: str) -> None:
    request = RunRequest(system="coordination-service", workload=workload)
    parts = dataclasses.replace(resolve(request), system=_Switched())
    with pytest.raises(UsageError, match=f"{workload} only with watch_delivery=pull: without, .*{first}") as refused:
        make_plan(request, parts)
    assert "--option watch_delivery=pull" in refused.value.next_step
    served = msgspec.structs.replace(request, options={"watch_delivery": "pull"})
    assert make_plan(served, parts).options["watch_delivery"] == "pull"


def test_a_function_without_a_word_about_options_is_always_served() -> None:
    switched, paxos = _Switched(), load_system("paxos-kv")
    assert options_missing(switched, "read", {}) == options_missing(paxos, "read", {}) == {}
    assert options_missing(switched, "acquire", {"watch_delivery": "once"}) == {"watch_delivery": "pull"}
    assert options_missing(switched, "acquire", {"watch_delivery": "pull"}) == {}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_consistent_core_has_every_operation(workload: str) -> None:
    assert set(load_workload(workload).functions) <= set(load_system("consistent-core").functions)
