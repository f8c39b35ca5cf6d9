"""Run the correct reference systems at random, over all legal requests, and record every run that is not clean.

    python tools/random_clean_runs.py --runs 20000 --seed 1 --processes 2
    python tools/random_clean_runs.py --runs 1 --first 4711          one run again, by its number

Every run has a number, and follows from that number and `--seed` alone: system, workload, options, fault sets, nodes,
workers, operations and the seed of the run are drawn, and drawn again where planning refuses them. An option with
choices takes one of them; a number takes what shipped plans give it, or its default times a quarter, a half, two or
four. So options meet that no shipped plan sets together, and every finding is a false alarm, or a bug of the
system.

The record is JSON lines: a line for each violation, undecided run and harness error, with the command that repeats it,
and a last line with the totals. The exit code is 1 after a violation, else 4 after a harness error, else 3 after an
undecided run, else 0. A *vacuous* run is counted and does not matter.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from faultline.campaign.engine import default_engine
from faultline.campaign.planfile import load_plan, shipped_plans
from faultline.harness.commands import run_command
from faultline.harness.errors import UsageError
from faultline.harness.options import all_options
from faultline.harness.planning import RunRequest
from faultline.harness.system import OptionDescription
from faultline.harness.verdict import Verdict
from faultline.nemesis import PACKAGES
from faultline.registry import load_system, load_workload, systems, workloads

__all__ = ["Ran", "draw", "main", "run_number"]

RECORD = Path("random-clean-runs.jsonl")
_DRAWS_MAX = 200
_FACTORS = (0.25, 0.5, 2, 4)
_SMALL = (0, 1, 2, 5)
_NODES = (1, 2, 3, 3, 3, 4, 5, 5, 6, 7)
_SHARES_OF_OPTIONS = (0.0, 0.1, 0.25, 0.5)
_FAULT_SETS_AT_ONCE = (0, 1, 1, 2, 2, 3)
_OPERATIONS = (30, 60, 100, 150, 200)
_WRONG = (Verdict.VIOLATION, Verdict.HARNESS_ERROR, Verdict.UNKNOWN)
_EXIT_CODES = {Verdict.VIOLATION: 1, Verdict.HARNESS_ERROR: 4, Verdict.UNKNOWN: 3}


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run: the number of refusals by planning before it, and the findings."""

    number: int
    system: str
    verdict: Verdict
    refused: int
    finding: str
    sentence: str
    command: str


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of a record: the runs, and their results."""

    seed: int
    first: int
    runs: int
    verdicts: dict[str, int]
    systems: dict[str, int]
    refused: int
    processor_s: float


def main() -> int:
    """Carry out the runs, print findings as they come, and write the record."""
    arguments = _arguments()
    began_s, ran = _processor_s(), list[Ran]()
    with arguments.record.open("wb") as record:
        for one in _all_runs(arguments):
            ran.append(one)
            if one.verdict in _WRONG:
                record.write(msgspec.json.encode(one) + b"\n")
                record.flush()
                print(f"{one.number}: {one.verdict.value} {one.finding}: {one.sentence}\n    {one.command}", flush=True)
            if len(ran) % arguments.every == 0:
                print(f"{len(ran)} runs: {_in_words(ran)}", flush=True)
        totals = _totals(arguments, ran, _processor_s() - began_s)
        record.write(msgspec.json.encode(totals) + b"\n")
    print(f"{len(ran)} runs, seed {arguments.seed}: {_in_words(ran)}; {totals.refused} draws refused")
    found = {one.verdict for one in ran}
    return next((code for verdict, code in _EXIT_CODES.items() if verdict in found), 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--system", choices=sorted(systems()), help="draw this system only")
    parser.add_argument("--every", type=int, default=500, help="print the progress after that many runs")
    parser.add_argument("--record", type=Path, default=RECORD)
    return parser.parse_args()


def _all_runs(arguments: argparse.Namespace) -> Iterator[Ran]:
    """Yield every run in the order of the numbers."""
    numbers = range(arguments.first, arguments.first + arguments.runs)
    tasks = [(arguments.seed, number, arguments.system or "") for number in numbers]
    if arguments.processes == 1:
        yield from map(_run_task, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        yield from pool.imap(_run_task, tasks, chunksize=10)
        pool.close()
        pool.join()


def _processor_s() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _run_task(task: tuple[int, int, str]) -> Ran:
    return run_number(*task)


def _totals(arguments: argparse.Namespace, ran: list[Ran], processor_s: float) -> Totals:
    return Totals(
        seed=arguments.seed,
        first=arguments.first,
        runs=len(ran),
        verdicts=_counted(one.verdict.value for one in ran),
        systems=_counted(one.system for one in ran),
        refused=sum(one.refused for one in ran),
        processor_s=round(processor_s, 1),
    )


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _in_words(ran: list[Ran]) -> str:
    return ", ".join(f"{count} {name}" for name, count in _counted(one.verdict.value for one in ran).items())


def run_number(seed: int, number: int, system: str = "") -> Ran:
    """Return the run `number` of the random campaign `seed`, of `system` if one is named."""
    engine, refused = default_engine("simulated"), 0
    for attempt in range(_DRAWS_MAX):
        request = draw(Random(f"{seed}/{number}/{attempt}"), system)
        try:
            parts = engine.resolve(request)
            plan = engine.plan(request, parts)
            engine.refuse(plan, parts)
            judgement = engine.judge(engine.simulate(plan, parts, False), parts, "run")
        except UsageError:
            refused += 1
            continue
        except Exception as error:
            return _ran(number, request, refused, Verdict.HARNESS_ERROR, type(error).__name__, str(error))
        return _ran(number, request, refused, judgement.verdict, judgement.signature, judgement.sentence)
    raise AssertionError(f"{_DRAWS_MAX} draws for run {number} were all refused")


def _ran(number: int, request: RunRequest, refused: int, verdict: Verdict, finding: str, sentence: str) -> Ran:
    return Ran(
        number=number,
        system=request.system,
        verdict=verdict,
        refused=refused,
        finding=finding,
        sentence=sentence,
        command=run_command(request),
    )


def draw(random: Random, system: str = "") -> RunRequest:
    """Return a request over the declared choices; planning may still refuse it."""
    chosen = system or random.choice(sorted(systems()))
    return RunRequest(
        system=chosen,
        workload=random.choice(_workloads_of(chosen)),
        faults=tuple(random.sample(_fault_sets(), random.choice(_FAULT_SETS_AT_ONCE))),
        seed=random.randrange(1_000_000_000),
        options=_options(random, chosen),
        nodes=random.choice(_NODES),
        workers=random.randint(1, 10),
        operations=random.choice(_OPERATIONS),
    )


def _options(random: Random, system: str) -> dict[str, str]:
    share = random.choice(_SHARES_OF_OPTIONS)
    known = all_options(load_system(system))
    return {name: random.choice(_values(system, name, known[name])) for name in known if random.random() < share}


@cache
def _workloads_of(system: str) -> tuple[str, ...]:
    functions = set(load_system(system).functions)
    return tuple(name for name in sorted(workloads()) if functions >= set(load_workload(name).functions))


@cache
def _fault_sets() -> tuple[str, ...]:
    return tuple(sorted(PACKAGES))


@cache
def _values(system: str, name: str, description: OptionDescription) -> tuple[str, ...]:
    """Return the values from which the option is drawn."""
    if description.choices:
        return description.choices
    plans = [load_plan(plan) for plan in shipped_plans()]
    values = {plan.options[name] for plan in plans if system in plan.systems and name in plan.options}
    values.add(description.default)
    if not description.is_text:
        default = int(description.default)
        values |= {str(int(default * factor)) for factor in _FACTORS} if default else {str(value) for value in _SMALL}
    return tuple(sorted(values))


if __name__ == "__main__":
    sys.exit(main())
