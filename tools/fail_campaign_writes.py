"""Fail each write, sync and rename of a campaign's results in turn, in the driver or in Spark's workers.

    python tools/fail_campaign_writes.py                 every point of two campaigns of 20 runs
    python tools/fail_campaign_writes.py --every 10      each tenth point

One campaign violates, one passes; how a call fails changes from point to point. Campaigns have the promise
of single runs (`fail_every_write`): no verdict is lost, invented or improved, in the exit code, on the disk, and in the
result of `faultline campaign conclude`. All campaigns share one Spark session, which saves its start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq
from results_faults import CONTROL, MODES, Control, install, spare_this_process

from faultline.campaign.conclude import conclude_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.pipeline import run_campaign
from faultline.campaign.spark import spark_session
from faultline.harness.errors import FaultlineError, HarnessError
from faultline.harness.judgement import Judgement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

RUNS = 20
TOOLS = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage of campaigns: the session, the folder, and the call that fails."""

    session: SparkSession
    folder: Path
    control: Control

    def run(self, plan: CampaignPlan) -> int:
        """Return the code of the campaign, with its results in a new folder."""
        shutil.rmtree(self.store, ignore_errors=True)
        try:
            return run_campaign(plan, store=self.store, session=self.session, name="failing").exit_code
        except FaultlineError as error:
            return error.exit_code

    @property
    def store(self) -> Path:
        """The store of the campaign."""
        return self.folder / "faultline-results"

    @property
    def campaign(self) -> Path:
        """The folder of the campaign."""
        return self.store / "campaigns" / "failing"

    def verdicts(self) -> dict[str, str]:
        """Return the verdicts on the disk by run. Half a file is a broken promise, and raises."""
        paths = sorted(self.campaign.glob("runs/*/verdict.json"))
        return {
            path.parent.name: msgspec.json.decode(path.read_bytes(), type=Judgement).verdict.value for path in paths
        }


def plan_of(bug: tuple[str, ...]) -> CampaignPlan:
    """Return the campaign with the planted `bug`, or none."""
    return CampaignPlan(
        name="failing",
        fault_sets=(("leadership",),),
        planted_bugs=(bug,),
        seeds=f"0..{RUNS - 1}",
        operations=80,
        seeds_per_task=5,
        keep_per_signature=1,
    )


def main() -> int:
    """Try the points, print broken promises, and print the number of points."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="try each N-th point")
    every = parser.parse_args().every
    folder = Path(tempfile.mkdtemp(prefix="faultline-campaign-writes-"))
    control = Control(folder / "control")
    control.aim(0, "none")
    os.environ[CONTROL] = str(control.folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TOOLS / "results_faults_site"), str(TOOLS)])
    spare_this_process()
    install(control)
    tried = wrong = 0
    try:
        with spark_session("local[2,4]", folder / "spark") as session:
            stage = Stage(session, folder, control)
            for bug in (("stale-read",), ()):
                for complaints in _trials(stage, plan_of(bug), every):
                    tried += 1
                    wrong += len(complaints)
                    print(*complaints, sep="\n", end="\n" if complaints else "", flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"{tried} points were failed: {wrong} broken promises")
    return 1 if wrong else 0


def _trials(stage: Stage, plan: CampaignPlan, every: int) -> Iterator[list[str]]:
    stage.control.aim(0, "none")
    answer = stage.run(plan)
    truth, calls = stage.verdicts(), stage.control.calls()
    assert len(truth) == RUNS and answer == (1 if "violation" in truth.values() else 0), (answer, truth)
    print(f"{plan.planted_bugs}: {Counter(truth.values())}, {len(calls)} calls", file=sys.stderr, flush=True)
    for number in range(1, len(calls) + 1, every):
        mode = MODES[number // every % len(MODES)]
        stage.control.aim(number, mode)
        code = stage.run(plan)
        stage.control.aim(0, "none")
        about = f"{'violating' if answer else 'passing'} campaign, call {number} of {len(calls)}, {mode}"
        yield [f"{about}: {complaint}" for complaint in _complaints(stage, code, answer, truth)]


def _complaints(stage: Stage, code: int, answer: int, truth: dict[str, str]) -> Iterator[str]:
    found = stage.verdicts()
    yield from (f"{run} says {verdict}" for run, verdict in found.items() if truth.get(run) != verdict)
    yield from _about_the_code("the campaign", code, answer, found)
    if code == 0 and found != truth:
        yield f"passes with {len(found)} of {RUNS} verdicts"
    try:
        concluded = conclude_folder(stage.campaign)
    except HarnessError as error:
        yield f"cannot be concluded: {error}"
        return
    except FaultlineError:
        if (stage.campaign / "plan.json").is_file() and found:
            yield "cannot be concluded, and has verdicts"
        return
    yield from _about_the_code("its conclusion", concluded.exit_code, answer, found)
    rows = pq.read_table(stage.campaign / "tables" / "runs.parquet")
    if dict(zip(rows["run_id"].to_pylist(), rows["verdict"].to_pylist(), strict=True)) != found:
        yield f"the table of runs has {rows.num_rows} runs, where {len(found)} verdicts are on the disk"


def _about_the_code(what: str, code: int, answer: int, found: dict[str, str]) -> Iterator[str]:
    if code == 1 and not answer:
        yield f"{what} invents a violation"
    if code != 1 and "violation" in found.values():
        yield f"{what} ends with {code}, where a violation is on the disk"
    if code == 0 and len(found) < RUNS:
        yield f"{what} passes a part of a campaign"
    if code not in (0, 1, 3, 4):
        yield f"{what} ends with {code}"


if __name__ == "__main__":
    sys.exit(main())
