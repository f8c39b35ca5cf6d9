"""The result of a campaign in `campaign.json`: the contract with reports, scripts and the command line.

Rates are shares of the *judged* runs, those that ended in a pass or a violation. A run that was vacuous, undecided or
broken in the harness says nothing about the system, and is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from faultline.campaign.coverage import Coverage
from faultline.campaign.expectation import Expectation
from faultline.campaign.features import FeaturesEntered
from faultline.campaign.guided.outlook import GuidedOutlook
from faultline.campaign.matrix import CampaignPlan
from faultline.harness.exposure import Exposure
from faultline.harness.sensitivity import Sensitivity
from faultline.harness.verdict import Verdict

__all__ = [
    "CampaignResult",
    "CampaignSummary",
    "CellSummary",
    "LatencySummary",
    "Progress",
    "SignatureSummary",
    "total_exposure",
]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a campaign: the runs finished, all runs, those that violated or broke, and the present step."""

    finished: int
    total: int
    violations: int = 0
    harness_errors: int = 0
    phase: str = "running"


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: its plan, its results, and their comparison with the expectations (`standing`).

    `runs` were planned, `counts` has the finished ones by verdict. `standing` is `as expected`,
    `unexpected violation`, `expected violation not seen`, `inconclusive` or `harness error`. `expected` are the
    anomalies that the plan allows here, `violations_expected` the runs with no other finding.
    `violation_rate` is the share of judged runs that violated, `wilson_low` and `wilson_high` its 95 % interval;
    `operations` by outcome; `exposure` adds up the ledgers of the runs (`Exposure.figures`), `sensitivity` the probes
    of those that passed. `failing_seeds` are the seeds of the first runs with a violation that the plan does not
    allow, `seconds` is the time of the runs, one after another.
    """

    cell: str
    system: str
    workload: str
    fault_set: tuple[str, ...]
    planted_bugs: tuple[str, ...] = msgspec.field(name="mutants")
    options: dict[str, str]
    expected: Expectation
    verdict: Verdict
    standing: str
    sentence: str
    runs: int
    counts: dict[str, int]
    violation_rate: float
    wilson_low: float
    wilson_high: float
    operations: dict[str, int]
    exposure: dict[str, int] = {}
    sensitivity: tuple[Sensitivity, ...] = ()
    violations_expected: int = 0
    first_error: str = ""
    failing_seeds: tuple[int, ...] = ()
    seconds: float = 0.0


def total_exposure(cells: Iterable[CellSummary]) -> dict[str, int]:
    """Return the figures of the ledgers of all `cells`, added up."""
    total = Counter(Exposure().figures())
    for cell in cells:
        total.update(cell.exposure)
    return dict(total)


class SignatureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of violation in one cell, seen in `count` of `judged` runs; `expected` when the plan allows it.

    A run with several anomalies counts under the first that is not allowed, if there is one.

    `run_id`, `seed`, `operations` (their number) and `fault_kinds` belong to the smallest counterexample, which is the
    one to read first; `replay` repeats it, `run_again` does so without its folder. `report` is its page relative to the
    campaign's folder, empty when it has none; `minimal` is the size of the minimal run, `minimal_report` its page.
    `fault_kinds` are meaningless unless `faults_known`, as with a run that left only its verdict.
    """

    cell: str
    signature: str
    checker: str
    anomaly: str
    count: int
    judged: int
    rate: float
    wilson_low: float
    wilson_high: float
    first_seed: int
    seed: int
    operations: int
    fault_kinds: tuple[str, ...]
    run_id: str
    folders_kept: int
    example: str
    sentence: str
    replay: str
    report: str
    run_again: str = ""
    minimal: str = ""
    minimal_report: str = ""
    expected: bool = False
    faults_known: bool = True


class LatencySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Latency quantiles of `count` operations of one cell, function and outcome; `window` is `inside` or `outside`."""

    cell: str
    f: str
    outcome: str
    window: str
    count: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int


class CampaignSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole campaign. `sentence` is its first line, `sentences` all of its verdict in words.

    `marks` counts the runs that reached each `sometimes` mark, `marks_missing` are those that no run reached; `overlap`
    counts operations in flight during each kind of fault. `features` are those of each system that runs entered,
    `coverage` has the values of drawn universes, `guided` the waves of a guided campaign and an estimate of the rest.
    `scheduled` runs were planned, `finished` of them have a verdict, and `verdicts_only` left nothing else. `troubles`
    are the errors of the campaign as a whole."""

    schema: int = 2
    id: str
    name: str
    plan: CampaignPlan
    plan_sha256: str
    verdict: Verdict
    exit_code: int
    interrupted: bool
    scheduled: int
    finished: int
    verdicts_only: int = 0
    sentence: str
    sentences: tuple[str, ...]
    troubles: tuple[str, ...] = ()
    warnings: tuple[str, ...]
    cells: tuple[CellSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    latency: tuple[LatencySummary, ...]
    marks: dict[str, int]
    marks_missing: tuple[str, ...]
    overlap: dict[str, int]
    features: tuple[FeaturesEntered, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    environment: dict[str, str]
    versions: dict[str, str]
    guided: GuidedOutlook | msgspec.UnsetType = msgspec.UNSET


class CampaignResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `run_campaign`: the places of its files, and the verdict.

    `verdict` takes expectations into account: a run with only allowed anomalies counts as a pass. `report` is
    the HTML page, None when it could not be written.
    """

    folder: Path
    verdict: Verdict
    exit_code: int
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    cells: tuple[CellSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    report: Path | None
    interrupted: bool = False
