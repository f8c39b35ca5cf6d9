"""The matrix of a campaign: its cells, the seeds of each cell, and the expectations.

A *cell* is everything about a run but its seed: `consistent-core+stale-read/register/partition`. A plan names the
values of each dimension; the cells are their product, narrowed by `include` as a matrix build is in continuous
integration. Seeds are cut into *units*, the blocks of work that one Spark task runs.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, Protocol

import msgspec

from faultline.campaign.expectation import Expectation, allowed_anomalies
from faultline.harness.errors import UsageError
from faultline.harness.plan import cell_name
from faultline.harness.planning import RunRequest
from faultline.harness.run_record import WorldName

__all__ = ["CampaignPlan", "Cell", "Guidance", "Unit", "WorkUnit", "parse_seeds"]

_SEEDS = re.compile(r"(\d{1,15})(?:\.\.(\d{1,15}))?", re.ASCII)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the matrix. `faults` are package names, `planted_bugs` the planted bugs that are on.

    `expected` are the anomalies that the plan allows in it.
    """

    system: str
    workload: str
    faults: tuple[str, ...]
    planted_bugs: tuple[str, ...] = msgspec.field(name="mutants", default=())
    expected: Expectation = ()

    @property
    def name(self) -> str:
        """The stable name of the cell, equal to `Plan.cell` of its runs."""
        return cell_name(self.system, self.planted_bugs, self.workload, self.faults)


class WorkUnit(msgspec.Struct, frozen=True):
    """A block of seeds of one cell: what one task runs. `number` is its place in the campaign, `cell` the cell's."""

    number: int
    cell: int
    first_seed: int
    last_seed: int

    @property
    def seeds(self) -> range:
        """The seeds of the block, in order."""
        return range(self.first_seed, self.last_seed + 1)


class Unit(Protocol):
    """A block of runs of one cell, under a number of its own."""

    @property
    def number(self) -> int:
        """The place of the unit in the campaign."""

    @property
    def cell(self) -> int:
        """The place of the cell among those of the plan."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the runs, in order."""


