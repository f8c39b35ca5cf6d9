"""The measurements of planted bugs and correct systems: records with seeds, and the places that are still to be
measured.

A *place* is one cell of one shipped campaign, with one planted bug or none. Its measurement is a record in
docs/reference/planted-bugs.jsonl, one line each, so that recording can stop anywhere and go on where it stopped, and
the records of two people merge line by line. A record names the run command of its seeds; when the campaign was changed
since (other faults, other options), that command is another one and the record is stale.

The number of runs until a bug is found follows from the share of runs that found it: seeds are independent, so the
number of runs until the first finding is geometric. The median is taken at the measured rate. The 95 % bound is taken
at the lower end of the rate's Wilson interval, so that it errs towards too many runs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from faultline.campaign.matrix import CampaignPlan, Cell
from faultline.campaign.planfile import load_plan, plan_from_flags, shipped_plans
from faultline.campaign.statistics import wilson_interval
from faultline.harness.commands import run_command
from faultline.harness.system import NodeSystem, PlantedBug
from faultline.registry import load_system, systems
from faultline.systems_under_test.patterns.variants import Detection

__all__ = [
    "DATA",
    "DETECTION",
    "Place",
    "Record",
    "Untailored",
    "anomaly_places",
    "best_record",
    "bug_places",
    "bugs",
    "campaigns_without_cells",
    "correct_places",
    "detection_lines",
    "fresh_record",
    "marks_missing",
    "read_records",
    "read_untailored",
    "reference_systems",
    "runs_until_found",
    "unrecorded",
    "write_records",
    "write_untailored",
]

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "reference" / "planted-bugs.jsonl"
UNTAILORED = ROOT / "docs" / "reference" / "untailored-campaigns.jsonl"
"""The finds of the default campaign of each system among its planted bugs: `tools/untailored_evidence.py`."""
DETECTION = ROOT / "faultline" / "systems_under_test" / "patterns" / "detection.jsonl"
"""The part of it in an installed package: one line a planted bug."""

_Line = TypeVar("_Line")
_REFERENCE = "faultline.systems_under_test.reference."


class Place(msgspec.Struct, frozen=True):
    """One cell of a shipped campaign, with the planted bug `bug` or, when that is empty, the correct system."""

    system: str
    bug: str
    campaign: str
    cell: Cell

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key that tells places apart."""
        return self.system, self.bug, self.campaign, self.cell.name

    @property
    def plan(self) -> CampaignPlan:
        """The campaign, with the bug planted."""
        return plan_from_flags(plan=self.campaign, planted_bugs=[(self.bug,)] if self.bug else ())

    @property
    def run(self) -> str:
        """The command that runs one seed of it, without the seed."""
        return run_command(self.plan.request(self.cell, 0)).removesuffix(" 0")

    def command(self, seeds: str) -> str:
        """Return the command that runs `seeds` of it as a campaign."""
        words = ["faultline", "campaign", "--plan", self.campaign]
        words += ["--planted-bug", self.bug] if self.bug else []
        plan = load_plan(self.campaign)
        words += ["--system", self.system] if len(plan.systems) > 1 else []
        words += ["--workload", self.cell.workload] if len(plan.workloads) > 1 else []
        words += ["--faults", ",".join(self.cell.faults)] if len(plan.fault_sets) > 1 else []
        return shlex.join([*words, "--seeds", seeds])


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the seeds `0..runs-1` at one place.

    `found` counts the runs with a finding that the bug's `caught_by` names (any violation, without a bug); `expected`
    has the anomalies that the campaign expects of the cell: some options break the promise by design.
    `by_clients` counts the runs that a checker of clients' answers accused, and `by_any` those with any violation; both
    are unset in records that are older than these counts. `undecided` are the runs that neither passed nor violated.
    `first_seed` is the first of `found`, -1 for none, `finding` its
    checker and anomaly, `sentence` its sentence. `marks_missing` are situations that the campaign demands and no run of
    this cell reached; other cells of the campaign may have.
    """

    system: str
    bug: str = ""
    campaign: str
    cell: str
    run: str
    command: str
    runs: int
    found: int
    expected: Literal["pass", "violation"] = "pass"
    undecided: int = 0
    by_clients: int | msgspec.UnsetType = msgspec.UNSET
    by_any: int | msgspec.UnsetType = msgspec.UNSET
    first_seed: int = -1
    finding: str = ""
    sentence: str = ""
    marks_missing: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key of the place."""
        return self.system, self.bug, self.campaign, self.cell

    @property
    def rate(self) -> float:
        """The share of runs that found it."""
        return self.found / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson 95 % interval of the rate."""
        return wilson_interval(self.found, self.runs)


class Untailored(msgspec.Struct, frozen=True, kw_only=True):
    """The finds of the default campaign of `system` with `bug` planted: `runs` of it, from seed 1 on.

    `by_any` are the runs with a violation, `by_clients` those that a checker of clients' answers accused, `refused`
    those that planning refused. `first` is the command of the first violation, empty without one, and `first_s` the
    processor time until then.
    """

    system: str
    bug: str
    runs: int
    by_any: int
    by_clients: int
    refused: int = 0
    first: str = ""
    first_s: float = 0.0
    processor_s: float

    @property
    def key(self) -> tuple[str, str]:
        """The key of the bug."""
        return self.system, self.bug


def runs_until_found(rate: float, certainty: float) -> int | None:
    """Return the number of runs that find, with this certainty, a bug that each run finds at `rate`; None for never."""
    if rate <= 0:
        return None
    return 1 if rate >= 1 else max(1, math.ceil(math.log(1 - certainty) / math.log(1 - rate)))


def reference_systems() -> list[NodeSystem]:
    """Return the systems that come with Faultline and are assembled from patterns, in the order of their
    registration."""
    return [load_system(name) for name, path in systems().items() if path.startswith(_REFERENCE)]


def bugs(system: NodeSystem) -> list[PlantedBug]:
    """Return the planted bugs of `system`, by pattern and row."""
    return sorted(
        system.planted_bugs.values(), key=lambda planted_bug: (planted_bug.pattern, planted_bug.id, planted_bug.name)
    )


def bug_places(system: str, planted_bug: PlantedBug) -> list[Place]:
    """Return the cells of the campaign that catches `planted_bug`."""
    plan = plan_from_flags(plan=planted_bug.campaign, planted_bugs=[(planted_bug.name,)])
    return [
        Place(system, planted_bug.name, planted_bug.campaign, cell) for cell in plan.cells() if cell.system == system
    ]


def correct_places(system: str) -> list[Place]:
    """Return the cells of all shipped simulated campaigns with the correct `system`.

    A cell of several campaigns is returned once, unless its campaign demands situations, which it helps to reach.
    """
    found: dict[str, Place] = {}
    for name in sorted(shipped_plans(), key=lambda name: (not load_plan(name).must_reach, name)):
        plan = load_plan(name)
        for cell in plan.cells():
            if cell.system == system and not cell.planted_bugs and not cell.expected and plan.world == "simulated":
                place = Place(system, "", name, cell)
                found.setdefault(f"{name} {place.run}" if plan.must_reach else place.run, place)
    return list(found.values())


def anomaly_places(system: str) -> list[Place]:
    """Return the cells of shipped campaigns in which `system`, without a planted bug, is expected to break its
    promise."""
    cells = [(name, cell) for name in shipped_plans() for cell in load_plan(name).cells()]
    return [
        Place(system, "", name, cell)
        for name, cell in cells
        if cell.system == system and not cell.planted_bugs and cell.expected
    ]


def campaigns_without_cells() -> list[str]:
    """Return planted bugs whose campaign has no cell of their system: they could never be recorded."""
    return [
        f"{system.name}+{planted_bug.name}: {planted_bug.campaign}"
        for system in reference_systems()
        for planted_bug in bugs(system)
        if not bug_places(system.name, planted_bug)
    ]


def read_records(path: Path = DATA) -> dict[tuple[str, str, str, str], Record]:
    """Return the records in `path` by place; none when it does not exist."""
    return {record.key: record for record in _read(Record, path)}


def write_records(records: Iterable[Record], path: Path = DATA) -> None:
    """Write `records` to `path`, sorted, one a line."""
    _write(sorted(records, key=lambda record: record.key), path)


def read_untailored(path: Path = UNTAILORED) -> dict[tuple[str, str], Untailored]:
    """Return what default campaigns find, by system and bug; nothing when `path` does not exist."""
    return {record.key: record for record in _read(Untailored, path)}


def write_untailored(records: Iterable[Untailored], path: Path = UNTAILORED) -> None:
    """Write what default campaigns find to `path`, sorted, one a line."""
    _write(sorted(records, key=lambda record: record.key), path)


def _read(kind: type[_Line], path: Path) -> list[_Line]:
    return msgspec.json.Decoder(kind).decode_lines(path.read_bytes()) if path.exists() else []


def _write(records: Iterable[Record | Untailored], path: Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(msgspec.json.Encoder().encode_lines(records))
    partial.replace(path)


def unrecorded(records: dict[tuple[str, str, str, str], Record]) -> Iterator[str]:
    """Yield planted bugs without a record that shows them, and correct systems without any, each with the reason."""
    for system in reference_systems():
        for planted_bug in bugs(system):
            known = [
                record for place in bug_places(system.name, planted_bug) if (record := fresh_record(records, place))
            ]
            if not any(record.found for record in known):
                lacking = "not found" if known else "not recorded"
                yield f"{system.name}+{planted_bug.name}: {lacking} in {planted_bug.campaign}"
        for place in anomaly_places(system.name):
            if (anomaly := fresh_record(records, place)) is None or not anomaly.found:
                yield f"{place.cell.name}: the anomaly expected in {place.campaign} is not recorded"
        if not any(fresh_record(records, place) for place in correct_places(system.name)):
            yield f"{system.name}: no campaign of the correct system is recorded"


def best_record(
    records: dict[tuple[str, str, str, str], Record], system: str, planted_bug: PlantedBug
) -> Record | None:
    """Return the record of the cell in which `planted_bug` was found most often; None without a record of today's
    campaign."""
    known = [record for place in bug_places(system, planted_bug) if (record := fresh_record(records, place))]
    return max(known, key=lambda record: record.rate, default=None)


def detection_lines(records: dict[tuple[str, str, str, str], Record]) -> str:
    """Return the best record of each planted bug in short, one JSON object a line, for the package."""
    best = [
        Detection(system=system.name, bug=planted_bug.name, campaign=one.campaign, runs=one.runs, found=one.found)
        for system in reference_systems()
        for planted_bug in bugs(system)
        if (one := best_record(records, system.name, planted_bug))
    ]
    in_order = sorted(best, key=lambda one: (one.system, one.bug))
    return msgspec.json.Encoder().encode_lines(in_order).decode()


def marks_missing(records: Iterable[Record]) -> list[str]:
    """Return the situations that campaigns demand and none of the recorded cells of the correct system reached."""
    missing: dict[tuple[str, str], set[str]] = {}
    for record in records:
        if not record.bug and record.expected == "pass":
            place = record.system, record.campaign
            missing[place] = missing.get(place, set(record.marks_missing)) & set(record.marks_missing)
    return [f"{system}, {campaign}: {mark}" for (system, campaign), marks in missing.items() for mark in sorted(marks)]


def fresh_record(records: dict[tuple[str, str, str, str], Record], place: Place) -> Record | None:
    """Return the record of `place`, unless its campaign was changed since."""
    record = records.get(place.key)
    return record if record is not None and record.run == place.run else None
