"""Compare what a guided campaign finds of rare planted bugs with a campaign of as many runs in drawn universes.

    python tools/guided_power.py --runs 150 --repeats 3 --record FILE

For each bug and repetition the runs of `faultline campaign --system S --planted-bug B` are made in the order of that
campaign, a seed of each cell and then the next seed, and those of the same command with `--guided`. A find is a run
with a violation. The record is JSON lines, a line for each bug, repetition and way; the table that is printed goes into
docs/how-to/guide-a-campaign.md. All of it but the processor time is the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from faultline.campaign.engine import Engine, default_engine
from faultline.campaign.guided.signal import EventPairs, Signal, read_signals
from faultline.campaign.guided.units import run_guided_unit
from faultline.campaign.guided.waves import carry_out_waves, decided_units
from faultline.campaign.layout import create_campaign_folder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.planfile import plan_from_flags
from faultline.campaign.simulate import SimulationJob
from faultline.harness.verdict import Verdict

__all__ = ["BUGS", "Outcome", "guided_signals", "main", "unguided_signals"]

BUGS = (
    ("consistent-core", "forget-votes"),
    ("consistent-core", "wall-clock-lease"),
    ("consistent-core", "even-cluster-formula"),
    ("consistent-core", "roll-without-flush"),
)
"""Rare bugs, each with its system."""

_SEEDS_APART = 100_000


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The finds of one bug in one campaign from `first_seed`; `first_find` counts runs from 1, and is 0 without any."""

    system: str
    bug: str
    guided: bool
    first_seed: int
    runs: int
    found: int
    kinds: int
    first_find: int
    pairs: int
    processor_s: float


def main() -> int:
    """Measure every bug, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=150, help="runs of each campaign")
    parser.add_argument("--wave", type=int, default=25, help="runs of a wave")
    parser.add_argument("--repeats", type=int, default=3, help="campaigns of each bug and way, with other seeds")
    parser.add_argument("--bug", action="append", choices=[bug for _, bug in BUGS], help="this bug only; repeatable")
    parser.add_argument("--workload", action="append", default=[], help="in place of the usual ones; repeatable")
    parser.add_argument("--record", type=Path, default=Path("guided-power.jsonl"))
    arguments = parser.parse_args()
    measured: list[Outcome] = []
    for system, bug in [one for one in BUGS if not arguments.bug or one[1] in arguments.bug]:
        plans = [
            plan_from_flags(
                systems=[system],
                workloads=arguments.workload,
                planted_bugs=[[bug]],
                guided=True,
                runs=arguments.runs,
                wave=arguments.wave,
                seed=number * _SEEDS_APART,
            )
            for number in range(arguments.repeats)
        ]
        own = [_measured(plan, is_guided) for plan in plans for is_guided in (False, True)]
        measured += own
        print(_line(own), flush=True)
    arguments.record.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in measured))
    return 0


def unguided_signals(plan: CampaignPlan, engine: Engine) -> Iterator[Signal]:
    """Yield the signals of as many runs as `plan` has, in the order of the campaign without `--guided`."""
    assert engine.observe is not None
    cells, first = plan.cells(), plan.seed_range().start
    parts = [engine.resolve(plan.request(cell, first)) for cell in cells]
    for number in range(plan.runs()):
        place, seed = number % len(cells), first + number // len(cells)
        pairs = EventPairs()
        planned = engine.plan(plan.request(cells[place], seed), parts[place])
        judgement = engine.judge(engine.observe(planned, parts[place], pairs.observe), parts[place], str(number))
        kind = f"{cells[place].name}: {judgement.signature}" if judgement.verdict is Verdict.VIOLATION else ""
        yield Signal(seed=number, run_id=str(number), pairs=pairs.pairs(), violation=kind)


def guided_signals(plan: CampaignPlan, engine: Engine) -> list[Signal]:
    """Return the signals of the guided campaign `plan`, in the order in which its runs were decided."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = create_campaign_folder(Path(scratch), plan, "measured")
        job = SimulationJob(plan, folder, folder.root, engine)
        carry_out_waves(job, lambda units: [str(run_guided_unit(job, unit)) for unit in units] and [])
        return read_signals(folder.signals_part(unit.number) for unit in decided_units(folder))


def _measured(plan: CampaignPlan, is_guided: bool) -> Outcome:
    engine, begun_s = default_engine("simulated"), time.process_time()
    signals = guided_signals(plan, engine) if is_guided else list(unguided_signals(plan, engine))
    finds = [place for place, signal in enumerate(signals, start=1) if signal.violation]
    return Outcome(
        system=plan.systems[0],
        bug=plan.planted_bugs[0][0],
        guided=is_guided,
        first_seed=plan.seed_range().start,
        runs=len(signals),
        found=len(finds),
        kinds=len({signal.violation for signal in signals if signal.violation}),
        first_find=finds[0] if finds else 0,
        pairs=len({pair for signal in signals for pair in signal.pairs}),
        processor_s=round(time.process_time() - begun_s, 1),
    )


def _line(outcomes: Sequence[Outcome]) -> str:
    """Return the line of one bug for the table: both ways side by side."""
    columns = [
        " / ".join(_told(name, [each for each in outcomes if each.guided is is_guided]) for is_guided in (False, True))
        for name in ("found", "kinds", "first_find", "pairs", "processor_s")
    ]
    return f"| `{outcomes[0].bug}` | {outcomes[0].system} | {' | '.join(columns)} |"


def _told(name: str, outcomes: Sequence[Outcome]) -> str:
    return ", ".join(f"{getattr(each, name):g}" for each in outcomes)


if __name__ == "__main__":
    sys.exit(main())
