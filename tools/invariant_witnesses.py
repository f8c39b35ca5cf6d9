"""Planted bugs as counter-witnesses of invariants: a run in which the invariant accuses a system with the bug.

The same run of the correct system passes, which the check runs as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import msgspec
from bug_evidence import Place, bug_places, bugs, read_records, reference_systems
from witness_records import CounterWitness

from faultline.campaign.engine import default_engine
from faultline.harness.errors import UsageError
from faultline.harness.planning import RunRequest
from faultline.harness.system import PlantedBug

__all__ = ["invariant_witness", "problem_of_invariant"]

SEEDS = 40
"""The number of seeds of each cell that are tried with each bug that names the invariant."""


def invariant_witness(where: str, pattern: str, row: str) -> CounterWitness:
    """Return the first planted bug and seed found that the invariant `row` accuses; a record without one when none of
    the bugs that name it does."""
    tried = 0
    for place, seeds in _places(row):
        for seed in seeds:
            tried += 1
            if row in accusing(place.plan.request(place.cell, seed)):
                return CounterWitness(
                    where=where,
                    pattern=pattern,
                    bug=f"{place.system}+{place.bug}",
                    run=f"{place.run} {seed}",
                    cell=place.cell.name,
                    seed=seed,
                    tried=tried,
                    systems=(place.system,),
                )
    note = "" if tried else "no planted bug names it"
    return CounterWitness(where=where, pattern=pattern, tried=tried, note=note)


def problem_of_invariant(record: CounterWitness, row: str) -> str:
    """Return what is wrong with the record of an invariant; nothing when the bug is accused, and the correct system is
    not."""
    system, _, name = record.bug.partition("+")
    for place, _bug in _all_places():
        if (place.system, place.bug, place.cell.name) == (system, name, record.cell):
            request = place.plan.request(place.cell, record.seed)
            if row not in accusing(request):
                return "the invariant does not accuse the bug"
            correct = msgspec.structs.replace(request, planted_bugs=())
            return "the invariant accuses the correct system" if row in accusing(correct) else ""
    return "no campaign has the cell"


def accusing(request: RunRequest) -> set[str]:
    """Return the invariants that accuse the run; none for one that planning refuses."""
    engine = default_engine("simulated")
    try:
        judgement = engine.judged(request)
    except UsageError:
        return set()
    return {finding.anomaly for finding in judgement.findings}


def _places(row: str) -> Iterator[tuple[Place, Iterable[int]]]:
    """Yield the places where a bug that names the invariant may be accused, with the seeds: recorded finds first."""
    records = read_records()
    places = [place for place, bug in _all_places() if row in (bug.id, *bug.caught_by)]
    recorded = [(place, records[place.key]) for place in places if place.key in records]
    yield from ((place, (record.first_seed,)) for place, record in recorded if record.finding.endswith(f"/{row}"))
    by_rate = sorted(recorded, key=lambda each: each[1].rate, reverse=True)
    yield from ((place, range(SEEDS)) for place, _record in by_rate)


@cache
def _all_places() -> tuple[tuple[Place, PlantedBug], ...]:
    """Return the cells in which the planted bugs of all systems are caught."""
    return tuple(
        (place, bug) for system in reference_systems() for bug in bugs(system) for place in bug_places(system.name, bug)
    )
