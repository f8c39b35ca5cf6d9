"""The result of a measurement: the mutants that count, those that were found, by whom, and the cost.

A mutant counts when its place was executed and some run came out differently from the same run of the unchanged
program. The others are listed apart: a place that was never executed is a situation that the campaign lacks, and one
that changed no run may be no change of behaviour at all.
"""

from __future__ import annotations

import enum
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from faultline.campaign.outcome import RunCounts
from faultline.campaign.statistics import wilson_interval
from faultline.harness.verdict import Verdict
from faultline.power.modules import group_of
from faultline.power.mutants import Mutant
from faultline.power.worker import HANG, INVARIANTS, NODE_CRASH, REFUSED, Found, Ran

__all__ = [
    "ANY",
    "CLIENTS",
    "COUNTED",
    "Alarm",
    "Cell",
    "Ending",
    "Measured",
    "Place",
    "Power",
    "Share",
    "Sighting",
    "cells_of",
    "measured",
    "share_of",
]

SCHEMA = 1
ANY = "any"
CLIENTS = "clients"


class Ending(enum.StrEnum):
    """The ways in which the runs of a mutant end.

    The first five found it. Under an inconclusive one the campaign is no pass, though no run was accused: runs of a
    workload tested too little or were not decided. The last three do not count.
    """

    CLIENT = "client-visible"
    INVARIANT = "invariant"
    CRASH = "crash"
    HANG = HANG
    ERROR = "harness-error"
    INCONCLUSIVE = "inconclusive"
    SURVIVED = "survived"
    UNDISTINGUISHED = "never-distinguished"
    UNREACHED = "never-reached"
    REFUSED = REFUSED


COUNTED = (
    Ending.CLIENT,
    Ending.INVARIANT,
    Ending.CRASH,
    Ending.HANG,
    Ending.ERROR,
    Ending.INCONCLUSIVE,
    Ending.SURVIVED,
)
"""The endings of the mutants that count."""


