"""Guided campaigns of a small system, carried out in this process in place of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from faultline.campaign.engine import default_engine
from faultline.campaign.guided.units import run_guided_unit
from faultline.campaign.guided.waves import GuidedUnit, carry_out_waves
from faultline.campaign.journal import Ending, Journal, write_record
from faultline.campaign.layout import CampaignFolder, create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import plan_from_flags
from faultline.campaign.simulate import SimulationJob


def guided_plan(**flags: Any) -> CampaignPlan:
    """Twelve runs in waves of four, unless `flags` say otherwise."""
    given: dict[str, Any] = {"systems": ["quorum-register"], "guided": True, "runs": 12, "wave": 4, "operations": 30}
    return plan_from_flags(**given | flags)


def guided_job(store: Path, plan: CampaignPlan, ending: Ending | None = None) -> SimulationJob:
    """A campaign whose folder has been made, with `ending` in its journal."""
    folder = create_campaign_folder(store, plan, "guided")
    write_record(folder.plan, plan)
    write_record(folder.journal, Journal(ending=ending))
    return SimulationJob(plan, folder, folder.root, default_engine("simulated"))


def here(
    job: SimulationJob, order: Callable[[Sequence[GuidedUnit]], Sequence[GuidedUnit]] = tuple
) -> Callable[[Sequence[GuidedUnit]], list[str]]:
    """The carrying out of a wave's units in this process, in the order that `order` gives them."""

    def carry_out(units: Sequence[GuidedUnit]) -> list[str]:
        for unit in order(units):
            run_guided_unit(job, unit)
        return []

    return carry_out


def carried_out(store: Path, plan: CampaignPlan) -> CampaignFolder:
    """The folder of a guided campaign whose waves have all ended."""
    job = guided_job(store, plan, Ending())
    assert carry_out_waves(job, here(job)) == []
    return job.folder
