"""What a campaign found, as `campaign.json` holds it: the contract with reports, scripts and the command line.

Rates are shares of the *judged* runs, those that ended in a pass or a violation: a run that tested nothing, timed out in
the checker or broke in the harness says nothing about the system, and is counted apart.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from faultline.campaign.matrix import CampaignPlan, Expectation
from faultline.harness.verdict import Verdict

__all__ = ["CampaignResult", "CampaignSummary", "CellSummary", "Progress", "SignatureSummary"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign is: runs finished of all runs, how many violated and how many broke, and what it is doing."""

    done: int
    total: int
    violations: int = 0
    harness_errors: int = 0
    step: str = "runs"


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: what was asked, what came of it, and how it compares with what was expected (`standing`).

    `standing` is `as expected`, `unexpected violation`, `expected violation not seen`, `inconclusive` or
    `harness error`. `rate`, `rate_low` and `rate_high` are the share of judged runs that violated and its 95 % interval.
    """

    cell: str
    system: str
    workload: str
    faults: tuple[str, ...]
    mutants: tuple[str, ...]
    expected: Expectation
    verdict: Verdict
    standing: str
    sentence: str
    runs: int
    passed: int
    violations: int
    unknown: int
    vacuous: int
    harness_errors: int
    rate: float
    rate_low: float
    rate_high: float
    operations_ok: int
    operations_fail: int
    operations_info: int
    first_error: str = ""


class SignatureSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of violation in one cell. The smallest counterexample is the one to look at; `replay` shows it."""

    cell: str
    signature: str
    checker: str
    anomaly: str
    runs: int
    judged: int
    rate: float
    rate_low: float
    rate_high: float
    first_seed: int
    smallest_seed: int
    smallest_operations: int
    smallest_faults: tuple[str, ...]
    smallest_run_id: str
    folders_kept: int
    example: str
    sentence: str
    replay: str


class CampaignSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The whole campaign. `sentences` are its verdict in words: campaign, cells, signatures, then what to doubt."""

    schema: int = 1
    id: str
    plan: CampaignPlan
    plan_sha256: str
    verdict: Verdict
    exit_code: int
    interrupted: bool
    runs_planned: int
    runs_done: int
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    cells: tuple[CellSummary, ...]
    signatures: tuple[SignatureSummary, ...]
    versions: dict[str, str]


class CampaignResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `run_campaign` returns: where everything is, and what it came to.

    `verdict` is what is left after expectations: a violation that was expected and seen counts as a pass. `report` is
    the HTML page, None when the reports are not installed.
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
