"""The thinning of run folders: some of each kind of violation stay whole, the others keep their verdict.

Every unit keeps its first runs of each kind, because it cannot know the findings of others; the first and the smallest
of the whole campaign are known only afterwards.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from faultline.campaign.aggregate import RowsEngine
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.simulate import write_verdict
from faultline.harness.judgement import Judgement
from faultline.harness.untrusted import read_json

__all__ = ["prune"]


def prune(engine: RowsEngine, folder: CampaignFolder, kept: Container[str], *, keeps_plans: bool = False) -> None:
    """Reduce every whole run folder that is not in `kept` to its verdict, whose replay line then runs the seed anew.

    With `keeps_plans`, as in a guided campaign, each keeps its plan too.
    """
    removed = ["history.jsonl"] if keeps_plans else ["run.json", "history.jsonl"]
    whole = engine.answer("SELECT run_id, run_again FROM all_runs WHERE folder_kept ORDER BY run_id", {})
    for run_id, run_again in zip(whole["run_id"].to_pylist(), whole["run_again"].to_pylist(), strict=True):
        if run_id not in kept:
            _reduce(folder, run_id, run_again, removed)


def _reduce(folder: CampaignFolder, run_id: str, run_again: str, removed: Sequence[str]) -> None:
    path = folder.run(run_id)
    judgement = read_json(path / "verdict.json", Judgement)
    judgement.replay = run_again
    write_verdict(folder, judgement)
    for name in removed:
        (path / name).unlink(missing_ok=True)
