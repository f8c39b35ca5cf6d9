"""Racks of a plan: dealt or declared, made up where faults need them, and kept in all that is done with a plan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from faultline.harness.calmer import fewer_nodes_and_workers
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.plan import Plan, PlannedFault, node_names
from faultline.harness.planning import changed_plan, make_plan
from faultline.harness.racks import racks_of, without_other_nodes
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.stored_plan import fit_plan
from faultline.registry import load_system, resolve

FIVE = {"rack-1": ("athens", "delphi"), "rack-2": ("byzantium", "ephesus"), "rack-3": ("cyrene",)}


def plan_of(**asked: Any) -> Plan:
    request = RunRequest(system="consistent-core", operations=20, **asked)
    return make_plan(request, resolve(request))


def test_nodes_are_dealt_to_racks_in_turn_or_stand_where_they_are_declared() -> None:
    assert racks_of(node_names(5), 3) == FIVE
    assert racks_of(("a", "b", "c"), ("left", "right", "left", "spare")) == {"left": ("a", "c"), "right": ("b",)}


@pytest.mark.parametrize("given", [0, 6])
def test_a_rack_without_a_node_is_refused(given: int) -> None:
    with pytest.raises(UsageError, match=f"5 nodes stand in 1 to 5 racks, not in {given}"):
        racks_of(node_names(5), given)


def test_a_node_without_a_rack_is_refused() -> None:
    with pytest.raises(UsageError, match="3 nodes need a rack each, but only 2"):
        racks_of(node_names(3), ("left", "right"))


def test_nodes_that_are_taken_away_leave_their_racks_and_empty_racks_go() -> None:
    assert without_other_nodes(FIVE, node_names(2)) == {"rack-1": ("athens",), "rack-2": ("byzantium",)}


def test_a_plan_has_racks_where_they_are_asked_for_or_where_faults_strike_them() -> None:
    assert plan_of(nodes=5, faults=("racks",)).racks == FIVE
    assert plan_of(nodes=2, faults=("kill", "data-centre")).racks == {"rack-1": ("athens",), "rack-2": ("byzantium",)}
    assert plan_of(nodes=5, faults=("kill",), racks=3).racks == FIVE
    plain = plan_of(nodes=5, faults=("kill",))
    assert plain.racks is msgspec.UNSET and b"racks" not in msgspec.json.encode(plain)
    assert replace(plan_of(nodes=5, faults=("kill",), racks=3), racks=msgspec.UNSET).digest() == plain.digest()


def test_the_command_that_repeats_a_run_names_its_racks() -> None:
    command = run_command(RunRequest(system="consistent-core", faults=("racks",), nodes=5, racks=2))
    assert "--nodes 5 --racks 2" in command


def test_universes_draw_the_number_of_racks_for_faults_of_racks_alone() -> None:
    drawn = [plan_of(faults=("racks",), universe="drawn", seed=seed) for seed in range(12)]
    assert all(plan.universe and int(plan.universe["racks"]) == len(plan.racks or ()) for plan in drawn)
    assert len({len(plan.racks or ()) for plan in drawn}) >= 3
    held = [plan_of(faults=("racks",), universe="drawn", seed=seed, racks=2) for seed in range(4)]
    assert all(len(plan.racks or ()) == 2 and "racks" not in (plan.universe or {}) for plan in held)
    other = plan_of(faults=("kill",), universe="drawn", seed=1)
    assert other.racks is msgspec.UNSET and "racks" not in (other.universe or {})


def test_a_plan_with_fewer_nodes_keeps_racks_of_those_that_are_left() -> None:
    plan = replace(plan_of(nodes=5, faults=("racks",)), faults=())
    smaller = fewer_nodes_and_workers(plan, load_system("consistent-core"), lambda _: True)
    assert smaller.racks == without_other_nodes(FIVE, smaller.nodes)
    assert len(smaller.nodes) < 5


def test_a_change_that_brings_the_first_fault_of_racks_brings_racks() -> None:
    request = RunRequest(system="consistent-core", nodes=5, operations=2, faults=("kill", "racks"))
    parts = resolve(request)
    plan = replace(make_plan(request, parts), racks=msgspec.UNSET, universe={"faults": "kill"})
    assert changed_plan(plan, parts).racks is msgspec.UNSET
    assert changed_plan(replace(plan, universe={"faults": "kill+racks"}), parts).racks == FIVE


def test_a_stored_plan_must_have_each_node_in_one_rack() -> None:
    request = RunRequest(system="consistent-core", nodes=5, operations=2, faults=("racks",))
    parts = resolve(request)
    plan = make_plan(request, parts)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == fit_plan(plan, parts, "run.json")
    for wrong in ({"rack-1": ("athens",)}, FIVE | {"rack-4": ("athens",)}, FIVE | {"rack-3": ("sparta",)}):
        with pytest.raises(UsageError, match="racks does not name each of the nodes once"):
            fit_plan(replace(plan, racks=wrong), parts, "run.json")


def test_a_fault_of_racks_in_a_plan_without_any_is_refused_before_the_run() -> None:
    request = RunRequest(system="consistent-core", operations=2, faults=("kill",))
    parts = resolve(request)
    plan = replace(make_plan(request, parts), faults=(PlannedFault("kill", 700_000, 50_000, "rack"),))
    with pytest.raises(UsageError, match="aims kill at rack, but it has no racks") as refused:
        run_simulated(plan, parts)
    assert "--racks 3" in refused.value.next_step


@pytest.mark.parametrize("system", ["gossip", "quorum-kv"])
def test_fifty_nodes_run_in_ten_racks_that_fail_as_one(system: str) -> None:
    workload = load_system(system).usual_workload
    request = RunRequest(system=system, workload=workload, faults=("racks",), nodes=50, racks=10, operations=20, seed=2)
    parts = resolve(request)
    plan = make_plan(request, parts)
    assert {len(rack) for rack in (plan.racks or {}).values()} == {5}
    kill = PlannedFault("kill", 700_000, 100_000, "rack")
    record = run_simulated(replace(plan, faults=(kill,)), parts)
    assert record.errors == []
    assert set(record.faults[0].nodes) in [set(rack) for rack in (plan.racks or {}).values()]
