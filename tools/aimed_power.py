"""Compare what drawn universes find of planted bugs with faults at events and without them.

    python tools/aimed_power.py --runs 200 --record FILE

For each bug the runs of `faultline campaign --system S --planted-bug B --universe drawn` are planned in the order of
that campaign, a seed of each cell and then the next seed. The first N of them whose first draw has faults at events
(`aimed`) are made twice: as planned, and without those faults. All else is equal. A find is a run with a violation, and
clients have found it where a finding is not one of an invariant. The record is JSON lines, a line for each bug; the
table that is printed goes into docs/how-to/aim-faults-at-events.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from universe_power import requests_of

from faultline.campaign.engine import default_engine
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.universe import AIMED, draws
from faultline.harness.verdict import Verdict

__all__ = ["BUGS", "Found", "main", "power"]

BUGS = (
    ("consistent-core", "commit-old-generation"),
    ("consistent-core", "forget-votes"),
    ("consistent-core", "roll-without-flush"),
    ("consistent-core", "vote-twice"),
    ("paxos-kv", "adopt-oldest-accepted"),
    ("paxos-kv", "late-answers-count"),
    ("transactional-kv", "decision-not-logged"),
    ("transactional-kv", "forgets-its-promise"),
    ("transactional-kv", "timeout-after-decision"),
)
"""Rare bugs of an election, of Paxos and of two-phase commit, each with its system."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The finds of one bug in `runs` universes without faults at events and with them, those of clients apart.

    `struck` of `planned` faults at events met theirs. The times are processor seconds.
    """

    system: str
    bug: str
    runs: int
    planned: int
    struck: int
    without: int
    aimed: int
    without_by_clients: int
    aimed_by_clients: int
    without_s: float
    aimed_s: float


def main() -> int:
    """Measure every bug, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="the universes for each bug")
    parser.add_argument("--bug", action="append", choices=[bug for _, bug in BUGS], help="this bug only; repeatable")
    parser.add_argument("--record", type=Path, default=Path("aimed-power.jsonl"))
    arguments = parser.parse_args()
    with arguments.record.open("wb") as record:
        for system, bug in [one for one in BUGS if not arguments.bug or one[1] in arguments.bug]:
            found = power(system, bug, arguments.runs)
            record.write(msgspec.json.encode(found) + b"\n")
            record.flush()
            print(_line(found), flush=True)
    return 0


def power(system: str, bug: str, runs: int) -> Found:
    """Return what the first `runs` universes with faults at events find of `bug`, with these faults and without."""
    engine, planned, struck = default_engine("simulated"), 0, 0
    finds, by_clients, spent_s = [0, 0], [0, 0], [0.0, 0.0]
    for plan, parts in itertools.islice(_aimed_plans(system, bug), runs):
        timed = tuple(fault for fault in plan.faults if fault.trigger is msgspec.UNSET)
        for place, variant in enumerate((msgspec.structs.replace(plan, faults=timed), plan)):
            began_s = time.process_time()
            judgement = engine.judge(engine.simulate(variant, parts, False), parts, "run")
            spent_s[place] += time.process_time() - began_s
            if judgement.verdict is Verdict.VIOLATION:
                finds[place] += 1
                by_clients[place] += any(not each.signature.startswith("invariants/") for each in judgement.findings)
        planned += len(plan.faults) - len(timed)
        struck += len(plan.faults) - len(timed) - judgement.exposure.faults_waited
    return Found(
        system=system,
        bug=bug,
        runs=runs,
        planned=planned,
        struck=struck,
        without=finds[0],
        aimed=finds[1],
        without_by_clients=by_clients[0],
        aimed_by_clients=by_clients[1],
        without_s=round(spent_s[0], 1),
        aimed_s=round(spent_s[1], 1),
    )


def _aimed_plans(system: str, bug: str) -> Iterator[tuple[Plan, Parts]]:
    engine = default_engine("simulated")
    for request in requests_of(system, bug, "drawn"):
        parts = engine.resolve(request)
        # A plan is made only where the first draw is aimed, as three of four are not.
        if not next(draws(request, parts.system, parts.workload.functions)).aimed:
            continue
        plan = engine.plan(request, parts)
        if AIMED in (plan.universe or {}):
            yield plan, parts


def _line(found: Found) -> str:
    rates = (100 * found.without / found.without_s, 100 * found.aimed / found.aimed_s)
    cells = (f"`{found.bug}`", found.system, found.without, found.aimed, found.without_by_clients)
    return f"| {' | '.join(map(str, (*cells, found.aimed_by_clients, *(f'{rate:.0f}' for rate in rates))))} |"


if __name__ == "__main__":
    sys.exit(main())
