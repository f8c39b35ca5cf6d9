"""One run from request to report, shared by `run` and `replay`."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from faultline.cli.output import say
from faultline.cli.sealed_outcome import Sealed, announce, limit
from faultline.harness.errors import FaultlineError
from faultline.harness.history import EventSink
from faultline.harness.incremental import incremental_checkers
from faultline.harness.judge import CHECK_LIMIT_S, judge
from faultline.harness.judgement import Judgement
from faultline.harness.minimal import keep_minimal_run
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import limit_s, run_simulated
from faultline.harness.run_record import RunRecord, WorldName
from faultline.harness.store import claim_folder, numbered, open_history, prepare_run, run_id_of, write_judgement
from faultline.harness.verdict import Verdict, merge
from faultline.registry import resolve

__all__ = [
    "FinishedRun",
    "carry_out",
    "carry_out_plan",
    "execute",
    "judge_and_report",
    "replay_line",
    "sealed",
    "shrink_and_report",
]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has been judged and reported: its folder, its judgement, and the lines for the user."""

    folder: Path
    judgement: Judgement
    lines: list[str]
    interrupted: bool


def carry_out(
    request: RunRequest, store: Path, *, shrinks: bool, hosts: str = "", announces: bool = False
) -> FinishedRun:
    """Plan, run, record, judge and report `request` in a folder of its own below `store`, on `hosts` if any.

    With `shrinks`, a violation in the simulated world is shrunk too, and its minimal run kept beside it. With
    `announces` the verdict is the command's own, and is sealed as soon as it is known.
    """
    parts = resolve(request)
    if request.stop_at_violation and not incremental_checkers(parts.checkers):
        _tell(
            f"No check of {request.workload} judges while a run goes on: --stop-at-violation has no effect on this run."
        )
    plan = make_plan(request, parts)
    if request.host_options:
        from faultline.harness.world.hosts.machines.host_options import refuse_without_effect

        refuse_without_effect(request.host_options, [parts])
    run_id = run_id_of(request, hosts)
    return _carried_out(plan, parts, run_id, request.world, store, shrinks, announces, hosts)


def carry_out_plan(plan: Plan, store: Path) -> FinishedRun:
    """Carry out `plan` in the simulated world, as `carry_out` carries out a request; shrink a violation too."""
    return _carried_out(plan, resolve(plan), run_id_of(plan), "simulated", store, shrinks=True)


def _carried_out(
    plan: Plan,
    parts: Parts,
    run_id: str,
    world: WorldName,
    store: Path,
    shrinks: bool,
    announces: bool = False,
    hosts: str = "",
) -> FinishedRun:
    folder = claim_folder(store / "runs", numbered(run_id))
    prepare_run(folder, folder.name, plan, world, hosts)
    with open_history(folder) as sink:
        record = execute(plan, parts, world, folder, sink, hosts)
    return judge_and_report(record, parts, folder.name, folder, shrinks, announces, hosts)


def execute(
    plan: Plan, parts: Parts, world: WorldName, folder: Path, sink: EventSink | None, hosts: str = ""
) -> RunRecord:
    """Carry out `plan` in `world`, on `hosts` where that is the world; messages are recorded for the diagram."""
    # Thrice: the run itself, its judgement, and the smaller runs of shrinking. The limits inside end with a verdict;
    # this one is for code that they cannot interrupt.
    limit(3 * (limit_s(plan) + CHECK_LIMIT_S) + 10 * plan.end_us / 1e6, f"the run of {plan.cell}, seed {plan.seed},")
    if world == "simulated":
        return run_simulated(plan, parts, sink=sink, record_messages=True)
    if world == "hosts":
        return _execute_on_hosts(plan, parts, folder, sink, hosts)
    from faultline.harness.world.local.world import run_local

    return run_local(plan, parts, folder=folder, sink=sink, progress=_tell)


