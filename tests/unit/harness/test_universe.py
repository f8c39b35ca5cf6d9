"""Universes: what is drawn for a seed stands in its plan, what the user gave is kept, and bad domains are refused."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from typing import Any

import msgspec
import pytest

from faultline.harness.calmer import calmed, values_of
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.options import all_options
from faultline.harness.plan import Plan, Weather
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import run_simulated
from faultline.harness.shrink import same_violation, shrink
from faultline.harness.universe import AIMED, WEATHER, Domains, calm_universe, domains_of, option_values
from faultline.harness.verdict import Verdict
from faultline.registry import load_packages, load_system, resolve

POOL = ("leadership", "durability", "clocks", "retries")
PARTS = resolve(RunRequest(system="consistent-core"))


def drawn(seed: int = 1, **asked: Any) -> Plan:
    request = RunRequest(**{"system": "consistent-core", "faults": POOL, **asked}, seed=seed, universe="drawn")
    return make_plan(request, resolve(request))


def weather_text(weather: Weather, name: str) -> str:
    """Return the value of a field as a universe tells it: a share that is unset is 0, and a disk is journaled."""
    value = getattr(weather, name)
    unset = "journaled" if name == "disk" else "0.0"
    return unset if value is msgspec.UNSET else str(value)


def values_in(plan: Plan) -> dict[str, str]:
    """Return every value of `plan` by the name that a universe gives it, faults apart."""
    options = all_options(load_system(plan.system))
    tuned = dict(part.split(":") for part in plan.options.get("tuning", "").split(",") if part)
    found = {f"option.{name}": tuned.get(name, plan.options.get(name, one.default)) for name, one in options.items()}
    found |= {f"weather.{name}": weather_text(plan.weather, name) for name in WEATHER}
    return found | {"nodes": str(len(plan.nodes)), "workers": str(plan.workers)}


def test_a_universe_follows_from_the_request_alone() -> None:
    assert drawn().digest() == drawn().digest()
    assert len({drawn(seed).digest() for seed in range(8)}) == 8


def test_every_drawn_value_stands_in_its_place_in_the_plan() -> None:
    for seed in range(12):
        plan = drawn(seed)
        assert plan.universe
        listed = {name: value for name, value in plan.universe.items() if name not in ("faults", "operations", AIMED)}
        found = values_in(plan)
        assert {name: found[name] for name in listed} == listed


def test_what_is_not_drawn_is_calm() -> None:
    calm_options = {name: one.default for name, one in all_options(load_system("consistent-core")).items()}
    calm = {f"option.{name}": value for name, value in calm_options.items()}
    calm |= {f"weather.{name}": weather_text(Weather(), name) for name in WEATHER}
    for seed in range(12):
        plan = drawn(seed)
        others = {name: value for name, value in values_in(plan).items() if name not in (plan.universe or {})}
        assert others.items() <= calm.items()


def test_every_drawn_value_has_a_calm_one_and_a_drawn_option_differs_from_it() -> None:
    system = load_system("consistent-core")
    for seed in range(12):
        plan = drawn(seed)
        calm = calm_universe(plan, system)
        assert list(calm) == list(plan.universe or {})
        assert calm["faults"] == "+".join(POOL) and calm["nodes"] == "3" and calm["operations"] == "200"
        assert all(calm[name] != value for name, value in (plan.universe or {}).items() if name.startswith("option."))
        quiet = values_in(calmed(plan, system, values_of(plan, system)))
        assert all(quiet[name] == value for name, value in calm.items() if name.startswith(("option.", "weather.")))


@pytest.mark.parametrize("text", ["0", "0.0"])
def test_a_weather_drawn_as_usual_equals_the_calm_one_however_its_domain_writes_it(text: str) -> None:
    plan = msgspec.structs.replace(drawn(), universe={"weather.loss": text, "option.gone": "1"})
    assert calm_universe(plan, load_system("consistent-core")) == {"weather.loss": text}


def test_a_verdict_has_the_calm_values_of_a_drawn_universe_alone() -> None:
    plans = [drawn(operations=30, held=("operations",)), make_plan(RunRequest(system="consistent-core"), PARTS)]
    of_drawn, of_calm = [judge(run_simulated(plan, PARTS), PARTS, run_id="r") for plan in plans]
    assert of_drawn.universe_calm == calm_universe(plans[0], PARTS.system)
    assert b"universe_calm" not in msgspec.json.encode(of_calm)


def test_weather_sizes_options_and_packages_are_all_drawn_by_some_seed() -> None:
    names = {name for seed in range(30) for name in drawn(seed).universe or {}}
    assert {"nodes", "workers", "operations", "faults"} <= names
    assert {f"weather.{name}" for name in WEATHER} <= names
    assert any(name.startswith("option.") for name in names)


def test_a_seed_draws_some_of_the_packages_and_keeps_the_name_of_its_cell() -> None:
    plans = [drawn(seed) for seed in range(20)]
    assert {plan.fault_set for plan in plans} == {POOL}
    chosen = {(plan.universe or {})["faults"] for plan in plans}
    assert len(chosen) > 3 and all(set(each.split("+")) < set(POOL) for each in chosen)


def test_only_the_kinds_of_the_drawn_packages_are_planned() -> None:
    kinds = {package.name: set(package.kinds) for package in load_packages(POOL)}
    for seed in range(12):
        plan = drawn(seed)
        allowed = set().union(*(kinds[name] for name in (plan.universe or {})["faults"].split("+")))
        assert {fault.kind for fault in plan.faults} <= allowed


def test_held_numbers_and_given_options_are_kept() -> None:
    for seed in range(12):
        plan = drawn(seed, nodes=4, workers=7, held=("nodes", "workers"), options={"tuning": "in_flight_max:2"})
        assert (len(plan.nodes), plan.workers) == (4, 7)
        assert "in_flight_max:2" in plan.options["tuning"].split(",")
        assert not {"nodes", "workers", "option.in_flight_max"} & set(plan.universe or {})


def test_holding_a_number_moves_no_other_draw() -> None:
    free, held = drawn(3).universe or {}, drawn(3, held=("nodes",)).universe or {}
    assert held == {name: value for name, value in free.items() if name != "nodes"}


@pytest.mark.parametrize("field", ["stale", "reset", "disk"])
def test_a_field_that_came_later_moves_no_other_draw(field: str) -> None:
    system: Any = copy.copy(load_system("consistent-core"))
    system.domains = msgspec.structs.replace(system.domains, weather={field: ()})
    for seed in range(20):
        plan = drawn(seed)
        request = RunRequest(system="consistent-core", faults=POOL, seed=seed, universe="drawn")
        without = make_plan(request, dataclasses.replace(resolve(request), system=system)).universe or {}
        assert without == {name: value for name, value in (plan.universe or {}).items() if name != f"weather.{field}"}
    assert any(f"weather.{field}" in (drawn(seed).universe or {}) for seed in range(20))


def test_the_weather_that_the_user_gave_is_kept_even_where_it_is_the_usual_one() -> None:
    given = {"disk": "page-cache", "fsync_us_min": "150", "loss": "0"}
    for seed in range(12):
        plan, free = drawn(seed, weather=given), drawn(seed)
        assert (plan.weather.disk, plan.weather.fsync_us_min, plan.weather.loss) == ("page-cache", 150, 0)
        kept = {f"weather.{name}" for name in given}
        assert plan.universe == {name: value for name, value in (free.universe or {}).items() if name not in kept}


def test_no_universe_contradicts_the_weather_that_the_user_gave() -> None:
    seeds = range(40)
    assert any(drawn(seed).weather.fsync_us_max < 300 for seed in seeds)
    assert all(drawn(seed, weather={"fsync_us_min": 300}).weather.fsync_us_max >= 300 for seed in seeds)


def test_options_that_a_planted_bug_needs_are_kept() -> None:
    for seed in range(12):
        plan = drawn(seed, planted_bugs=("wall-clock-lease",))
        assert plan.options["read_mode"] == "leader-lease"


def test_sparse_operations_are_spread_over_the_same_span() -> None:
    plans = [drawn(seed) for seed in range(12)]
    assert len({plan.heal_us for plan in plans}) == 1
    assert len({(plan.universe or {})["operations"] for plan in plans}) > 1


def test_the_calm_universe_is_not_written_and_its_plans_are_what_they_were() -> None:
    request = RunRequest(system="consistent-core", seed=7)
    plan = make_plan(request, resolve(request))
    assert b"universe" not in msgspec.json.encode(plan)
    assert plan.weather == Weather()


def test_a_plan_with_a_universe_is_read_back_as_it_was_written() -> None:
    plan = drawn()
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


@pytest.mark.parametrize("world", ["local", "hosts"])
def test_no_universe_is_drawn_in_a_real_world(world: str) -> None:
    with pytest.raises(UsageError, match=f"The {world} world has a weather of its own"):
        drawn(world=world)


def test_a_mistake_of_the_request_is_told_as_such() -> None:
    with pytest.raises(UsageError, match="has no option called 'red_mode'"):
        drawn(options={"red_mode": "log"})
    with pytest.raises(UsageError, match="cannot serve the workload bank"):
        drawn(workload="bank")


def test_a_request_for_which_every_universe_is_refused_tells_the_last_refusal() -> None:
    with pytest.raises(UsageError, match=r"None of 1000 universes .* does not promise"):
        drawn(options={"read_mode": "stale"})


@pytest.mark.parametrize(
    ("domains", "complaint"),
    [
        (Domains(nodes=()), "nodes needs numbers from 1"),
        (Domains(options={"colour": ("red",)}), "there is no option colour"),
        (Domains(options={"read_mode": ("log", "guess")}), "read_mode cannot be guess"),
        (Domains(weather={"fog": (1,)}), "weather has no field fog"),
        (Domains(weather={"latency_us_max": (100,)}), "latency_us_max has a value below latency_us_min, 300"),
    ],
)
def test_domains_that_contradict_the_system_are_refused(domains: Domains, complaint: str) -> None:
    system: Any = load_system("consistent-core")
    system.domains = domains
    with pytest.raises(UsageError, match=complaint):
        domains_of(system)


def test_a_small_size_is_drawn_and_a_time_beyond_a_run_is_drawn_within_it() -> None:
    values = option_values(load_system("consistent-core"), Domains())
    assert min(map(int, values["snapshot_every_entries"])) < 10
    assert {"150", "300000"} <= set(values["session_timeout_ms"])
    assert values["read_mode"][0] == "read-index"


def test_sizes_are_small_together_in_half_of_the_universes() -> None:
    default = {"snapshot_every_entries": 2_000, "segment_size_bytes": 65_536, "snapshot_chunk_bytes": 65_536}
    counts = Counter[int]()
    for seed in range(60):
        drawn_values = drawn(seed).universe or {}
        small = [name for name, size in default.items() if int(drawn_values.get(f"option.{name}", size)) * 8 < size]
        counts[len(small)] += 1
    assert 15 <= counts[0] <= 35
    assert counts[2] + counts[3] > counts[1]


def test_a_size_that_is_given_or_declared_to_stay_is_never_drawn_small() -> None:
    system: Any = copy.copy(load_system("consistent-core"))
    system.domains = Domains(options={"segment_size_bytes": ()})
    for seed in range(12):
        request = RunRequest(
            system="consistent-core",
            faults=POOL,
            seed=seed,
            universe="drawn",
            options={"snapshot_every_entries": "900"},
        )
        plan = make_plan(request, dataclasses.replace(resolve(request), system=system))
        assert not {"option.segment_size_bytes", "option.snapshot_every_entries"} & set(plan.universe or {})


def test_a_violation_is_shrunk_towards_the_calm_universe() -> None:
    seed, request, parts = (
        0,
        RunRequest(system="consistent-core", planted_bugs=("stale-read",), universe="drawn"),
        PARTS,
    )
    while True:
        plan = make_plan(msgspec.structs.replace(request, seed=seed), parts)
        judgement = judge(run_simulated(plan, parts), parts, run_id="first")
        if judgement.verdict is Verdict.VIOLATION and len(plan.universe or {}) > 4:
            break
        seed += 1
    shrunk = shrink(plan, same_violation(parts, judgement.signature), system=parts.system)
    assert shrunk.complete
    assert len(shrunk.plan.universe or {}) < len(plan.universe or {})
    assert not {"operations", "faults"} & set(shrunk.plan.universe or {})
    left = values_of(shrunk.plan, parts.system)
    assert set(shrunk.plan.universe or {}) <= {*left, "nodes", "workers"}
    for name in left:
        assert not same_violation(parts, judgement.signature)(calmed(shrunk.plan, parts.system, [name]))
