"""The changes that a guided campaign makes to the plans of earlier runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from faultline.campaign.guided.mutation import CHANGES, ChangeKind, changeable_options, changed
from faultline.harness.options import flat_options
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, changed_plan, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.nemesis.packages import Package
from faultline.registry import resolve

SEEDS = range(1_000, 1_012)


def request(seed: int, **values: Any) -> RunRequest:
    given: dict[str, Any] = {
        "system": "consistent-core",
        "workload": "register",
        "faults": ("leadership", "durability", "clocks"),
        "operations": 30,
        "duration_s": 2.0,
        "universe": "drawn",
        "held": ("operations",),
    }
    return RunRequest(seed=seed, **given | values)


def parts_and_parent(**values: object) -> tuple[Parts, Plan]:
    asked = request(4, **values)
    parts = resolve(asked)
    return parts, make_plan(asked, parts)


def descendants(kind: ChangeKind, wish: str = "") -> list[tuple[Plan, Plan]]:
    """The parent beside each of its changed plans."""
    parts, parent = parts_and_parent()
    found = [changed(parent, kind, wish, request(seed), parts) for seed in SEEDS]
    return [(parent, plan) for plan in found if plan is not None]


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changed_plan_keeps_the_operations_and_has_the_seed_of_its_own_run(kind: ChangeKind) -> None:
    plans = descendants(kind)
    assert len(plans) > len(SEEDS) // 2
    for parent, plan in plans:
        assert plan.operations == parent.operations
        assert plan.seed in SEEDS
        assert plan.cell == parent.cell
        assert plan.seed_of_chances == (plan.seed if kind == "seed" else parent.seed)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changed_plan_is_one_that_planning_accepts_and_a_pure_function_of_its_parent(kind: ChangeKind) -> None:
    parts, parent = parts_and_parent()
    for seed in SEEDS[:4]:
        plan = changed(parent, kind, "", request(seed), parts)
        assert plan == changed(parent, kind, "", request(seed), parts)
        assert plan is None or changed_plan(plan, parts) == plan


def test_an_option_is_changed_alone_and_told_among_the_drawn_values() -> None:
    for parent, plan in descendants("option"):
        before, after = flat_options(parent.options), flat_options(plan.options)
        names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert len(names) == 1
        told = {name for name, value in (plan.universe or {}).items() if (parent.universe or {}).get(name) != value}
        assert told == {f"option.{name}" for name in names}
        assert (plan.weather, plan.faults) == (parent.weather, parent.faults)


def test_the_wish_for_an_option_value_is_tried_first() -> None:
    parts, parent = parts_and_parent()
    had = flat_options(parent.options)
    options = changeable_options(request(4), parts)
    default, *others = options["session_timeout_ms"]
    value = next(each for each in others if each != had.get("session_timeout_ms", default))
    plan = changed(parent, "option", f"session_timeout_ms={value}", request(1_000), parts)
    assert plan is not None
    assert flat_options(plan.options)["session_timeout_ms"] == value


def test_an_option_that_the_user_gave_is_never_changed() -> None:
    given = {"read_mode": "log"}
    parts, _ = parts_and_parent(options=given)
    assert "read_mode" in changeable_options(request(4), parts)
    assert "read_mode" not in changeable_options(request(4, options=given), parts)


def test_the_weather_is_changed_in_one_field() -> None:
    for parent, plan in descendants("weather"):
        fields = [name for name in plan.weather.__struct_fields__ if _of(plan, name) != _of(parent, name)]
        assert len(fields) == 1
        assert plan.options == parent.options


def test_a_fault_is_taken_out_or_added() -> None:
    counts = {len(plan.faults) - len(parent.faults) for parent, plan in descendants("fault")}
    assert counts == {-1, 1}


def test_aimed_faults_wait_for_the_event_that_was_wished_for() -> None:
    for parent, plan in descendants("aim", "BecameLeader"):
        more = [fault for fault in plan.faults if fault not in parent.faults]
        assert 1 <= len(more) <= 2
        assert {fault.trigger.event for fault in more if fault.trigger is not UNSET} == {"BecameLeader"}


def test_the_same_chances_lead_to_the_same_run_until_the_change_matters() -> None:
    parts, parent = parts_and_parent()
    *others, last = parent.faults
    plan = replace(parent, faults=tuple(others), seed=1_000, chance_seed=parent.seed)
    one, other, elsewhere = (run_simulated(each, parts) for each in (parent, plan, replace(plan, chance_seed=UNSET)))
    assert _until(one, last.at_us) == _until(other, last.at_us) != _until(elsewhere, last.at_us)


def _of(plan: Plan, name: str) -> object:
    value = getattr(plan.weather, name)
    return 0.0 if value is UNSET else value


def _until(record: RunRecord, time_us: int) -> list[tuple[int, str, int]]:
    """The operations that had been answered by `time_us`."""
    history = record.history
    answers = zip(history.invoke_us, history.outcome, history.complete_us, strict=True)
    return [(invoked, outcome, completed) for invoked, outcome, completed in answers if 0 <= completed < time_us]


def test_faults_that_are_added_are_planned_for_the_racks_of_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"faults": ("racks",), "nodes": 5, "racks": 2, "universe": None}
    parts, parent = parts_and_parent(**values)
    planned, in_racks = [], Package.in_racks

    def recorded(package: Package, racks: int) -> Package:
        planned.append(racks)
        return in_racks(package, racks)

    monkeypatch.setattr(Package, "in_racks", recorded)
    plans = [changed(parent, "fault", "", request(seed, **values), parts) for seed in SEEDS]
    assert any(plan is not None and len(plan.faults) > len(parent.faults) for plan in plans)
    assert set(planned) == {2}
