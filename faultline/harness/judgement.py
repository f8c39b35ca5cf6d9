"""The judgement of one run: the contents of `verdict.json`."""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.exposure import Exposure
from faultline.harness.history import History
from faultline.harness.sensitivity import Sensitivity
from faultline.harness.verdict import CheckResult, Finding, Verdict

__all__ = ["SCHEMA", "Judgement", "visible_us"]

SCHEMA = 1


class Judgement(msgspec.Struct, kw_only=True):
    """A run, judged. Written as `verdict.json`; every field is plain data with a stable meaning.

    `cell` is the campaign cell without the seed, `sentence` the first line of every report, `findings` most important
    first. `checks_due` names the checks that had to run, `checks` has the result of each that ran. `warnings` are the
    signs that the run tested too little. `counts` counts operations by outcome, `overlap` those in flight during each
    kind of fault. `exposure` is the ledger of the run, `sensitivity` the share of inserted anomalies that a pass would
    have shown, `options_changed` the options that differ from the system's defaults, `universe_calm` the calm value of
    each value that was drawn, `replay` the command that repeats the run. `signature` groups equal
    violations, `started_at` is the moment 0 of a run of real processes, in UTC; `interrupted` is true when the run was
    stopped early. `statements` has the sentence of each invariant that was broken, and `summaries` that of each planted
    bug, where there are any."""

    schema: int = SCHEMA
    run_id: str
    cell: str
    system: str
    workload: str
    fault_set: tuple[str, ...]
    planted_bugs: tuple[str, ...] = msgspec.field(name="mutants")
    options: dict[str, str]
    seed: int
    world: str
    verdict: Verdict
    sentence: str
    options_changed: dict[str, str] = {}
    universe_calm: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    statements: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    summaries: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    host_options: dict[str, str] = {}
    signature: str = ""
    findings: list[Finding] = []
    checks_due: list[str] = []
    checks: list[CheckResult] = []
    warnings: list[str] = []
    counts: dict[str, int] = {}
    overlap: dict[str, int] = {}
    exposure: Exposure = Exposure()
    sensitivity: tuple[Sensitivity, ...] = ()
    marks: dict[str, int] = {}
    statistics: dict[str, int] = {}
    errors: list[str] = []
    replay: str = ""
    started_at: str = ""
    interrupted: bool = False
    history_sha256: str = ""
    plan_sha256: str = ""
    versions: dict[str, str] = {}
    detail: dict[str, Any] = {}


def visible_us(finding: Finding, history: History) -> int:
    """Return the time the anomaly became visible: that of the finding, else the completion of its last operation.

    Return 0 for a finding that has neither."""
    if finding.time_us or not finding.operations:
        return finding.time_us
    ends = [max(history.complete_us[row], history.invoke_us[row]) for row in finding.operations if row < len(history)]
    return max(ends, default=0)
