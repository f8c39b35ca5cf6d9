"""`faultline campaign`, `campaign conclude` and `demo` as users call them, without a Spark session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faultline.campaign import pipeline
from faultline.campaign.engine import default_engine
from faultline.campaign.journal import Ending, Journal, write_record
from faultline.campaign.layout import CampaignFolder, create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.simulate import SimulationJob, run_unit

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns carry out their first unit here, in place of all of them on Spark."""

    def carry_out(job: SimulationJob, journal: Journal, _session: Any, _show: Any) -> Any:
        run_unit(job, job.plan.units()[0])
        return Journal(master=journal.master, declared=journal.declared, ending=Ending()), None

    monkeypatch.setattr(pipeline, "_carry_out", carry_out)


SMALL = ("campaign", "--seeds", "0..1", "--faults", "none", "--operations", "20")


@pytest.mark.usefixtures("in_this_process")
def test_a_name_is_used_once_and_is_what_the_campaign_is_called(faultline: Command) -> None:
    code, out, _ = faultline(*SMALL, "--name", "nightly")
    assert (code, out.splitlines()[0]) == (0, "Campaign nightly: pass. 2 runs in 1 cell: 1 × as expected.")
    assert 'name="faultline nightly"' in Path("faultline-results/campaigns/nightly/junit.xml").read_text("utf-8")
    code, _, err = faultline(*SMALL, "--name", "nightly")
    assert code == 2
    assert "has a campaign called nightly already" in err
    assert "faultline campaign conclude" in err


@pytest.mark.usefixtures("in_this_process")
def test_a_second_demo_is_kept_beside_the_first_and_says_so(faultline: Command) -> None:
    folders = []
    for _ in range(2):
        _, out, err = faultline("demo")
        folders.append(Path(out.splitlines()[-1].removeprefix("Report: ")).parent.name)
    assert folders == ["demo", "demo-2"]
    assert "faultline-results/campaigns/demo holds an earlier demo; this one is kept in demo-2 beside it." in err


def test_a_campaign_that_was_killed_is_concluded_with_the_code_of_what_it_left(faultline: Command) -> None:
    plan = CampaignPlan(name="killed", planted_bugs=(("stale-read",),), fault_sets=(("leadership",),), seeds="6..9")
    folder: CampaignFolder = create_campaign_folder(Path("faultline-results").absolute(), plan, "killed")
    write_record(folder.plan, plan)
    write_record(folder.journal, Journal())
    code, out, _ = faultline("campaign", "conclude", "faultline-results/campaigns/killed")
    assert (code, out.splitlines()[0]) == (
        3,
        "Campaign killed (not finished): unknown. 0 of 4 runs in 1 cell: 1 × inconclusive.",
    )
    job = SimulationJob(plan, folder, Path("faultline-results/campaigns/killed"), default_engine("simulated"))
    run_unit(job, plan.units()[0])
    code, out, _ = faultline("campaign", "conclude", "faultline-results/campaigns/killed", "--json")
    assert code == 1
    assert '"finished": 4' in out


def test_what_is_no_campaign_is_not_concluded(faultline: Command) -> None:
    code, _, err = faultline("campaign", "conclude", "nowhere")
    assert code == 2
    assert "nowhere is not a campaign: it has no plan.json." in err


def test_options_of_a_campaign_before_conclude_are_refused(faultline: Command) -> None:
    code, _, err = faultline("campaign", "--seeds", "0..9", "conclude", "nowhere")
    assert (code, "--seeds has no effect before conclude" in err) == (2, True)


@pytest.mark.parametrize("verb", ["run", "campaign", "demo", "show leader-followers", "evidence", "doctor"])
def test_no_verb_makes_a_folder_of_an_address(faultline: Command, verb: str) -> None:
    code, _, err = faultline(*verb.split(), "--output", "s3a://bucket/nightly")
    assert code == 2
    assert "The results folder cannot be at s3a://bucket/nightly: it is a folder." in err
    assert list(Path().iterdir()) == []
