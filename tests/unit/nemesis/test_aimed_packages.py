"""Faults at events as packages and universes draw them: apart from all else, so that they move no other fault."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from faultline.harness.errors import UsageError
from faultline.harness.plan import ANY_NODE, EVENT_NODE, NODE_NAMES, Plan, PlannedFault
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.universe import AIMED, calm_universe, domains_of
from faultline.nemesis import PACKAGES, Package, combined
from faultline.registry import load_system, resolve

EVENTS = ("Appended", "Elected", "leader-changed")
START_US, END_US = 600_000, 4_600_000
POOL = ("leadership", "clocks", "retries")


def planned(package: Package, seed: int, nodes: int = 3) -> tuple[PlannedFault, ...]:
    return package.plan(seed=seed, nodes=NODE_NAMES[:nodes], start_us=START_US, end_us=END_US)


def timed(faults: tuple[PlannedFault, ...]) -> tuple[PlannedFault, ...]:
    return tuple(fault for fault in faults if fault.trigger is msgspec.UNSET)


def drawn(seed: int, system: Any = None, faults: tuple[str, ...] = POOL) -> Plan:
    request = RunRequest(system="consistent-core", faults=faults, operations=40, seed=seed, universe="drawn")
    parts = resolve(request)
    return make_plan(request, parts if system is None else dataclasses.replace(parts, system=system))


def core(**domains: Any) -> Any:
    system: Any = copy.copy(load_system("consistent-core"))
    system.domains = replace(system.domains, **domains)
    return system


def test_the_set_aimed_waits_for_the_events_that_it_is_given_and_plans_nothing_else() -> None:
    package = PACKAGES["aimed"].at_events(EVENTS)
    seen: set[tuple[str, str]] = set()
    for seed in range(30):
        faults = planned(package, seed)
        assert faults == planned(package, seed) and timed(faults) == ()
        assert len(faults) >= 6
        for fault in faults:
            assert fault.trigger is not msgspec.UNSET and fault.trigger.event in EVENTS
            assert fault.at_us >= START_US and fault.stop_us < END_US
            seen.add((fault.trigger.node, fault.target))
    assert {ANY_NODE, "leader", "follower"} == {place for place, _ in seen}
    assert EVENT_NODE in {target for _, target in seen}
    assert planned(PACKAGES["aimed"], 1) == ()


@pytest.mark.parametrize("name", ["leadership", "clocks", "all"])
def test_faults_at_events_move_none_of_those_at_times(name: str) -> None:
    for seed in range(20):
        both = planned(PACKAGES[name].aimed_too().at_events(EVENTS), seed)
        assert timed(both) == planned(PACKAGES[name], seed)
        assert len(both) > len(timed(both))
        assert {fault.kind for fault in both} <= set(PACKAGES[name].kinds)


def test_kinds_that_cannot_overlap_with_themselves_are_not_aimed() -> None:
    assert not PACKAGES["skew"].aimed_too().is_aimed
    kinds = {recipe.kind for recipe in PACKAGES["all"].aimed_too().aimed}
    assert kinds == {"kill", "pause", "partition"}


def test_the_set_aimed_beside_others_leaves_them_what_they_are() -> None:
    both = combined((PACKAGES["kill"], PACKAGES["aimed"]))
    assert both.is_aimed and set(both.kinds) == {"kill", "pause", "partition"}
    assert {fault.kind for fault in timed(planned(both, 2))} == {"kill"}
    assert not both.only(("kill",)).is_aimed and both.only(("aimed",)).is_aimed


def test_a_drawn_universe_with_faults_at_events_is_otherwise_the_one_without_them() -> None:
    without, aimed_seeds = core(events=()), 0
    for seed in range(24):
        plan, plain = drawn(seed), drawn(seed, without)
        universe = dict(plan.universe or {})
        is_aimed = universe.pop(AIMED, "off") == "on"
        assert (plan.faults != timed(plan.faults)) == is_aimed
        assert replace(plan, faults=timed(plan.faults), universe=universe).digest() == plain.digest()
        aimed_seeds += is_aimed
    assert 2 <= aimed_seeds <= 12


def test_the_calm_universe_has_no_faults_at_events() -> None:
    plan = next(plan for plan in map(drawn, range(40)) if AIMED in (plan.universe or {}))
    assert calm_universe(plan, load_system("consistent-core"))[AIMED] == "off"
    calm = RunRequest(system="consistent-core", faults=POOL, operations=40, seed=plan.seed)
    assert timed(make_plan(calm, resolve(calm)).faults) == make_plan(calm, resolve(calm)).faults


def test_a_universe_aims_only_with_kinds_that_its_packages_have() -> None:
    for seed in range(12):
        assert timed(drawn(seed, faults=("skew",)).faults) == drawn(seed, faults=("skew",)).faults


def test_a_system_declares_the_events_that_are_drawn() -> None:
    system = core(events=("VoteCounted",))
    triggers = [fault.trigger for seed in range(16) for fault in drawn(seed, system).faults]
    assert {each.event for each in triggers if each is not msgspec.UNSET} == {"VoteCounted"}


def test_a_declared_event_that_the_system_does_not_have_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="there is no event VoteCountd. Did you mean VoteCounted"):
        domains_of(core(events=("VoteCountd",)))


def test_a_system_that_reports_nothing_cannot_be_aimed_at() -> None:
    request = RunRequest(system="consistent-core", faults=("aimed",))
    parts = dataclasses.replace(resolve(request), system=core(events=()))
    with pytest.raises(UsageError, match="reports no event at which a fault could be aimed"):
        make_plan(request, parts)
