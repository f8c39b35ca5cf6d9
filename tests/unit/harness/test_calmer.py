"""Calmer plans: every value that the violation does not need is the default one, and nothing else of the plan moves."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from faultline.harness.calmer import calm_values, calmed, fewer_nodes_and_workers, shorter_faults, values_of
from faultline.harness.operation import AnswerOf
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation, Weather, node_names
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.shrink import SIZE_RUNS_MAX, shrink
from faultline.registry import load_system, resolve

SYSTEM = load_system("consistent-core")
MS = 1_000


def plan_of(**asked: Any) -> Plan:
    request = RunRequest(system="consistent-core", **asked)
    return make_plan(request, resolve(request))


def small(*, workers: tuple[int, ...] = (), durations_ms: tuple[int, ...] = (), nodes: int = 3) -> Plan:
    return replace(
        plan_of(),
        nodes=node_names(nodes),
        workers=10,
        operations=tuple(PlannedOperation(worker, at, "read", "k0") for at, worker in enumerate(workers)),
        faults=tuple(PlannedFault("kill", at, each * MS) for at, each in enumerate(durations_ms)),
    )


def test_workers_are_numbered_anew_also_where_an_operation_names_the_answer_of_one() -> None:
    plan = replace(
        small(workers=(2, 7)),
        operations=(
            PlannedOperation(2, 0, "read", "x"),
            PlannedOperation(7, 1, "write", "y", 1, AnswerOf(2, "read", "x")),
        ),
    )
    smaller = fewer_nodes_and_workers(plan, SYSTEM, always)
    assert smaller.workers == 1
    assert smaller.operations[1].answer_of == AnswerOf(0, "read", "x")


def always(_: Plan) -> bool:
    return True


def never(_: Plan) -> bool:
    return False


def test_a_plan_of_defaults_has_no_value_to_calm() -> None:
    assert values_of(plan_of(), SYSTEM) == {}


def test_values_that_the_user_gave_are_calmed_where_the_violation_does_not_need_them() -> None:
    plan = plan_of(weather={"loss": 0.05, "disk": "page-cache"}, options={"tuning": "in_flight_max:2"})
    assert set(values_of(plan, SYSTEM)) == {"weather.loss", "weather.disk", "option.in_flight_max"}
    assert calm_values(plan, SYSTEM, always) == plan_of()
    left = calm_values(plan, SYSTEM, lambda each: each.weather.loss > 0)
    assert values_of(left, SYSTEM) == {"weather.loss": "0.05"}
    assert calm_values(plan, SYSTEM, never) == plan


def test_options_that_a_planted_bug_needs_are_not_tried() -> None:
    plan = plan_of(planted_bugs=("wall-clock-lease",), faults=("clocks",))
    assert plan.options["read_mode"] == "leader-lease"
    assert "option.read_mode" not in values_of(plan, SYSTEM)


def test_no_calmer_weather_contradicts_itself() -> None:
    plan = replace(plan_of(), weather=Weather(latency_us_min=5_000, latency_us_max=9_000))
    seen: list[Weather] = []

    def needs_the_least_latency(each: Plan) -> bool:
        seen.append(each.weather)
        return each.weather.latency_us_min == 5_000

    assert calm_values(plan, SYSTEM, needs_the_least_latency).weather == plan.weather
    assert all(each.latency_us_min <= each.latency_us_max for each in seen)


def test_a_calmed_value_of_a_drawn_universe_is_no_longer_told_and_no_other_value_moves() -> None:
    for seed in range(12):
        plan = plan_of(seed=seed, faults=("leadership", "durability"), universe="drawn")
        values = values_of(plan, SYSTEM)
        assert {name: value for name, value in (plan.universe or {}).items() if "." in name} == values
        for name in values:
            left = calmed(plan, SYSTEM, [name])
            assert left.universe == {each: value for each, value in (plan.universe or {}).items() if each != name}
            assert values_of(left, SYSTEM) == {each: value for each, value in values.items() if each != name}


@pytest.mark.parametrize("needed", [3, 4, 6, 7])
def test_the_fewest_nodes_that_the_violation_needs_are_kept(needed: int) -> None:
    plan = replace(small(nodes=7), universe={"nodes": "7"})
    left = fewer_nodes_and_workers(plan, SYSTEM, lambda each: len(each.nodes) >= needed)
    assert left.nodes == node_names(needed)
    assert left.universe == ({} if needed == 3 else {"nodes": str(needed)})


def test_no_fewer_nodes_are_tried_than_a_universe_of_the_system_has() -> None:
    seen: list[int] = []

    def note(each: Plan) -> bool:
        seen.append(len(each.nodes))
        return False

    fewer_nodes_and_workers(small(nodes=5), SYSTEM, note)
    assert min(seen) == 3


def test_workers_are_made_one_numbered_anew_or_at_least_not_idle() -> None:
    def workers_of(plan: Plan) -> list[int]:
        return [operation.worker for operation in plan.operations]

    plan = small(workers=(4, 7, 4))
    assert workers_of(fewer_nodes_and_workers(plan, SYSTEM, always)) == [0, 0, 0]
    two = fewer_nodes_and_workers(plan, SYSTEM, lambda each: len(set(workers_of(each))) == 2)
    assert (workers_of(two), two.workers) == ([0, 1, 0], 2)
    same = fewer_nodes_and_workers(plan, SYSTEM, lambda each: workers_of(each) == workers_of(plan))
    assert (workers_of(same), same.workers) == ([4, 7, 4], 8)


def test_each_fault_is_as_short_as_the_violation_allows_and_starts_when_it_did() -> None:
    plan = small(durations_ms=(823, 54, 700))
    needed_ms = (150, 0, 700)

    def still_fails(each: Plan) -> bool:
        return all(fault.duration_us >= least * MS for fault, least in zip(each.faults, needed_ms, strict=True))

    left = shorter_faults(plan, still_fails)
    assert [fault.duration_us for fault in left.faults] == [200 * MS, 10 * MS, 700 * MS]
    assert [replace(fault, duration_us=0) for fault in left.faults] == [
        replace(fault, duration_us=0) for fault in plan.faults
    ]


def test_no_plan_is_run_twice_and_the_runs_for_sizes_are_limited() -> None:
    digests: list[str] = []

    def still_fails(plan: Plan) -> bool:
        digests.append(plan.digest())
        return len(plan.faults) == 40

    shrunk = shrink(small(durations_ms=(800,) * 40), still_fails, system=SYSTEM)
    assert len(digests) == len(set(digests)) == shrunk.runs
    taken_out = 2 * 40 + 80
    assert shrunk.runs <= SIZE_RUNS_MAX + 2 * taken_out
    assert shrunk.steps[-1] == shrunk.plan
