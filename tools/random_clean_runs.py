"""Run the correct reference systems at random, over all legal requests, and record every run that is not clean.

    python tools/random_clean_runs.py --runs 20000 --seed 1 --processes 2
    python tools/random_clean_runs.py --runs 1 --first 4711          one run again, by its number
    python tools/random_clean_runs.py --weather stale=0.01            the same runs in this weather
    python tools/random_clean_runs.py --system gossip --option detector=lifeguard      with this option in each run

Every run has a number, and follows from that number and `--seed` alone: system, workload, fault sets and the seed of
the run are drawn, and drawn again where planning refuses them; the rest is the universe of that seed
(`faultline.harness.universe`). So options meet that no shipped plan sets together, and every finding is a false alarm,
or a bug of the system.

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

from faultline.campaign.default_campaign import usual_workloads
from faultline.campaign.engine import default_engine
from faultline.cli.options import as_options
from faultline.harness.commands import run_command
from faultline.harness.conditions import Settings
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest
from faultline.harness.verdict import Verdict
from faultline.registry import fault_sets, load_system, systems

__all__ = ["Ran", "draw", "main", "run_number"]

RECORD = Path("random-clean-runs.jsonl")
_DRAWS_MAX = 200
_FAULT_SETS_AT_ONCE = (0, 1, 1, 2, 2, 3)
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
    weather: Settings
    options: dict[str, str]


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
    parser.add_argument("--weather", action="append", default=[], metavar="NAME=VALUE", help="in every universe")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of --system, in each run")
    parser.add_argument("--every", type=int, default=500, help="print the progress after that many runs")
    parser.add_argument("--record", type=Path, default=RECORD)
    arguments = parser.parse_args()
    if arguments.option and not arguments.system:
        parser.error("--option needs --system: the systems have options of their own")
    return arguments


def _all_runs(arguments: argparse.Namespace) -> Iterator[Ran]:
    """Yield every run in the order of the numbers."""
    numbers = range(arguments.first, arguments.first + arguments.runs)
    weather, options = as_options(tuple(arguments.weather), "--weather"), as_options(tuple(arguments.option))
    tasks = [(arguments.seed, number, arguments.system or "", weather, options) for number in numbers]
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


def _run_task(task: tuple[int, int, str, Settings, dict[str, str]]) -> Ran:
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
        weather=as_options(tuple(arguments.weather), "--weather"),
        options=as_options(tuple(arguments.option)),
    )


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _in_words(ran: list[Ran]) -> str:
    return ", ".join(f"{count} {name}" for name, count in _counted(one.verdict.value for one in ran).items())


def run_number(
    seed: int, number: int, system: str = "", weather: Settings | None = None, options: dict[str, str] | None = None
) -> Ran:
    """Return the run `number` of the random campaign `seed`: of `system`, with `weather` and `options`, if given."""
    engine, refused = default_engine("simulated"), 0
    for attempt in range(_DRAWS_MAX):
        request = draw(Random(f"{seed}/{number}/{attempt}"), system)
        if weather:
            request = msgspec.structs.replace(request, weather={**weather})
        if options:
            request = msgspec.structs.replace(request, options=options)
        try:
            judgement = engine.judged(request)
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
    """Return a request for a drawn universe; planning may still refuse it."""
    chosen = system or random.choice(sorted(systems()))
    return RunRequest(
        system=chosen,
        workload=random.choice(_workloads_of(chosen)),
        faults=tuple(random.sample(fault_sets(), random.choice(_FAULT_SETS_AT_ONCE))),
        seed=random.randrange(1_000_000_000),
        universe="drawn",
    )


@cache
def _workloads_of(system: str) -> tuple[str, ...]:
    return usual_workloads(load_system(system))


if __name__ == "__main__":
    sys.exit(main())
