"""Triggers: bad ones are refused with a sentence, and searches for smaller plans know them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from toy_plans import toy_plan

from faultline.harness.calmer import earlier_events
from faultline.harness.errors import UsageError
from faultline.harness.parts import refuse_what_cannot_run
from faultline.harness.plan import EVENT_NODE, Plan, PlannedFault, Trigger
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.shrink import minimize
from faultline.harness.triggers import TriggerWatch, event_names, possible_events
from faultline.harness.untrusted import DamagedInput, from_json
from faultline.harness.world.faults import SIMULATED_CAPABILITIES
from faultline.registry import load_system, resolve

CORE = load_system("consistent-core")
REQUEST = RunRequest(system="consistent-core", faults=(), operations=10)
PARTS = resolve(REQUEST)
PLAN = make_plan(REQUEST, PARTS)


def aimed(*triggers: Trigger, plan: Plan = PLAN, target: str = EVENT_NODE) -> Plan:
    faults = tuple(PlannedFault("kill", 700_000, 1_000, target, trigger=trigger) for trigger in triggers)
    return replace(plan, faults=faults)


def refused(plan: Plan, world: str = "simulated") -> UsageError:
    with pytest.raises(UsageError) as error:
        refuse_what_cannot_run(plan, PARTS, frozenset(SIMULATED_CAPABILITIES), world)
    return error.value


def test_an_unknown_event_is_refused_with_the_nearest_names() -> None:
    error = refused(aimed(Trigger("VoteCountd")))
    assert "waits for 'VoteCountd', an event that consistent-core does not have" in error.message
    assert "Did you mean VoteCounted" in error.next_step
    assert "It has " in refused(aimed(Trigger("zzz"))).next_step


def test_every_trace_event_and_every_declared_feature_is_an_event() -> None:
    names = event_names(CORE)
    assert {"VoteCounted", "EntryApplied", "leader-elected", "snapshot-installed"} <= set(names)
    for name in names:
        refuse_what_cannot_run(aimed(Trigger(name)), PARTS, frozenset(SIMULATED_CAPABILITIES), "simulated")


def test_a_feature_that_the_options_exclude_is_not_drawn() -> None:
    options = dict(PLAN.options)
    assert "commands-batched" not in possible_events(CORE, options)
    assert "commands-batched" in event_names(CORE)


def test_an_event_of_invariants_that_the_options_exclude_is_not_drawn() -> None:
    options = dict(PLAN.options)
    assert "BatchExecuted" not in possible_events(CORE, options)
    assert "NodeStarted" in possible_events(CORE, options)
    assert "BatchExecuted" in possible_events(CORE, options | {"tuning": "wire:channel"})


@pytest.mark.parametrize("world", ["local", "hosts"])
def test_a_world_that_cannot_aim_says_so_by_name(world: str) -> None:
    error = refused(aimed(Trigger("VoteCounted")), world)
    assert error.message.startswith(f"The {world} world cannot aim faults at events of nodes")
    assert "--world simulated" in error.next_step


def test_the_fault_set_aimed_is_refused_at_planning_in_a_world_that_cannot_aim() -> None:
    request = replace(REQUEST, faults=("kill", "aimed"), world="local")
    with pytest.raises(UsageError, match="The local world cannot aim faults"):
        make_plan(request, resolve(request))


def test_a_trigger_on_a_node_that_is_none_and_a_target_without_an_event_are_refused() -> None:
    assert "on 'sparta', which is no node" in refused(aimed(Trigger("VoteCounted", node="sparta"))).message
    timed = replace(PLAN, faults=(PlannedFault("kill", 1, 1, EVENT_NODE),))
    assert "has no trigger that names an event" in refused(timed).message


@pytest.mark.parametrize("trigger", [{"event": "E", "ordinal": 0}, {"event": "E", "delay_us": -1}, {"even": "E"}])
def test_a_stored_trigger_that_makes_no_sense_is_damaged_input(trigger: dict[str, Any]) -> None:
    fault = {"kind": "kill", "at_us": 0, "duration_us": 1, "trigger": trigger}
    stored = msgspec.json.encode(msgspec.to_builtins(PLAN) | {"faults": [fault]})
    with pytest.raises(DamagedInput, match="trigger"):
        from_json(stored, Plan, "run.json")


def test_each_trigger_counts_for_itself_and_strikes_once() -> None:
    struck: list[tuple[int, str]] = []
    plan = aimed(Trigger("A", 2), Trigger("A", 2, "athens"), Trigger("B", 1, "leader"), Trigger("A", 9))
    watch = TriggerWatch(plan, lambda: 800_000, lambda: "cyrene", lambda *told: struck.append(told))
    for node, event in [("athens", "A"), ("byzantium", "A"), ("athens", "B"), ("athens", "A"), ("cyrene", "B")]:
        watch.seen(node, event)
    for _ in range(3):
        watch.seen("athens", "C")
    assert struck == [(0, "byzantium"), (1, "athens"), (2, "cyrene")]


def test_shrinking_takes_faults_with_triggers_out_and_aims_at_earlier_events() -> None:
    plan = aimed(Trigger("A", 7, delay_us=500), Trigger("B", 2), plan=toy_plan(3))

    def still_fails(candidate: Plan) -> bool:
        return any(
            fault.trigger is not msgspec.UNSET and fault.trigger.event == "A" and fault.trigger.ordinal >= 3
            for fault in candidate.faults
        )

    kept = minimize(plan.faults, lambda faults: still_fails(replace(plan, faults=faults)))
    assert [fault.trigger for fault in kept] == [Trigger("A", 7, delay_us=500)]
    smaller = earlier_events(replace(plan, faults=kept), still_fails)
    assert [fault.trigger for fault in smaller.faults] == [Trigger("A", 3)]


def test_a_delay_that_the_violation_needs_is_kept() -> None:
    plan = aimed(Trigger("A", 1, delay_us=500), plan=toy_plan(3))

    def still_fails(candidate: Plan) -> bool:
        (fault,) = candidate.faults
        return fault.trigger is not msgspec.UNSET and fault.trigger.delay_us == 500

    assert earlier_events(plan, still_fails) == plan
