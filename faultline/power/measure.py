"""The measurement: run the unchanged program, draw mutants at the places that it reached, run each, and sum up.

Every mutant meets the same runs: those of the campaign that `faultline campaign --system S` has with no other word,
each cell with the first seed, then each with the next one. The unchanged program runs them first. What is accused there
is a false alarm or a bug of the system, and no mutant is measured by that run.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

import faultline
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import plan_from_flags
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.generator.chance import chance_of_text
from faultline.harness.verdict import Verdict
from faultline.power.modules import SourceModule, modules_of
from faultline.power.mutants import Mutant, mutants_of
from faultline.power.processes import carry_out
from faultline.power.result import Alarm, Measured, Place, Power, cells_of, measured, share_of
from faultline.power.worker import REFUSED, Limits, Ran, Task, request_of
from faultline.registry import resolve

__all__ = ["Asked", "Candidate", "candidates_of", "measure"]

Tell = Callable[[str], None]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a measurement. `seed` decides which mutants are drawn, and is the first seed of the campaign.

    `mutant_ids` name those that are measured, if they are not drawn.
    """

    system: str
    workloads: tuple[str, ...] = ()
    seed: int = 0
    mutants: int = 20
    runs: int = 100
    limits: Limits = Limits()
    processes: int = 1
    mutant_ids: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """A mutant, and the module that it changes."""

    mutant: Mutant
    module: SourceModule


def candidates_of(system: str) -> list[Candidate]:
    """Return all mutants of the system called `system`. Raise `UsageError` where there are none."""
    campaign = plan_from_flags(systems=[system], seeds="0")
    parts = resolve(campaign.request(campaign.cells()[0], 0))
    found = [
        Candidate(mutant, module)
        for module in modules_of(parts.system, parts.system_path)
        for mutant in mutants_of(module.text, module.name, module.system_class)
    ]
    if not found:
        raise UsageError(
            f"The system {system} has no mutant: no operator fits a place of its modules.",
            "See docs/how-to/measure-the-power.md for what the operators change.",
        )
    return found