class Guidance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of a guided campaign: `runs` in all cells together, decided in waves of `wave` runs."""

    runs: int = 400
    wave: int = 50


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines a campaign, as `plan.json` and as a TOML plan file hold it.

    `fault_sets` is a list of lists of fault packages, and `planted_bugs` one of planted bugs (the empty list is the
    correct system), which stored plans call `mutants`. `expected` maps patterns over cell names to the anomalies that
    are allowed there (`pass` for none); the first that matches counts, and none is allowed where no pattern does.
    `include` keeps the cells that match any of its patterns. `seeds` is `A..B`, both ends included. `must_reach`
    names `sometimes` marks that some run must reach, else the campaign is inconclusive; `strict` makes it so too when
    a cell shows none of the anomalies that it allows. `floors` are shares in place of the default ones
    (`faultline.harness.floors`). `keep_per_signature` whole run folders are kept of each kind of violation, and
    `seeds_per_task` seeds run in one task. `hosts` names the hosts of the world `hosts` and `host_options` says how
    they are to be, as `--hosts` and `--host-option` do. With `stop_at_violation` each run ends at the first violation
    that is certain while it goes on, and the campaign begins no further run after the first that is not allowed.
    `weather` has conditions of the simulated world in place of the usual ones (`faultline.harness.conditions`).
    `universe` is `calm`, or `drawn` for each seed; of a drawn one the `weather` is kept, and the numbers in `held`
    (`nodes`, `workers`, `operations`: those that the plan or a flag gives). A `guided` campaign shares its runs out
    among the cells itself, each with a seed of its own (`faultline.campaign.guided`). `racks` is a number of racks, or
    has the rack of each node. Unset, these are not written, so that the digests of other plans do not depend on them.
    """

    name: str = "campaign"
    summary: str = ""
    systems: tuple[str, ...] = ("consistent-core",)
    workloads: tuple[str, ...] = ("register",)
    fault_sets: tuple[tuple[str, ...], ...] = ((),)
    planted_bugs: tuple[tuple[str, ...], ...] = msgspec.field(name="mutants", default=((),))
    options: dict[str, str] = {}
    seeds: str = "0..199"
    nodes: int = 3
    workers: int = 5
    operations: int = 200
    duration_s: float | None = None
    world: WorldName = "simulated"
    hosts: str = ""
    host_options: dict[str, str] = {}
    expected: dict[str, str | tuple[str, ...]] = {}
    include: tuple[str, ...] = ("*",)
    must_reach: tuple[str, ...] = ()
    floors: dict[str, float] = {}
    strict: bool = False
    keep_per_signature: int = 20
    seeds_per_task: int = 25
    stop_at_violation: bool | msgspec.UnsetType = msgspec.UNSET
    weather: dict[str, str | int | float] | msgspec.UnsetType = msgspec.UNSET
    universe: Literal["calm", "drawn"] | msgspec.UnsetType = msgspec.UNSET
    held: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    guided: Guidance | msgspec.UnsetType = msgspec.UNSET
    racks: int | tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    def digest(self) -> str:
        """Return the SHA-256 of the encoded plan, in hexadecimal."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def seed_range(self) -> range:
        """Return all seeds of each cell, or of a guided campaign. Raise UsageError when `seeds` is not `A..B`."""
        return parse_seeds(self.seeds)

    def runs(self) -> int:
        """Return the number of runs of the whole campaign."""
        return len(self.seed_range()) * (1 if self.guided else len(self.cells()))

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells of the campaign, in the order of the plan. Raise UsageError when `include` leaves none."""
        product = itertools.product(self.systems, self.workloads, self.fault_sets, self.planted_bugs)
        cells = tuple(self._cell(*values) for values in product)
        chosen = tuple(cell for cell in cells if any(fnmatchcase(cell.name, pattern) for pattern in self.include))
        if not chosen:
            raise UsageError(
                f"No cell of campaign {self.name} matches include = {list(self.include)}.",
                f"Its cells are: {', '.join(cell.name for cell in cells) or 'none'}.",
            )
        return tuple({cell.name: cell for cell in chosen}.values())

    def expectations(self, source: str = "") -> dict[str, Expectation]:
        """Return the anomalies allowed, by pattern. Raise UsageError, with `source` for the plan, for a value that
        is no list."""
        source = source or f"campaign {self.name}"
        return {pattern: allowed_anomalies(source, pattern, value) for pattern, value in self.expected.items()}

    def _cell(self, system: str, workload: str, faults: tuple[str, ...], planted_bugs: tuple[str, ...]) -> Cell:
        cell = Cell(system=system, workload=workload, faults=faults, planted_bugs=planted_bugs)
        allowed = (allowed for pattern, allowed in self.expectations().items() if fnmatchcase(cell.name, pattern))
        return msgspec.structs.replace(cell, expected=next(allowed, ()))

    def units(self) -> tuple[WorkUnit, ...]:
        """Return the work of the campaign in blocks of at most `seeds_per_task` seeds, seed blocks outermost.

        Early blocks then touch every cell, so that an interrupted campaign has tested a little of each.
        """
        seeds = self.seed_range()
        starts = range(seeds.start, seeds.stop, self.seeds_per_task)
        places = itertools.product(starts, range(len(self.cells())))
        return tuple(
            WorkUnit(number, cell, start, min(start + self.seeds_per_task, seeds.stop) - 1)
            for number, (start, cell) in enumerate(places)
        )

    def request(self, cell: Cell, seed: int) -> RunRequest:
        """Return the request for one run."""
        return RunRequest(
            system=cell.system,
            workload=cell.workload,
            faults=cell.faults,
            seed=seed,
            planted_bugs=cell.planted_bugs,
            options=self.options,
            nodes=self.nodes,
            workers=self.workers,
            operations=self.operations,
            duration_s=self.duration_s,
            world=self.world,
            host_options=self.host_options,
            floors=self.floors,
            beyond_promise=bool(cell.expected),
            stop_at_violation=self.stop_at_violation,
            weather=self.weather,
            universe="drawn" if self.universe == "drawn" else msgspec.UNSET,
            held=self.held,
            racks=self.racks,
        )


def parse_seeds(text: str) -> range:
    """Return the seeds of `A..B` (both included) or of a single `A`. Raise UsageError for anything else."""
    match = _SEEDS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"Seeds {text!r} are not a range of seeds.", "Write A..B, for example 0..199.")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"Seeds {text!r} run backwards.", f"Write {last}..{first}.")
    return range(first, last + 1)
