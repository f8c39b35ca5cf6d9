"""Runs of shipped campaigns, one seed of each cell after the other, with planted bugs or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest

from faultline.campaign.planfile import load_plan
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.system import PlantedBug
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

__all__ = ["assert_caught", "judged", "requests", "sentences_of_failures"]


def requests(campaign: str, seeds: int, planted_bugs: tuple[str, ...] = (), **options: str) -> Iterator[RunRequest]:
    """The runs of `campaign`, seed by seed, in each of its cells without bugs; with these bugs and options instead."""
    plan = load_plan(campaign)
    cells = [cell for cell in plan.cells() if not cell.planted_bugs]
    for seed in range(seeds):
        for cell in cells:
            yield msgspec.structs.replace(
                plan.request(cell, seed), planted_bugs=planted_bugs, options={**plan.options, **options}
            )


def judged(request: RunRequest) -> Judgement:
    """One run, judged."""
    parts = resolve(request)
    return judge(run_simulated(make_plan(request, parts), parts), parts, run_id=f"seed-{request.seed}")


def assert_caught(planted_bug: PlantedBug, seeds: int) -> None:
    """Some run of the bug's campaign shows it to a checker or invariant that it names."""
    seen: set[str] = set()
    for request in requests(planted_bug.campaign, seeds, (planted_bug.name,)):
        judgement = judged(request)
        if judgement.verdict is Verdict.VIOLATION:
            seen |= {name for finding in judgement.findings for name in (finding.checker, finding.anomaly)}
        if seen & set(planted_bug.caught_by):
            return
    pytest.fail(f"{planted_bug.name} was not caught in {seeds} seeds of {planted_bug.campaign}; seen: {sorted(seen)}")


def sentences_of_failures(runs: Iterable[RunRequest]) -> list[str]:
    """Return the sentences of the runs that did not pass."""
    judgements = map(judged, runs)
    return [judgement.sentence for judgement in judgements if judgement.verdict is not Verdict.PASS]