def _named(asked: Asked, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the mutants that are asked for by name. Raise `UsageError` for an unknown one, with similar names."""
    by_id = {one.mutant.id: one for one in candidates}
    for mutant_id in asked.mutant_ids:
        if mutant_id not in by_id:
            near = difflib.get_close_matches(mutant_id, by_id, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else ""
            listing = shlex.join(["faultline", "power", "--system", asked.system, "--list"])
            raise UsageError(
                f"{asked.system} has no mutant {mutant_id!r}. The id changes when its line of code does.",
                f"{hint} `{listing}` lists them.".strip(),
            )
    return [by_id[each] for each in asked.mutant_ids]


def _drawn(asked: Asked, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return as many mutants as asked for, without replacement."""
    return sorted(candidates, key=lambda one: chance_of_text("power", asked.seed, one.mutant.id))[: asked.mutants]


def measure(asked: Asked, candidates: Sequence[Candidate], tell: Tell) -> Power:
    """Return the power over the mutants that are named, or drawn; after Ctrl-C over those that are finished.

    Raise `UsageError` for an unknown mutant, and when no run of the campaign can be planned.
    """
    named, campaign = _named(asked, candidates), _campaign(asked)
    modules = tuple({one.module.name: one.module for one in candidates}.values())
    unchanged = _unchanged(asked, campaign, modules, tell)
    # A run that is accused, or that the harness cannot make, says nothing about a mutant.
    clean = {number: one for number, one in unchanged.items() if _is_clean(one)}
    reached = frozenset[str]().union(*(one.reached for one in unchanged.values()))
    drawn = named or _drawn(asked, [one for one in candidates if one.mutant.id in reached])
    tasks = [
        Task(
            campaign=campaign,
            numbers=tuple(clean),
            limits=asked.limits,
            modules=(one.module,),
            mutant=one.mutant,
            plans={number: ran.plan for number, ran in clean.items()},
        )
        for one in drawn
    ]
    done, interrupted = dict[int, list[Ran]](), False
    try:
        for number, ran in carry_out(tasks if clean else [], asked.processes):
            done[number] = ran
            tell(f"{len(done)} of {len(drawn)} mutants")
    except KeyboardInterrupt:
        interrupted = True
    results = [_measured(asked, campaign, drawn[number].mutant, done[number], clean) for number in sorted(done)]
    power = _power(asked, campaign, unchanged, results)
    return msgspec.structs.replace(
        power,
        mutants_in_all=len(candidates),
        not_reached=tuple(one.mutant for one in candidates if one.mutant.id not in reached),
        missing=len(drawn) - len(done),
        interrupted=interrupted,
        matrix=cells_of(results, {drawn[number].mutant.id: ran for number, ran in done.items()}),
    )


def _is_clean(ran: Ran) -> bool:
    return not ran.ended and not ran.found and ran.verdict != Verdict.HARNESS_ERROR.value


def _campaign(asked: Asked) -> CampaignPlan:
    """Return the untailored campaign, with as many seeds as the runs need."""
    plan = plan_from_flags(systems=[asked.system], workloads=asked.workloads, seeds=f"{asked.seed}")
    last = asked.seed + -(-asked.runs // len(plan.cells())) - 1
    return plan_from_flags(systems=[asked.system], workloads=asked.workloads, seeds=f"{asked.seed}..{last}")


def _unchanged(asked: Asked, campaign: CampaignPlan, modules: tuple[SourceModule, ...], tell: Tell) -> dict[int, Ran]:
    """Return the runs of the unchanged program, by number."""
    blocks = [tuple(range(first, asked.runs, asked.processes)) for first in range(min(asked.processes, asked.runs))]
    tasks = [Task(campaign=campaign, numbers=block, limits=asked.limits, modules=modules) for block in blocks]
    found: dict[int, Ran] = {}
    for _number, ran in carry_out(tasks, asked.processes):
        found |= {one.number: one for one in ran}
        tell(f"{len(found)} of {asked.runs} runs of the unchanged program")
    refused = [one for one in found.values() if one.ended == REFUSED]
    if len(refused) == len(found):
        raise UsageError(
            f"No run of the campaign of {asked.system} can be planned: {refused[0].error}",
            "Try `faultline campaign` with the system alone.",
        )
    return dict(sorted(found.items()))


def _measured(
    asked: Asked, campaign: CampaignPlan, mutant: Mutant, ran: Sequence[Ran], clean: dict[int, Ran]
) -> Measured:
    places = {one.number: _place(asked, campaign, mutant, one.number) for one in ran}
    return measured(mutant, ran, clean, places, time_s=asked.limits.processor_s)


def _place(asked: Asked, campaign: CampaignPlan, mutant: Mutant, number: int) -> Place:
    request = request_of(campaign, number)
    words = ["faultline", "power", "--system", asked.system, "--mutant", mutant.id, "--workload", request.workload]
    return Place(request.seed, request.workload, shlex.join([*words, "--runs", "1", "--seed", str(request.seed)]))


def _power(asked: Asked, campaign: CampaignPlan, unchanged: dict[int, Ran], results: Sequence[Measured]) -> Power:
    verdicts = [one.ended or one.verdict for one in unchanged.values()]
    spent_s = sum(one.processor_s for one in unchanged.values()) + sum(one.processor_s for one in results)
    return Power(
        version=faultline.__version__,
        command=_command(asked),
        system=asked.system,
        workloads=tuple(cell.workload for cell in campaign.cells()),
        seed=asked.seed,
        runs_max=asked.runs,
        processor_s_max=asked.limits.processor_s,
        unchanged_runs=len(unchanged),
        unchanged_refused=verdicts.count(REFUSED),
        unchanged_verdicts={name: verdicts.count(name) for name in sorted(set(verdicts))},
        alarms=tuple(_alarms(campaign, unchanged)),
        mutants=tuple(results),
        clients=share_of(results, by_client=True),
        any=share_of(results, by_client=False),
        processor_s=round(spent_s, 1),
    )


def _command(asked: Asked) -> str:
    """Return the command of the measurement."""
    words = ["faultline", "power", "--system", asked.system]
    words += [word for each in asked.workloads for word in ("--workload", each)]
    words += [word for each in asked.mutant_ids for word in ("--mutant", each)]
    words += [] if asked.mutant_ids else ["--mutants", str(asked.mutants)]
    numbers = {"seed": asked.seed, "runs": asked.runs, "seconds": f"{asked.limits.processor_s:g}"}
    return shlex.join([*words, *(word for name, value in numbers.items() for word in (f"--{name}", str(value)))])


def _alarms(campaign: CampaignPlan, unchanged: dict[int, Ran]) -> list[Alarm]:
    return [
        Alarm(
            by=f"{found.checker}/{found.anomaly}",
            sentence=found.sentence,
            replay=run_command(request_of(campaign, number)),
        )
        for number, one in unchanged.items()
        for found in one.found
    ]