def _execute_on_hosts(plan: Plan, parts: Parts, folder: Path, sink: EventSink | None, hosts: str) -> RunRecord:
    from faultline.harness.world.hosts.machines.host_sets import open_hosts, parse_hosts
    from faultline.harness.world.hosts.run import run_on_hosts

    specification = parse_hosts(hosts)
    _tell(f"bringing up {specification.text}")
    with contextlib.closing(open_hosts(specification)) as host_set:
        return run_on_hosts(plan, parts, host_set, folder=folder, sink=sink, progress=_tell)


def _tell(sentence: str) -> None:
    say(sentence, err=True)


def judge_and_report(
    record: RunRecord,
    parts: Parts,
    run_id: str,
    folder: Path,
    shrinks: bool,
    announces: bool = False,
    hosts: str = "",
) -> FinishedRun:
    """Judge `record`, write `verdict.json` and the HTML report, and return the result for the user.

    Errors after the verdict are reported beside it. A verdict that cannot be written makes the run a harness error,
    unless it is a violation. With `announces` it is sealed before anything is written.
    """
    from faultline.reports.terminal import run_lines

    judgement = judge(record, parts, run_id=run_id, replay=replay_line(folder, hosts), probes=True)
    if announces:
        announce(sealed(judgement, folder))
    problems: list[str] = []
    with _noted(problems, "The verdict is not kept"):
        write_judgement(folder, judgement)
    if problems:
        judgement.errors += problems
        judgement.verdict = merge([judgement.verdict, Verdict.HARNESS_ERROR])
    if shrinks and judgement.verdict is Verdict.VIOLATION and record.world == "simulated" and not record.interrupted:
        with _noted(problems, "The violation could not be shrunk"):
            shrink_and_report(folder, record.plan, judgement, parts)
            write_judgement(folder, judgement)
    lines = run_lines(record, judgement) + _one_seed_lines(judgement, parts)
    with _noted(problems, "The page of the run could not be written"):
        from faultline.reports.run_page import write_run_report

        lines.append(f"Report: {write_run_report(folder, record, judgement)}")
    return FinishedRun(
        folder, judgement, [*lines, *(f"Warning: {problem}" for problem in problems)], record.interrupted
    )


def _one_seed_lines(judgement: Judgement, parts: Parts) -> list[str]:
    """Return the next step after a run that did not find its planted bugs: one seed says nothing about them."""
    bugs = judgement.planted_bugs
    if not bugs or judgement.verdict is not Verdict.PASS:
        return []
    system = parts.system
    plan = ["--plan", system.planted_bugs[bugs[0]].campaign, "--system", system.name]
    campaign = shlex.join(["faultline", "campaign", *plan, "--planted-bug", ",".join(bugs)])
    return [f"  Next: One clean seed tells nothing about a planted bug. Its campaign has many: {campaign}"]


def sealed(judgement: Judgement, folder: Path) -> Sealed:
    """Return the record of `judgement` for the supervisor."""
    return Sealed(
        verdict=judgement.verdict.value,
        plan_sha256=judgement.plan_sha256,
        history_sha256=judgement.history_sha256,
        checks_due=tuple(judgement.checks_due),
        checks_ran=tuple(check.checker for check in judgement.checks),
        folder=str(folder),
    )


@contextlib.contextmanager
def _noted(problems: list[str], what: str) -> Iterator[None]:
    """Note an exception of the block, after `what`: the verdict is known and must not be lost."""
    try:
        yield
    except (Exception, SystemExit) as error:
        said = error.message if isinstance(error, FaultlineError) else f"{type(error).__name__}: {error}"
        problems.append(f"{what}: {said.rstrip('.')}.")


def shrink_and_report(folder: Path, plan: Plan, judgement: Judgement, parts: Parts) -> None:
    """Shrink the violation in `folder`, keep and report its minimal run, and note it in `judgement`."""
    from faultline.reports.run_page import write_run_report

    minimal, record, smallest = keep_minimal_run(folder, plan, judgement, parts, replay_line)
    write_run_report(folder / "minimal", record, smallest)
    judgement.detail["minimal"] = msgspec.to_builtins(minimal)


def replay_line(folder: Path, hosts: str = "") -> str:
    """Return the command that repeats the run in `folder`, on the same `hosts` if any."""
    return shlex.join(["faultline", "replay", str(folder), *(["--hosts", hosts] if hosts else [])])
