"""The places of a campaign's files. Every path of the campaign folder is named here and in no other module.

STORE/campaigns/ID/
  plan.json                             the plan: written first
  journal.json                          its beginning, and once it has ended, its ending
  rows/part-N.parquet                   the rows of every finished work unit, one file each
  runs/RUN/verdict.json                 every run
  runs/RUN/{run.json,history.jsonl}     the runs that are kept whole
  histories/part-N.parquet              all histories, one file per work unit
  waves/wave-N.json                     of a guided campaign, the decisions about each wave, written before its runs
  signals/part-N.json                   likewise, the coverage of the runs of every finished work unit
  campaign.json junit.xml index.html    the result, made from the files above, at any time
  tables/NAME.parquet                   the result tables, likewise
  work/                                 progress and Spark's scratch files, removed at the end
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faultline.campaign.matrix import CampaignPlan
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.store import numbered

__all__ = ["CampaignFolder", "create_campaign_folder", "numbered_folders"]


@dataclass(frozen=True, slots=True)
class CampaignFolder:
    """The paths of one campaign. With a remote master `root` must be the same path on the driver and all executors."""

    root: Path

    @property
    def plan(self) -> Path:
        """The plan, as it was carried out."""
        return self.root / "plan.json"

    @property
    def journal(self) -> Path:
        """The record of the campaign's beginning and ending."""
        return self.root / "journal.json"

    @property
    def summary(self) -> Path:
        """The machine-readable result."""
        return self.root / "campaign.json"

    @property
    def junit(self) -> Path:
        """The result as continuous integration servers read it."""
        return self.root / "junit.xml"

    @property
    def histories(self) -> Path:
        """The folder of all histories as Parquet."""
        return self.root / "histories"

    @property
    def work(self) -> Path:
        """Scratch files of the campaign while it runs."""
        return self.root / "work"

    @property
    def rows(self) -> Path:
        """The rows that finished work units left, one file each."""
        return self.root / "rows"

    @property
    def progress(self) -> Path:
        """One byte per finished run, one file per work unit."""
        return self.work / "progress"

    @property
    def seconds(self) -> Path:
        """The times of the work units, one file each."""
        return self.work / "seconds"

    @property
    def stopped(self) -> Path:
        """The file that a task leaves when a violation ends the campaign: no further run begins."""
        return self.work / "stopped"

    @property
    def runs(self) -> Path:
        """The folder of all runs, each with its verdict."""
        return self.root / "runs"

    def run(self, run_id: str) -> Path:
        """Return the folder of one run."""
        return self.runs / run_id

    @property
    def tables(self) -> Path:
        """The folder of the result tables."""
        return self.root / "tables"

    def table(self, name: str) -> Path:
        """Return the file of one result table."""
        return self.tables / f"{name}.parquet"

    def history_part(self, number: int) -> Path:
        """Return the file with the histories of one work unit."""
        return self.histories / f"part-{number:05}.parquet"

    def rows_part(self, number: int) -> Path:
        """Return the file with the result rows of one work unit."""
        return self.rows / f"part-{number:05}.parquet"

    def rows_parts(self) -> list[Path]:
        """Return the existing files with result rows, in the order of their units."""
        return sorted(self.rows.glob("part-*.parquet"))

    @property
    def waves(self) -> Path:
        """The decisions of a guided campaign, one file per wave."""
        return self.root / "waves"

    def wave(self, number: int) -> Path:
        """Return the file with the decisions about one wave."""
        return self.waves / f"wave-{number:05}.json"

    def waves_parts(self) -> list[Path]:
        """Return the existing files of decisions, in order."""
        return sorted(self.waves.glob("wave-*.json"))

    @property
    def signals(self) -> Path:
        """The coverage of the runs of a guided campaign, one file per work unit."""
        return self.root / "signals"

    def signals_part(self, number: int) -> Path:
        """Return the file with the coverage of one work unit."""
        return self.signals / f"part-{number:05}.json"

    def progress_part(self, number: int) -> Path:
        """Return the progress file of one work unit."""
        return self.progress / f"{number:05}"

    def seconds_part(self, number: int) -> Path:
        """Return the file with the seconds that one work unit took."""
        return self.seconds / f"{number:05}"

    def make(self, *, guided: bool = False) -> None:
        """Make the folders that tasks write into."""
        made = [self.runs, self.tables, self.histories, self.rows, self.progress, self.seconds]
        made += [self.waves, self.signals] if guided else []
        for folder in made:
            folder.mkdir(parents=True, exist_ok=True)

    def clean(self) -> None:
        """Remove the scratch files."""
        shutil.rmtree(self.work, ignore_errors=True)


def create_campaign_folder(store: Path, plan: CampaignPlan, name: str | None) -> CampaignFolder:
    """Make a new folder for a campaign, called `name`, else after the plan and its digest, numbered if that is taken.

    Raise UsageError when the name is no plain file name, or taken; HarnessError when the store cannot be written.
    """
    asked = plan.name if name is None else name
    # Spark takes a colon in the name of a folder for the end of a scheme.
    if asked in ("", ".", "..") or any(character in asked for character in "/:\0"):
        raise UsageError(f"A campaign cannot be called {asked!r}.", "Use a plain name without slashes and colons.")
    paths = [store / "campaigns" / name] if name else numbered_folders(store, f"{plan.name}-{plan.digest()[:8]}")
    try:
        (store / "campaigns").mkdir(parents=True, exist_ok=True)
        made = next((path for path in paths if _is_made(path)), None)
        if made is None:
            raise UsageError(
                f"The folder {store} has a campaign called {name} already.",
                "Choose another --name or --output; "
                f"`faultline campaign conclude {store / 'campaigns' / str(name)}` summarises the existing one.",
            )
        folder = CampaignFolder(made)
        folder.make(guided=bool(plan.guided))
    except OSError as error:
        raise HarnessError(
            f"Cannot write to the store at {store}: {error.strerror or error}.",
            "Choose a folder you may write to with --output DIR, or make room on the disk.",
        ) from error
    return folder


def numbered_folders(store: Path, name: str) -> Iterator[Path]:
    """Return the folders that campaigns called `name` may get, one after another: `name`, `name-2`, `name-3` …"""
    return (store / "campaigns" / each for each in numbered(name))


def _is_made(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True
