"""Guided campaigns in this process: what decides a wave, and what the folder of one keeps and tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from guided_campaigns import carried_out, guided_job, guided_plan, here

from faultline.campaign.conclude import conclude_folder
from faultline.campaign.duckdb_rows import DuckdbRows
from faultline.campaign.guided.signal import EventPairs, Signal, read_signals
from faultline.campaign.guided.waves import GuidedUnit, carry_out_waves, decided_units
from faultline.campaign.journal import Ending, read_rows, write_record
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.prune import prune
from faultline.campaign.summary import CampaignSummary
from faultline.cli.repeat import repeat
from faultline.harness.store import read_judgement, read_run, read_run_file
from faultline.harness.verdict import Verdict

pytestmark = pytest.mark.slow


def signals_of(folder: CampaignFolder) -> list[Signal]:
    return read_signals(folder.signals_part(unit.number) for unit in decided_units(folder))


def summary_of(folder: CampaignFolder) -> CampaignSummary:
    return msgspec.json.decode(folder.summary.read_bytes(), type=CampaignSummary)


def in_reverse(units: Sequence[GuidedUnit]) -> Sequence[GuidedUnit]:
    return units[::-1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> CampaignFolder:
    return carried_out(tmp_path_factory.mktemp("whole"), guided_plan())


def test_the_order_in_which_units_end_changes_nothing(whole: CampaignFolder, tmp_path: Path) -> None:
    job = guided_job(tmp_path, guided_plan(), Ending())
    carry_out_waves(job, here(job, in_reverse))
    assert signals_of(job.folder) == signals_of(whole)
    assert decided_units(job.folder) == decided_units(whole)


def test_a_shorter_campaign_is_the_beginning_of_a_longer_one(whole: CampaignFolder, tmp_path: Path) -> None:
    shorter = carried_out(tmp_path, guided_plan(runs=8))
    assert signals_of(shorter) == signals_of(whole)[:8]


def test_another_seed_makes_another_campaign(whole: CampaignFolder, tmp_path: Path) -> None:
    other = carried_out(tmp_path, guided_plan(runs=4, seed=100))
    assert [signal.seed for signal in signals_of(other)] == [100, 101, 102, 103]
    assert {signal.run_id for signal in signals_of(other)}.isdisjoint(each.run_id for each in signals_of(whole))


def test_later_waves_change_plans_of_earlier_ones_and_every_run_keeps_its_plan(whole: CampaignFolder) -> None:
    units = decided_units(whole)
    seeds = {signal.run_id: signal.seed for signal in signals_of(whole)}
    changes = [choice for unit in units for choice in unit.choices if choice.kind != "fresh"]
    assert changes
    for unit in units:
        for choice in unit.choices:
            assert not choice.parent or seeds[choice.parent] < unit.wave * 4
    plans = {run_id: read_run_file(whole.run(run_id)).plan for run_id in seeds}
    derived = [plan for plan in plans.values() if plan.chance_seed is not msgspec.UNSET]
    assert derived
    assert all(plan.seed == seeds[run_id] for run_id, plan in plans.items())


def test_all_cells_are_tried_and_all_runs_are_counted(whole: CampaignFolder) -> None:
    result = conclude_folder(whole.root)
    summary = summary_of(whole)
    assert (result.verdict, summary.finished, summary.scheduled) == (Verdict.PASS, 12, 12)
    assert sum(cell.runs for cell in summary.cells) == 12
    assert min(cell.runs for cell in summary.cells) >= 1
    assert summary.guided
    assert sum(summary.guided.kinds.values()) == 12
    (system,) = summary.guided.systems
    assert system.pairs.seen == system.growth[-1][0] > 0
    assert [pairs for pairs, _ in system.growth] == sorted(pairs for pairs, _ in system.growth)
    assert any("Good-Turing estimate" in sentence for sentence in result.sentences)


def test_a_run_of_which_only_the_plan_was_kept_is_repeated_and_compared_by_its_digest(whole: CampaignFolder) -> None:
    run_id = next(
        signal.run_id
        for signal in signals_of(whole)
        if read_run_file(whole.run(signal.run_id)).plan.chance_seed is not msgspec.UNSET
    )
    stored = read_run(whole.run(run_id))
    assert stored.history_bytes == b""
    repeated = repeat(stored, 1)
    assert (repeated.as_recorded, repeated.verdict) == (True, Verdict.PASS)
    assert stored.judgement is not None
    stored.judgement.history_sha256 = "0" * 64
    assert not repeat(stored, 1).as_recorded


def test_an_interrupted_campaign_counts_what_was_finished(tmp_path: Path) -> None:
    job = guided_job(tmp_path, guided_plan(), Ending(interrupted=True))
    carry_out = here(job)

    def interrupted(units: Sequence[GuidedUnit]) -> list[str]:
        if units[0].wave == 1:
            raise KeyboardInterrupt
        return carry_out(units)

    with pytest.raises(KeyboardInterrupt):
        carry_out_waves(job, interrupted)
    result = conclude_folder(job.folder.root)
    summary = summary_of(job.folder)
    assert (result.verdict, result.exit_code) == (Verdict.UNKNOWN, 130)
    assert (summary.finished, summary.scheduled) == (4, 12)
    assert sum(cell.runs for cell in summary.cells) == 8
    assert "The campaign was interrupted: 8 runs did not end." in summary.warnings


def test_a_damaged_decision_costs_no_finished_run(tmp_path: Path) -> None:
    folder = carried_out(tmp_path, guided_plan(runs=8))
    folder.wave(1).write_text("[{", "utf-8")
    summary = (conclude_folder(folder.root), summary_of(folder))[1]
    assert (summary.finished, summary.verdict) == (8, Verdict.PASS)


def test_violations_are_kept_whole_and_not_changed(tmp_path: Path) -> None:
    plan = guided_plan(workloads=["read-write"], planted_bugs=[["ack-before-quorum"]], runs=30, wave=10, operations=100)
    folder = carried_out(tmp_path, plan)
    result = conclude_folder(folder.root)
    assert result.verdict is Verdict.VIOLATION
    violating = {signal.run_id for signal in signals_of(folder) if signal.violation}
    assert violating
    assert violating.isdisjoint(choice.parent for unit in decided_units(folder) for choice in unit.choices)
    smallest = result.signatures[0]
    assert smallest.replay == f"faultline replay {folder.run(smallest.run_id)}"
    assert repeat(read_run(folder.run(smallest.run_id)), 1).as_recorded


def test_a_run_that_is_thinned_out_keeps_its_plan(tmp_path: Path) -> None:
    plan = guided_plan(workloads=["read-write"], planted_bugs=[["ack-before-quorum"]], runs=30, wave=10, operations=100)
    folder = carried_out(tmp_path, plan)
    rows = DuckdbRows(read_rows(folder)[0])
    run_id = next(signal.run_id for signal in signals_of(folder) if signal.violation)
    prune(rows, folder, (), keeps_plans=True)
    stored = read_run(folder.run(run_id))
    judgement = read_judgement(folder.run(run_id))
    assert stored.history_bytes == b""
    assert judgement is not None
    assert judgement.replay == f"faultline replay {folder.run(run_id)}"
    assert repeat(stored, 1).as_recorded


def test_a_run_that_breaks_the_harness_teaches_nothing_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faultline.campaign.guided import units as guided_units

    class Broken(EventPairs):
        made: ClassVar[Counter[str]] = Counter()

        def __init__(self) -> None:
            super().__init__()
            Broken.made["runs"] += 1
            if Broken.made["runs"] == 2:
                raise ZeroDivisionError("the second run")

    monkeypatch.setattr(guided_units, "EventPairs", Broken)
    folder = carried_out(tmp_path, guided_plan(runs=8))
    write_record(folder.plan, guided_plan(runs=8))
    summary = (conclude_folder(folder.root), summary_of(folder))[1]
    assert (summary.finished, summary.verdict) == (8, Verdict.HARNESS_ERROR)
    assert len(signals_of(folder)) == 7
