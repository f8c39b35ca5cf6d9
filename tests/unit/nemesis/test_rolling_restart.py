"""A rolling restart: nodes are stopped and started again in turn, never two of them at once."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from faultline.harness.plan import PlannedFault
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.nemesis import NEMESES
from faultline.registry import resolve

ROLLING = NEMESES["rolling-restart"]


def states(port: Any, duration_us: int, target: str = "all") -> tuple[Any, list[set[str]]]:
    """The injection, and the nodes that are down from tick to tick until the fault ends."""
    injection = ROLLING.start(port, PlannedFault("rolling-restart", 0, duration_us, target), 3)
    assert ROLLING.verify(port, injection) is None
    seen = [set(port.dead)]
    for count in range(1, duration_us // ROLLING.tick_us):
        ROLLING.tick(port, injection, count)
        seen.append(set(port.dead))
    ROLLING.stop(port, injection)
    return injection, seen


def test_each_node_is_down_for_half_of_its_turn_and_no_two_are_at_once(port: Any) -> None:
    injection, seen = states(port, 2_000_000)
    assert set(injection.nodes) == set(port.nodes)
    assert all(len(down) <= 1 for down in seen)
    in_turn = [node for before, down in zip([set(), *seen], seen, strict=False) for node in down - before]
    assert tuple(in_turn) == injection.nodes
    up = sum(not down for down in seen)
    assert 0.4 < up / len(seen) < 0.6
    assert port.is_healthy()


def test_a_short_time_is_not_for_all_nodes(port: Any) -> None:
    injection, seen = states(port, 130_000)
    assert len(injection.nodes) == 2
    assert set.union(*seen) == set(injection.nodes)
    assert port.is_healthy()


def test_a_rack_is_restarted_alone(port: Any) -> None:
    injection, _ = states(port, 1_000_000, "rack-2")
    assert set(injection.nodes) == {"byzantium", "ephesus"}


def test_a_node_that_another_fault_took_down_is_neither_stopped_nor_started(port: Any) -> None:
    injection = ROLLING.start(port, PlannedFault("rolling-restart", 0, 1_000_000, "all"), 3)
    first, second = injection.nodes[:2]
    port.dead.add(second)
    for count in range(1, 50):
        ROLLING.tick(port, injection, count)
        assert second in port.dead
    ROLLING.stop(port, injection)
    assert port.dead == {second} and first not in port.dead


def test_in_a_run_the_nodes_lose_their_memory_in_turn_and_the_history_names_them() -> None:
    request = RunRequest(system="consistent-core", faults=("racks",), nodes=5, operations=60)
    parts = resolve(request)
    fault = PlannedFault("rolling-restart", 700_000, 900_000, "all")
    record = run_simulated(replace(make_plan(request, parts), faults=(fault,)), parts)
    assert record.errors == []
    assert set(record.faults[0].nodes) == set(record.plan.nodes)
    assert record.marks["nodes-restarted-in-turn"] == 1
    assert any(event.f == "start-rolling-restart" for event in record.history.faults)