class Place(NamedTuple):
    """The place of a run in the campaign: its seed and workload, and the command that runs it again."""

    seed: int
    workload: str
    command: str


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """The first run that found a mutant: after how many runs and processor seconds, and by what.

    `by` is `checker/anomaly`, the id of an invariant, `node-crash`, `hang` or `harness-error`.
    """

    kind: Ending
    by: str
    sentence: str
    runs: int
    processor_s: float
    seed: int
    workload: str
    faults: tuple[str, ...]
    replay: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant and its outcome. `first_client` is the first run that a checker of clients' answers accused.

    `runs_reached` executed the mutated place, `runs_changed` came out differently. `out_of_time` says that the limit of
    processor time ended the runs: on a faster machine there would have been more.
    """

    mutant: Mutant
    group: str
    ending: Ending
    runs: int
    runs_reached: int
    runs_changed: int
    verdicts: dict[str, int]
    processor_s: float
    out_of_time: bool = False
    error: str = ""
    first: Sighting | None = None
    first_client: Sighting | None = None


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the mutants that count, its 95 % interval (Wilson), and the median cost where found."""

    found: int
    of: int
    share: float
    low: float
    high: float
    median_runs: float | None
    median_s: float | None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the matrix: mutants of a group that ran under a fault package, and those that `checker` found.

    `group` and `faults` are `any` for all together. `checker` is that of a client-visible finding, `invariants`,
    `node-crash`, `clients` for any client-visible one, or `any`. `probability` has a 95 % interval; `processor_min` is
    the time of all their runs under that package.
    """

    group: str
    faults: str
    checker: str
    mutants: int
    found: int
    probability: float
    low: float
    high: float
    per_minute: float
    processor_min: float


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the unchanged program that was accused."""

    by: str
    sentence: str
    replay: str


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result, as `--json` prints it.

    No run of the unchanged program came to the places of the mutants `not_reached`, of `mutants_in_all`; none of them
    is drawn. `missing` ones were drawn and not measured, as Ctrl-C came first (`interrupted`), or as no such run is
    clean.
    """

    schema: int = SCHEMA
    version: str
    command: str
    system: str
    workloads: tuple[str, ...]
    seed: int
    runs_max: int
    processor_s_max: float
    unchanged_runs: int
    unchanged_refused: int
    unchanged_verdicts: dict[str, int]
    alarms: tuple[Alarm, ...]
    mutants: tuple[Measured, ...]
    mutants_in_all: int = 0
    not_reached: tuple[Mutant, ...] = ()
    missing: int = 0
    interrupted: bool = False
    clients: Share
    any: Share
    processor_s: float
    matrix: tuple[Cell, ...] = ()


def measured(
    mutant: Mutant, ran: Sequence[Ran], unchanged: Mapping[int, Ran], places: Mapping[int, Place], *, time_s: float
) -> Measured:
    """Return the outcome of `mutant` in the runs `ran`, compared with the same runs of the unchanged program.

    `places` has the place of each run by its number; `time_s` is the limit of processor time.
    """
    spent_s, first, first_client = 0.0, None, None
    for count, one in enumerate(ran, start=1):
        spent_s += one.processor_s
        for found in _accusations(one):
            sighting = Sighting(
                kind=_kind(found),
                by=_name(found),
                sentence=found.sentence,
                runs=count,
                processor_s=round(spent_s, 3),
                seed=places[one.number].seed,
                workload=places[one.number].workload,
                faults=one.faults,
                replay=places[one.number].command,
            )
            first = first or sighting
            first_client = first_client or (sighting if found.by_client else None)
    return Measured(
        mutant=mutant,
        group=group_of(mutant.module),
        ending=_ending(ran, unchanged, places, first_client or first),
        runs=len(ran),
        runs_reached=sum(bool(one.reached) for one in ran),
        runs_changed=_changed(ran, unchanged),
        verdicts=dict(sorted(Counter(one.ended or one.verdict for one in ran).items())),
        processor_s=round(spent_s, 3),
        out_of_time=first_client is None and spent_s > time_s,
        error=next((one.error for one in ran if one.error), ""),
        first=first,
        first_client=first_client,
    )


def _changed(ran: Sequence[Ran], unchanged: Mapping[int, Ran]) -> int:
    return sum(bool(one.digest != unchanged[one.number].digest or one.found) for one in ran if one.ended != REFUSED)


def _ending(
    ran: Sequence[Ran], unchanged: Mapping[int, Ran], places: Mapping[int, Place], seen: Sighting | None
) -> Ending:
    if seen is not None:
        return seen.kind
    if ran and all(one.ended == REFUSED for one in ran):
        return Ending.REFUSED
    if not any(one.reached for one in ran):
        return Ending.UNREACHED
    if not _changed(ran, unchanged):
        return Ending.UNDISTINGUISHED
    before = _verdicts_of_cells((unchanged[one.number] for one in ran), places)
    with_mutant = _verdicts_of_cells(ran, places)
    spoilt = [
        cell for cell, verdict in with_mutant.items() if verdict is not Verdict.PASS and before[cell] is Verdict.PASS
    ]
    return Ending.INCONCLUSIVE if spoilt else Ending.SURVIVED


def _verdicts_of_cells(ran: Iterable[Ran], places: Mapping[int, Place]) -> dict[str, Verdict]:
    """Return the verdict that a campaign of these runs, none of them accused, has on each workload."""
    counts: dict[str, Counter[str]] = {}
    for one in ran:
        counts.setdefault(places[one.number].workload, Counter())[one.ended or one.verdict] += 1
    return {
        workload: RunCounts(
            passed=each[Verdict.PASS],
            unknown=each[Verdict.UNKNOWN],
            vacuous=each[Verdict.VACUOUS],
            missing=each[REFUSED],
        ).verdict
        for workload, each in counts.items()
    }


def _accusations(ran: Ran) -> list[Found]:
    """Return the accusations of a run that a user is shown, those of clients first."""
    found = sorted(ran.found, key=lambda one: not one.by_client)
    if found or not (ran.ended == HANG or ran.verdict == Ending.ERROR):
        return found
    name = Ending.HANG if ran.ended == HANG else Ending.ERROR
    return [Found(checker=name, anomaly="", sentence=ran.error or "The run did not end.", by_client=False)]


def _kind(found: Found) -> Ending:
    if found.by_client:
        return Ending.CLIENT
    if found.checker in (Ending.HANG, Ending.ERROR):
        return Ending(found.checker)
    return Ending.CRASH if found.anomaly == NODE_CRASH else Ending.INVARIANT


def _name(found: Found) -> str:
    if found.checker == INVARIANTS:
        return found.anomaly
    return f"{found.checker}/{found.anomaly}" if found.anomaly else found.checker


def share_of(mutants: Iterable[Measured], *, by_client: bool, within: float = math.inf) -> Share:
    """Return the share of the counted mutants that were found in the first `within` runs, by clients alone or by any
    means."""
    counted = [one for one in mutants if one.ending in COUNTED]
    sightings = [one.first_client if by_client else one.first for one in counted]
    found = [each for each in sightings if each is not None and each.runs <= within]
    low, high = wilson_interval(len(found), len(counted))
    return Share(
        found=len(found),
        of=len(counted),
        share=len(found) / len(counted) if counted else 0.0,
        low=low,
        high=high,
        median_runs=statistics.median(one.runs for one in found) if found else None,
        median_s=statistics.median(one.processor_s for one in found) if found else None,
    )


def cells_of(mutants: Iterable[Measured], ran: Mapping[str, Sequence[Ran]]) -> tuple[Cell, ...]:
    """Return the matrix of group, fault package and checker; `ran` has the runs of each mutant by its id.

    A run with several packages counts for each of them, and once for any. A package that found nothing has its cells
    for clients and for any checker all the same.
    """
    tried: dict[tuple[str, str], set[str]] = {}
    minutes: dict[tuple[str, str], float] = {}
    found: dict[tuple[str, str, str], set[str]] = {}
    for one in mutants:
        if one.ending not in COUNTED:
            continue
        for each in ran[one.mutant.id]:
            checkers = _checkers(each)
            for place in itertools.product((one.group, ANY), (*(each.faults or ("none",)), ANY)):
                tried.setdefault(place, set()).add(one.mutant.id)
                minutes[place] = minutes.get(place, 0.0) + each.processor_s / 60
                for checker in {ANY, CLIENTS} | checkers:
                    ids = found.setdefault((*place, checker), set())
                    ids |= {one.mutant.id} if checker in checkers else set()
    return tuple(_cell(key, ids, tried, minutes) for key, ids in sorted(found.items()))


def _checkers(ran: Ran) -> set[str]:
    accusations = _accusations(ran)
    names = {NODE_CRASH if one.anomaly == NODE_CRASH else one.checker for one in accusations}
    return names | ({ANY} if accusations else set()) | ({CLIENTS} if ran.by_client else set())


def _cell(
    key: tuple[str, str, str],
    ids: set[str],
    tried: Mapping[tuple[str, str], set[str]],
    minutes: Mapping[tuple[str, str], float],
) -> Cell:
    group, faults, checker = key
    spent_min, mutants = minutes[group, faults], len(tried[group, faults])
    low, high = wilson_interval(len(ids), mutants)
    return Cell(
        group=group,
        faults=faults,
        checker=checker,
        mutants=mutants,
        found=len(ids),
        probability=len(ids) / mutants,
        low=low,
        high=high,
        per_minute=round(len(ids) / spent_min, 3) if spent_min else 0.0,
        processor_min=round(spent_min, 3),
    )
