"""Plans as people write them: shipped ones, TOML files, flags; and what is said of a plan that cannot be used."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import load_plan, parse_plan, plan_from_flags, shipped_plans
from faultline.harness.errors import UsageError
from faultline.harness.planning import make_plan
from faultline.registry import load_system, load_workload, resolve, stores, systems


def test_the_campaigns_that_planted_bugs_name_are_shipped() -> None:
    assert set(shipped_plans()) >= {"leadership", "durability", "clocks", "retries", "default", "demo"}


@pytest.mark.parametrize("name", shipped_plans())
def test_every_shipped_plan_can_be_used_and_bears_the_name_of_its_file(name: str) -> None:
    plan = load_plan(name)
    assert plan.name == name
    assert plan.summary
    assert plan.cells()


def test_the_clocks_campaign_reads_under_a_lease() -> None:
    assert load_plan("clocks").options == {"read_mode": "leader-lease"}


def test_the_demo_expects_violations_of_planted_bugs_only() -> None:
    cells = load_plan("demo").cells()
    assert all("stale-read" in cell.expected for cell in cells if cell.planted_bugs)
    assert {cell.expected for cell in cells if not cell.planted_bugs} == {()}
    assert len({cell.planted_bugs for cell in cells if cell.planted_bugs}) >= 3


def test_a_plan_file_is_read_with_all_its_values(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nfault_sets = [["kill", "pause"], []]\nseeds = "5..9"\n[options]\nread_mode = "log"\n'
    )
    plan = load_plan(str(file))
    assert (plan.name, plan.fault_sets, plan.seed_range()) == ("mine", (("kill", "pause"), ()), range(5, 10))
    assert plan.options == {"read_mode": "log"}


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"mine.toml: unknown key operatons\. Did you mean operations\?"):
        parse_plan("operatons = 5", "mine.toml")


def test_planted_bugs_are_taken_under_their_former_name_but_not_under_both() -> None:
    former, now = "mutants = [['stale-read']]", "planted_bugs = [['stale-read']]"
    assert parse_plan(former, "mine.toml") == parse_plan(now, "mine.toml")
    with pytest.raises(
        UsageError, match=r"mine.toml: planted_bugs and mutants are two names of one key\. Leave mutants"
    ):
        parse_plan(f"{former}\n{now}", "mine.toml")


def test_a_value_of_the_wrong_type_is_refused_with_its_key_and_the_cause() -> None:
    with pytest.raises(UsageError, match=r"mine.toml: key nodes: Expected `int`, got `str`"):
        parse_plan('nodes = "three"', "mine.toml")


def test_a_wrong_value_deep_inside_is_named_by_its_path() -> None:
    with pytest.raises(UsageError, match=r"key expected\[...\]: Expected `str \| array`, got `int`"):
        parse_plan('[expected]\n"*" = 5', "mine.toml")


def test_any_violation_cannot_be_expected_and_what_to_write_instead_is_said() -> None:
    with pytest.raises(UsageError, match=r"mine.toml: key expected: '\*' cannot be 'violation': any .* pass") as raised:
        parse_plan('[expected]\n"*" = "violation"', "mine.toml")
    assert '["stale-read"]' in raised.value.next_step
    assert "signatures" in raised.value.next_step
    with pytest.raises(UsageError, match="campaign campaign: key expected"):
        CampaignPlan(expected={"*": "violation"}).cells()


def test_an_anomaly_that_stands_alone_is_refused_with_the_list_to_write() -> None:
    with pytest.raises(UsageError) as raised:
        parse_plan('[expected]\n"*" = "lost-update"', "mine.toml")
    assert '["lost-update"]' in raised.value.next_step


@pytest.mark.parametrize("name", ["*", "stale-*", "linearizability/*", "LDR-I?", "[a-z]", ""])
def test_wildcards_over_anomalies_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not the name of an anomaly"):
        parse_plan(f'[expected]\n"*" = ["stale-read", "{name}"]', "mine.toml")


def test_a_file_that_is_not_toml_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"mine.toml, line 2, .*not valid TOML"):
        parse_plan('name = "x"\nseeds = = 3', "mine.toml")


@pytest.mark.parametrize("line", ["systems = []", "nodes = 0", "seeds_per_task = 0", "keep_per_signature = -1"])
def test_a_plan_of_nothing_is_refused_with_its_key(line: str) -> None:
    with pytest.raises(UsageError, match=f"key {line.split()[0]}"):
        parse_plan(line, "mine.toml")


def test_a_name_that_is_neither_shipped_nor_a_file_is_refused_with_the_nearest_plan() -> None:
    with pytest.raises(UsageError, match=r"Did you mean leadership\?"):
        load_plan("leadrship")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="noise.toml, line 1: it is not text in UTF-8"):
        load_plan(str(tmp_path / "noise.toml"))


def test_flags_replace_the_values_of_the_plan_and_leave_the_rest() -> None:
    plan = plan_from_flags(plan="leadership", seeds="1..2", nodes=5, workers=None, options={"read_mode": "log"})
    assert (plan.fault_sets, plan.seeds, plan.nodes, plan.workers) == ((("leadership",),), "1..2", 5, 5)
    assert plan.options == {"read_mode": "log"}


def test_a_bug_switched_on_by_a_flag_is_not_expected() -> None:
    plan = plan_from_flags(systems=["consistent-core"], planted_bugs=[("stale-read",)], seeds="0..499")
    assert {cell.planted_bugs for cell in plan.cells()} == {("stale-read",)}
    assert {cell.expected for cell in plan.cells()} == {()}


def test_wrong_seeds_in_flags_are_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="not a range of seeds"):
        plan_from_flags(seeds="a lot")


@pytest.mark.parametrize("system", sorted(systems()))
def test_a_system_named_alone_brings_a_workload_and_nodes_with_which_it_can_be_run(system: str) -> None:
    plan = plan_from_flags(systems=[system])
    for cell in plan.cells():
        request = plan.request(cell, 0)
        make_plan(request, resolve(request))


def test_systems_without_a_common_workload_are_refused_with_the_plans_that_are_shipped_for_them() -> None:
    with pytest.raises(UsageError, match="metadata of gossip, membership of emergent-leader") as refused:
        plan_from_flags(systems=["gossip", "emergent-leader"], universe="calm")
    assert "--plan gossip-seeds" in refused.value.next_step and "--workload" in refused.value.next_step


def test_a_system_named_alone_is_tested_in_drawn_universes_with_all_its_workloads_and_fault_sets() -> None:
    plan = plan_from_flags(systems=["transactional-kv"])
    assert plan.universe == "drawn"
    assert plan.workloads[0] == "txn-append" and {"bank", "write-skew", "long-fork"} <= set(plan.workloads)
    of_disks = ("power-cycles", "disk", "fsync")
    assert plan.fault_sets == (("leadership", "durability", "clocks", "skew", "retries", "restarts", "all", *of_disks),)
    assert plan_from_flags(systems=["transactional-kv"], universe="calm").workloads == ("txn-append",)


def test_fault_sets_beyond_the_promise_are_no_part_of_a_default_campaign() -> None:
    cells = {cell.workload: cell.faults for cell in plan_from_flags(systems=["timestamped-kv"]).cells()}
    assert "clocks" in cells["causal-pairs"]
    assert "clocks" not in cells["read-write"] and "skew" in cells["read-write"]


def test_systems_named_together_each_bring_their_own_workloads() -> None:
    plan = plan_from_flags(systems=["gossip", "emergent-leader"], planted_bugs=[(), ("lost-vote",)])
    assert {(cell.system, cell.workload) for cell in plan.cells()} == {
        ("gossip", "metadata"),
        ("emergent-leader", "membership"),
    }
    assert {cell.planted_bugs for cell in plan.cells()} == {(), ("lost-vote",)}


@pytest.mark.parametrize("store", sorted(stores()))
def test_a_store_named_alone_brings_a_workload_that_it_serves(store: str) -> None:
    plan = plan_from_flags(systems=[store], hosts="namespaces:3")
    assert plan.universe is msgspec.UNSET
    assert set(load_workload(plan.workloads[0]).functions) <= set(load_system(store).functions)


def test_numbers_that_a_plan_or_a_flag_gives_are_held_in_a_drawn_universe() -> None:
    assert parse_plan('universe = "drawn"\nnodes = 3', "mine.toml").held == ("nodes",)
    assert plan_from_flags(systems=["gossip"], workers=5).held == ("workers",)
    assert plan_from_flags(plan="coordinated", universe="drawn").held == ("nodes",)
    assert plan_from_flags(systems=["gossip"]).held == ()


def test_a_calm_universe_leaves_the_digest_of_a_plan_as_it_was() -> None:
    assert parse_plan('universe = "calm"', "mine.toml").digest() == CampaignPlan().digest()


def test_a_universe_that_a_world_cannot_make_is_refused_with_the_key() -> None:
    with pytest.raises(UsageError, match="mine.toml: key universe: the local world has a weather of its own"):
        parse_plan('universe = "drawn"\nworld = "local"', "mine.toml")
    with pytest.raises(UsageError, match="mine.toml: key held: 'seed' is not drawn"):
        parse_plan('universe = "drawn"\nheld = ["seed"]', "mine.toml")
