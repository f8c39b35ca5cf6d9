"""The kinds and times of the faults that each package plans."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from faultline.harness.plan import FAULT_TARGETS, NODE_NAMES, PlannedFault
from faultline.harness.world.faults import CAPABILITIES
from faultline.nemesis import NEMESES, PACKAGES, combined
from faultline.nemesis.partition import SHAPES

SEEDS = range(60)
START_US, END_US = 600_000, 4_600_000
SLOW = ["fail-over", "followers"]
DENSE = ("restarts", "power-cycles", "corruption", "lost-writes", "lying-fsync")
TIMED = [name for name in PACKAGES if name != "aimed"]
"""The sets whose faults fall at times; those at events are in test_aimed_packages.py."""
STEADY = [name for name in TIMED if name not in (*DENSE, *SLOW)]
FAMILY = {
    "partition": "links", "kill": "processes", "pause": "processes", "clock-step": "clocks", "clock-strobe": "clocks",
    "clock-drift": "clocks", "connection-kill": "connections", "connection-reset": "connections",
    "rolling-restart": "processes", "power-off": "processes", "disk-read-only": "processes", "disk-stall": "processes",
    "fsync-fail": "processes",
    "disk-corrupt": "data", "disk-lost-write": "data", "disk-misdirect": "data", "disk-lying-fsync": "data",
}  # fmt: skip


def plan(name: str, seed: int, *, nodes: int = 3, start_us: int = START_US, end_us: int = END_US) -> list[PlannedFault]:
    return list(PACKAGES[name].plan(seed=seed, nodes=NODE_NAMES[:nodes], start_us=start_us, end_us=end_us))


def test_the_packages_are_there_under_their_names() -> None:
    families = ["partition", "kill", "pause", "clock", "packet"]
    compounds = ["leadership", "durability", "clocks", "skew", "gentle-drift", "fast-node", "runaway-clocks"]
    compounds += ["retries", "restarts", "all"]
    elsewhere = ["loss", "wire", "connections", "link-down", "freeze", "squeeze", "steps", "power", "blackout"]
    elsewhere += ["power-cycles", "disk", "fsync", "corruption", "lost-writes", "lying-fsync", "aimed"]
    elsewhere += ["racks", "data-centre"]
    assert list(PACKAGES) == [*families, *compounds, *elsewhere, *SLOW]
    assert all(package.name == name and package.summary for name, package in PACKAGES.items())
    everywhere = {kind for kind, nemesis in NEMESES.items() if nemesis.needs <= set(CAPABILITIES)}
    assert set(PACKAGES["all"].kinds) | {"rolling-restart"} == everywhere < set(NEMESES)
    assert {kind for package in PACKAGES.values() for kind in package.kinds} == set(NEMESES)


@pytest.mark.parametrize("name", TIMED)
def test_a_plan_is_a_function_of_its_arguments(name: str) -> None:
    assert plan(name, 3) == plan(name, 3)
    assert len({str(plan(name, seed)) for seed in SEEDS}) > (40 if name in SLOW else 50)


def test_a_store_is_never_spared_the_fault_that_its_set_is_made_for() -> None:
    durability = PACKAGES["durability"].paced(3_000_000)
    for seed in range(200):
        targets = [
            fault.target for fault in durability.plan(seed=seed, nodes=NODE_NAMES[:3], start_us=0, end_us=30_000_000)
        ]
        assert targets[0] == "all" and targets.count("all") >= 2, f"seed {seed} kills {targets}"


@pytest.mark.parametrize("name", TIMED)
def test_faults_lie_within_the_run_in_order_of_time(name: str) -> None:
    for seed in SEEDS:
        faults = plan(name, seed)
        assert faults
        assert all(fault.at_us >= START_US and fault.stop_us < END_US for fault in faults)
        assert all(fault.duration_us >= 20_000 for fault in faults)
        assert all(one.at_us <= other.at_us for one, other in pairwise(faults))


@pytest.mark.parametrize("name", TIMED)
def test_faults_that_act_on_the_same_never_overlap(name: str) -> None:
    for seed in SEEDS:
        until_us: dict[str, int] = {}
        for fault in plan(name, seed):
            family = FAMILY.get(fault.kind, "quality")
            assert fault.at_us > until_us.get(family, -1)
            until_us[family] = fault.stop_us


@pytest.mark.parametrize("name", TIMED)
def test_every_fault_can_be_carried_out(name: str) -> None:
    for seed, nodes in product(SEEDS, (1, 2, 3, 5)):
        for fault in plan(name, seed, nodes=nodes):
            assert fault.kind in PACKAGES[name].kinds
            assert fault.target in (*FAULT_TARGETS, *NODE_NAMES[:nodes])
            assert fault.argument.get("shape", "one") in SHAPES
            assert nodes > 1 or not fault.kind.startswith(("partition", "packet", "connection"))


@pytest.mark.parametrize("name", ["all", "leadership", "clocks"])
def test_seeds_use_different_subsets_of_the_kinds(name: str) -> None:
    subsets = {frozenset(fault.kind for fault in plan(name, seed)) for seed in SEEDS}
    assert len(subsets) > 4
    assert frozenset().union(*subsets) == set(PACKAGES[name].kinds)


@pytest.mark.parametrize("name", STEADY)
def test_about_one_fault_falls_in_each_period(name: str) -> None:
    mean = sum(len(plan(name, seed)) for seed in SEEDS) / len(SEEDS)
    assert 3.5 < mean < 9


@pytest.mark.parametrize("name", ["partition", "leadership", "pause", "clocks"])
def test_often_enough_a_fault_outlasts_an_election(name: str) -> None:
    durations = [fault.duration_us for seed in SEEDS for fault in plan(name, seed)]
    long = sum(duration_us > 500_000 for duration_us in durations)
    assert 0.3 < long / len(durations) < 0.9


def test_durability_kills_shortly_and_again_and_again() -> None:
    faults = [plan("durability", seed) for seed in SEEDS]
    assert sum(map(len, faults)) / len(faults) > 6
    durations = sorted(fault.duration_us for planned in faults for fault in planned)
    assert durations[len(durations) // 2] < 250_000


def test_restarts_kills_for_moments_that_late_messages_outlive() -> None:
    faults = [fault for seed in SEEDS for fault in plan("restarts", seed)]
    kills = [fault for fault in faults if fault.kind == "kill"]
    delays = [fault for fault in faults if fault.kind == "packet-delay"]
    assert len(kills) / len(SEEDS) > 6
    longest_us = max(fault.duration_us for fault in kills)
    assert longest_us < 100_000 <= min(fault.argument["delay_us"] for fault in delays)
    both = sum({"kill", "packet-delay"} <= {fault.kind for fault in plan("restarts", seed)} for seed in SEEDS)
    assert both > len(SEEDS) / 3


@pytest.mark.parametrize(("name", "target"), [("fail-over", "leader"), ("followers", "last-follower")])
def test_cuts_that_stores_must_notice_are_few_and_take_seconds(name: str, target: str) -> None:
    faults = [plan(name, seed, start_us=0, end_us=15_000_000) for seed in SEEDS]
    assert {(fault.kind, fault.target) for planned in faults for fault in planned} == {("partition", target)}
    assert 1.5 < sum(map(len, faults)) / len(faults) < 4
    durations = sorted(fault.duration_us for planned in faults for fault in planned)
    assert 2_000_000 < durations[len(durations) // 2] < 4_000_000


@pytest.mark.parametrize("name", STEADY)
def test_a_real_minute_has_a_fault_every_few_seconds_for_a_second_or_three(name: str) -> None:
    faults = [plan(name, seed, start_us=0, end_us=60_000_000) for seed in SEEDS]
    assert 9 < sum(map(len, faults)) / len(faults) < 24
    durations = [fault.duration_us for planned in faults for fault in planned]
    assert max(durations) < 5_000_000
    assert 600_000 < sorted(durations)[len(durations) // 2] < 3_000_000


def test_some_time_is_free_of_faults() -> None:
    for name in TIMED:
        quiet_us = 0
        for seed in SEEDS:
            until_us = START_US
            for fault in plan(name, seed):
                quiet_us += max(0, fault.at_us - until_us)
                until_us = max(until_us, fault.stop_us)
        assert quiet_us > 0.15 * len(SEEDS) * (END_US - START_US)


@pytest.mark.parametrize("length_us", [0, 15_000, 100_000, 700_000])
def test_short_runs_have_a_fault_if_there_is_room_for_one(length_us: int) -> None:
    for name, seed in product(TIMED, SEEDS):
        faults = plan(name, seed, end_us=START_US + length_us)
        assert bool(faults) == (length_us > 50_000)
        assert all(fault.stop_us < START_US + length_us for fault in faults)


def test_packages_combined_do_not_quarrel_either() -> None:
    both = combined(PACKAGES[name] for name in ("partition", "kill", "leadership"))
    assert both.name == "partition+kill+leadership"
    for seed in SEEDS:
        until_us: dict[str, int] = {}
        for fault in both.plan(seed=seed, nodes=NODE_NAMES[:3], start_us=START_US, end_us=END_US):
            assert fault.at_us > until_us.get(FAMILY[fault.kind], -1)
            until_us[FAMILY[fault.kind]] = fault.stop_us


@pytest.mark.parametrize("other", ["partition", "packet", "connections", "kill"])
def test_nothing_that_a_link_must_be_up_for_falls_while_one_is_down(other: str) -> None:
    both = combined(PACKAGES[name] for name in ("link-down", other))
    together = 0
    for seed in SEEDS:
        faults = both.plan(seed=seed, nodes=NODE_NAMES[:3], start_us=START_US, end_us=END_US)
        down = [fault for fault in faults if fault.kind == "link-down"]
        others = [fault for fault in faults if fault.kind != "link-down"]
        together += bool(down and others)
        assert not any(one.at_us <= fault.stop_us and fault.at_us <= one.stop_us for one in down for fault in others)
    assert together > len(SEEDS) / 4
