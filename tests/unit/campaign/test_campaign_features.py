"""The floor under the features that the runs of a campaign enter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faultline.campaign.features import (
    RUNS_MIN,
    DeclaredFeature,
    declared_features,
    features_entered,
    features_sentences,
    features_shortfall,
)
from faultline.campaign.matrix import Cell
from faultline.harness.feature import Feature

KILL = Cell(system="store", workload="register", faults=("kill",))
QUIET = Cell(system="store", workload="register", faults=())
BROKEN = Cell(system="store", workload="register", faults=("kill",), planted_bugs=("stale-read",))


class Store:
    features = (
        Feature("leader-changed", "another leader took over", essential=True, faults=("kill",)),
        Feature("snapshot-taken", "a snapshot was written", unless={"snapshots": "off"}),
    )


def declared(*cells: Cell, **options: str) -> tuple[DeclaredFeature, ...]:
    return declared_features(cells, [Store()] * len(cells), [options] * len(cells))


def rows(**runs_of_cells: int) -> list[dict[str, Any]]:
    return [{"cell": cell, "runs": runs, "harness_errors": 0} for cell, runs in runs_of_cells.items()]


def shortfall(runs: int, reached: int, floors: Mapping[str, float] | None = None, errors: int = 0) -> str:
    marks = [{"cell": KILL.name, "mark": "leader-changed", "runs": reached}]
    cells = [{"cell": KILL.name, "runs": runs, "harness_errors": errors}]
    return features_shortfall(declared(KILL), marks, cells, floors or {})


def test_a_feature_is_due_in_the_cells_whose_faults_lead_to_it_and_that_have_no_planted_bug() -> None:
    changed, taken = declared(KILL, QUIET, BROKEN)
    assert (changed.name, changed.due_in) == ("leader-changed", (KILL.name,))
    assert (taken.name, taken.due_in) == ("snapshot-taken", ())
    assert [each.name for each in declared(KILL, snapshots="off")] == ["leader-changed"]


def test_a_campaign_of_which_no_run_entered_an_essential_feature_is_told_so_with_what_to_change() -> None:
    told = shortfall(RUNS_MIN, 0)
    assert told.startswith("0 of 1 features on which promises rest were entered, below the floor of 100%: ")
    assert f"in none of {RUNS_MIN} runs of store another leader took over (leader-changed)" in told
    assert "[floors]" in told


def test_one_run_that_entered_it_is_enough() -> None:
    assert shortfall(RUNS_MIN, 1) == ""


def test_few_runs_may_all_miss_it_and_runs_that_did_not_happen_do_not_count() -> None:
    assert shortfall(RUNS_MIN - 1, 0) == ""
    assert shortfall(RUNS_MIN, 0, errors=1) == ""


def test_a_plan_can_ask_for_less() -> None:
    assert shortfall(RUNS_MIN, 0, {"features": 0.0}) == ""


def test_a_mark_of_a_cell_that_owes_nothing_pays_no_debt() -> None:
    marks = [{"cell": QUIET.name, "mark": "leader-changed", "runs": 3}]
    cells = rows(**{KILL.name: RUNS_MIN, QUIET.name: RUNS_MIN})
    assert "leader-changed" in features_shortfall(declared(KILL, QUIET), marks, cells, {})


def test_each_system_tells_which_of_its_features_no_run_entered() -> None:
    told = list(features_sentences(features_entered(declared(KILL), {"leader-changed": 4})))
    assert told == ["Features of store: 1 of 2 entered; never snapshot-taken."]
    whole = features_entered(declared(KILL), {"leader-changed": 4, "snapshot-taken": 1})
    assert list(features_sentences(whole)) == ["Features of store: 2 of 2 entered."]
