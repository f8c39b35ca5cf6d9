"""The fault sets of racks and of a data centre: what they plan, and at which rates."""

from __future__ import annotations

from collections import Counter

import pytest

from faultline.harness.plan import NODE_NAMES, PlannedFault, node_names
from faultline.nemesis import PACKAGES, Package, Recipe, combined

START_US, END_US = 0, 4_000_000
DATA_CENTRE = PACKAGES["data-centre"]


def planned(package: Package, seed: int, nodes: tuple[str, ...] = NODE_NAMES[:5]) -> tuple[PlannedFault, ...]:
    return package.plan(seed=seed, nodes=nodes, start_us=START_US, end_us=END_US)


def cause(fault: PlannedFault) -> tuple[str, str]:
    return fault.kind, fault.argument.get("shape", fault.target)


def causes(package: Package, nodes: tuple[str, ...] = NODE_NAMES[:5], seeds: int = 600) -> Counter[tuple[str, str]]:
    return Counter(cause(fault) for seed in range(seeds) for fault in planned(package, seed, nodes))


def test_racks_are_killed_cut_off_lossy_and_restarted_in_turn() -> None:
    found = causes(PACKAGES["racks"], seeds=60)
    assert set(found) == {
        ("kill", "rack"), ("partition", "rack-alone"), ("partition", "between-racks"), ("packet-loss", "rack"),
        ("rolling-restart", "all"), ("rolling-restart", "rack"),
    }  # fmt: skip
    losses = [fault for seed in range(60) for fault in planned(PACKAGES["racks"], seed) if fault.kind == "packet-loss"]
    assert {fault.argument["loss"] for fault in losses} == {0.5}


@pytest.mark.rows("SYS-R8")
def test_the_mix_of_a_data_centre_has_the_rates_of_its_first_year() -> None:
    found = causes(DATA_CENTRE, node_names(45), seeds=1_500)
    racks = DATA_CENTRE.in_racks(15)
    scaled = causes(racks, node_names(45), seeds=1_500)
    # Of 1,800 machines in 45 racks 1,000 fail in a year, so 25 of 45 do; of the racks in 15 a third of 20.
    per_machine, per_rack = scaled["power-off", "one"] / 25, scaled["power-off", "rack"] / (20 / 3)
    assert 0.7 < per_machine / per_rack < 1.4
    assert scaled["power-off", "rack"] > 2.5 * found["power-off", "rack"]
    assert scaled["power-off", "rack"] > 2 * scaled["packet-loss", "rack"] > 0
    kinds = {kind for kind, _ in scaled}
    assert kinds == {"power-off", "kill", "rolling-restart", "partition", "packet-loss", "disk-read-only", "fsync-fail",
                     "disk-stall", "pause"}  # fmt: skip
    assert {target for kind, target in scaled if kind == "power-off"} == {"one", "rack", "half-the-racks", "majority"}
    assert {shape for kind, shape in scaled if kind == "partition"} == {"random-links", "between-racks"}


def test_no_seed_leaves_a_frequent_fault_of_the_data_centre_out() -> None:
    long = [DATA_CENTRE.plan(seed=seed, nodes=NODE_NAMES[:5], start_us=0, end_us=600_000_000) for seed in range(8)]
    assert all({"power-off", "disk-read-only", "fsync-fail", "disk-stall", "pause"} <= {f.kind for f in faults}
               for faults in long)  # fmt: skip


def test_a_fault_without_a_rate_beside_them_is_as_likely_as_they_are_on_average() -> None:
    rated = Package(
        "rated", "", tuple(Recipe(kind, per_year=1, rate_of="node") for kind in ("pause", "freeze", "kill"))
    )
    both = combined((rated, Package("plain", "", (Recipe("clock-step"),))))
    found = Counter(fault.kind for seed in range(600) for fault in planned(both, seed))
    # In half of the seeds a recipe without a rate is left out, as always; in the other half it is one of four.
    assert 0.8 < found["pause"] / found["freeze"] < 1.25
    assert 0.3 < found["clock-step"] / found["pause"] < 1.0


def test_faults_of_racks_need_racks_and_the_others_do_not() -> None:
    assert {name for name, package in PACKAGES.items() if package.strikes_racks} == {"racks", "data-centre"}
    assert combined((PACKAGES["kill"], PACKAGES["racks"])).strikes_racks
    alone = PACKAGES["racks"].in_racks(1)
    assert {"rack-alone", "between-racks"}.isdisjoint(shape for _, shape in causes(alone, seeds=40))
