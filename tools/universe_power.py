"""Compare what a processor second finds of planted bugs in the calm universe and in drawn ones.

    python tools/universe_power.py --seconds 10 --record FILE

For each bug the runs of `faultline campaign --system S --planted-bug B` are made in the order of that campaign, a seed
of each cell and then the next seed, once with `--universe calm` and once with `--universe drawn`, for the same
processor time. A find is a run with a violation. The record is JSON lines, a line for each bug and universe; the table
that is printed goes into docs/reference/performance.md. Counts differ a little from machine to machine, as a faster one
makes more runs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from faultline.campaign.engine import default_engine
from faultline.campaign.planfile import plan_from_flags
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest
from faultline.harness.verdict import Verdict

__all__ = ["BUGS", "Found", "main", "power", "requests_of"]

BUGS = (
    ("consistent-core", "forget-votes"),
    ("consistent-core", "previous-index-only"),
    ("consistent-core", "wall-clock-lease"),
    ("consistent-core", "even-cluster-formula"),
    ("consistent-core", "late-answer-taken"),
    ("consistent-core", "roll-without-flush"),
    ("consistent-core", "serve-before-no-op"),
    ("coordination-service", "lease-counted-from-receipt"),
    ("gossip", "gap-accepted"),
    ("timestamped-kv", "store-before-wait"),
    ("partitioned-kv", "moves-of-the-leader-only"),
)
"""Rare bugs, each with its system."""

_UNIVERSES: tuple[Literal["calm", "drawn"], ...] = ("calm", "drawn")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The finds of one bug in one universe, of `runs` in `processor_s`; `first_s` is 0 where there is none."""

    system: str
    bug: str
    universe: str
    runs: int
    found: int
    processor_s: float
    first_s: float


def main() -> int:
    """Measure every bug, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time for each bug and universe")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--bug", action="append", choices=[bug for _, bug in BUGS], help="this bug only; repeatable")
    parser.add_argument("--record", type=Path, default=Path("universe-power.jsonl"))
    arguments = parser.parse_args()
    measured: list[Found] = []
    for system, bug in [one for one in BUGS if not arguments.bug or one[1] in arguments.bug]:
        # The two take turns, so that a machine that slows down slows both.
        measured += [power(system, bug, universe, arguments.seconds, arguments.first) for universe in _UNIVERSES]
        print(_line(*measured[-2:]), flush=True)
    calm, drawn = (sum(each.found for each in measured[start::2]) for start in (0, 1))
    print(f"| all | | {calm} | {drawn} | |")
    arguments.record.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in measured))
    return 0


def power(system: str, bug: str, universe: Literal["calm", "drawn"], seconds: float, first: int = 0) -> Found:
    """Return what `seconds` of processor time find of `bug`, with seeds from `first` on."""
    engine, runs, found, first_s, spent_s = default_engine("simulated"), 0, 0, 0.0, 0.0
    began_s = time.process_time()
    for request in requests_of(system, bug, universe, first):
        if (spent_s := time.process_time() - began_s) >= seconds:
            break
        judgement = engine.judged(request)
        runs += 1
        if judgement.verdict is Verdict.VIOLATION:
            found += 1
            first_s = first_s or time.process_time() - began_s
    return Found(
        system=system,
        bug=bug,
        universe=universe,
        runs=runs,
        found=found,
        processor_s=round(spent_s, 1),
        first_s=round(first_s, 1),
    )


def requests_of(
    system: str,
    bug: str,
    universe: Literal["calm", "drawn"],
    first: int = 0,
    weather: Mapping[str, str] | None = None,
) -> Iterator[RunRequest]:
    """Yield the runs of the campaign of `bug` without end: those of each seed from `first` on, a run of each cell."""
    plan = plan_from_flags(systems=[system], planted_bugs=[(bug,)], universe=universe, weather=weather)
    cells = [cell for cell in plan.cells() if _can_be_planned(plan.request(cell, first))]
    for seed in itertools.count(first) if cells else ():
        yield from (plan.request(cell, seed) for cell in cells)


def _can_be_planned(request: RunRequest) -> bool:
    """Return whether planning takes `request`: the options that a bug needs may leave the promise under some faults."""
    engine = default_engine("simulated")
    try:
        engine.plan(request, engine.resolve(request))
    except UsageError:
        return False
    return True


def _line(calm: Found, drawn: Found) -> str:
    first = f"{drawn.first_s:g} s" if drawn.found else "–"
    return f"| `{calm.bug}` | {calm.system} | {calm.found} of {calm.runs} | {drawn.found} of {drawn.runs} | {first} |"


if __name__ == "__main__":
    sys.exit(main())
