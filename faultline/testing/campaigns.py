"""Runs and campaigns inside a test: they pass, or the test fails with the sentence, the report and the replay line.

All runs are in this process, one after the other (some fifty a second): a test is for dozens of seeds, and `faultline
campaign` for thousands. The first run that does not pass is repeated and kept, with its folder, its report and, for a
violation, its minimal counterexample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from faultline.campaign.expectation import Expectation, is_expected_violation, not_allowed
from faultline.campaign.planfile import plan_from_flags
from faultline.cli.single_run import FinishedRun, carry_out
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.results import RESULTS_FOLDER
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

__all__ = ["RunFailed", "assert_campaign_passes", "assert_run_passes"]


class RunFailed(AssertionError):
    """A run that did not pass: `run_id`, its HTML `report` and the command that repeats it, `replay`.

    All three are empty of a run that was not kept, as others like it are tried first (`finished` is None).
    """

    def __init__(self, finished: FinishedRun | None, about: str) -> None:
        super().__init__("\n".join([about, *(finished.lines if finished else [])]))
        self.run_id = finished.judgement.run_id if finished else ""
        self.report = str(finished.folder / "report.html") if finished else ""
        self.replay = finished.judgement.replay if finished else ""


def assert_run_passes(
    *,
    system: str,
    seed: int,
    workload: str = "register",
    faults: Sequence[str] = ("leadership",),
    options: Mapping[str, str] | None = None,
    planted_bugs: Sequence[str] = (),
    nodes: int = 3,
    operations: int = 200,
    output: Path = RESULTS_FOLDER,
) -> None:
    """Carry out one simulated run, as `faultline run` would do it. Raise RunFailed when it does not pass."""
    request = RunRequest(
        system=system,
        workload=workload,
        faults=tuple(faults),
        seed=seed,
        planted_bugs=tuple(planted_bugs),
        options=dict(options or {}),
        nodes=nodes,
        operations=operations,
    )
    __tracebackhide__ = True
    if _judged(request).verdict is not Verdict.PASS:
        raise RunFailed(carry_out(request, output, shrinks=True), f"{system} did not pass with seed {seed}.")


def assert_campaign_passes(
    campaign: str | None = None,
    *,
    system: str | None = None,
    workload: str | None = None,
    faults: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    planted_bugs: Sequence[str] = (),
    nodes: int | None = None,
    operations: int | None = None,
    seeds: int = 20,
    first_seed: int = 0,
    output: Path = RESULTS_FOLDER,
) -> None:
    """Run `seeds` seeds of each cell of a campaign, shipped or in a file, with the given values in place of its own.

    Without `campaign` it is one cell: `system`, `workload` and `faults`. Raise RunFailed at the first run with an
    anomaly that the plan does not allow, and where one was not decided. A vacuous run (no operation met a fault) does
    not count; when all runs are vacuous, raise RunFailed."""
    if seeds < 1:
        raise UsageError(f"A campaign of {seeds} seeds has no run.", "Ask for at least one.")
    if campaign is None and system is None:
        raise UsageError("Neither a campaign nor a system was named.", 'Write assert_campaign_passes("leadership").')
    plan = plan_from_flags(
        plan=campaign,
        systems=(system,) if system else (),
        workloads=(workload,) if workload else (),
        fault_sets=(tuple(faults),) if faults is not None else (),
        planted_bugs=(tuple(planted_bugs),) if planted_bugs or campaign is None else (),
        options=options,
        nodes=nodes,
        operations=operations,
        universe=None if campaign else "calm",
    )
    __tracebackhide__ = True
    runs = [(cell, seed) for seed in range(first_seed, first_seed + seeds) for cell in plan.cells()]
    verdicts: set[Verdict] = set()
    for number, (cell, seed) in enumerate(runs):
        request = plan.request(cell, seed)
        judgement = _judged(request)
        verdict = Verdict.PASS if is_expected_violation(judgement, cell.expected) else judgement.verdict
        verdicts.add(verdict)
        if verdict not in (Verdict.PASS, Verdict.VACUOUS):
            about = f"{plan.name}: run {number + 1} of {len(runs)} ({cell.name}, seed {seed}) did not pass."
            finished = carry_out(request, output, shrinks=True)
            raise RunFailed(finished, about + _beyond(judgement, cell.expected))
    if Verdict.PASS not in verdicts:
        raise RunFailed(carry_out(request, output, shrinks=False), f"{plan.name}: all runs are vacuous.")


def _judged(request: RunRequest) -> Judgement:
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    return judge(record, parts, run_id="")


def _beyond(judgement: Judgement, expected: Expectation) -> str:
    """Return a sentence on anomalies that the plan does not allow; '' where it allows none."""
    found = dict.fromkeys(finding.signature for finding in not_allowed(judgement.findings, expected))
    if not expected or not found:
        return ""
    return f" The plan allows {', '.join(expected)}, but not {', '.join(found)}."
