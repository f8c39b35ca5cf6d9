"""The waves of a guided campaign: what each run is to be, and what was learned from those before.

Two bandits share the budget out: one chooses among the cells, one among a fresh universe and the kinds of change. A
run that reached something new, coverage or a kind of violation, rewards both of its choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from faultline.campaign.guided.archive import Archive, Entry
from faultline.campaign.guided.bandit import Bandit
from faultline.campaign.guided.mutation import CHANGES, ChangeKind, changeable_options
from faultline.campaign.guided.signal import Signal, read_signals
from faultline.campaign.journal import write_record
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan, WorkUnit
from faultline.campaign.simulate import SimulationJob
from faultline.harness.generator.chance import chance_of_text
from faultline.harness.untrusted import DamagedInput, read_json

__all__ = ["Choice", "Guide", "GuidedUnit", "carry_out_waves", "decided_units", "planned_by_cell", "units_of"]

_OPTIONS_COMPARED = 8
"""The number of option values from which the one with most new pairs is taken: the best of all is often illegal, as
pairs that planning refuses stay new for ever."""
_UNITS_PER_WAVE = 8

ChoiceKind = Literal["fresh"] | ChangeKind


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about the run with this `seed`: a `fresh` universe, or a change of the run called `parent`.

    The `wish` is the option value or event that a change tries first.
    """

    seed: int
    kind: ChoiceKind = "fresh"
    parent: str = ""
    wish: str = ""


class GuidedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A block of decided runs of one cell: what one task carries out. `number` is its place in the campaign."""

    number: int
    cell: int
    wave: int
    choices: tuple[Choice, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the block, in order."""
        return tuple(each.seed for each in self.choices)


def carry_out_waves(job: SimulationJob, carry_out: Callable[[Sequence[GuidedUnit]], list[str]]) -> list[str]:
    """Decide and carry out one wave after the other; return the sentences of `carry_out` about units given up.

    The decisions are written before the wave begins, so that the folder tells at any time what was to run.
    """
    guide, told = Guide(job), list[str]()
    for wave in range(guide.waves):
        if job.folder.stopped.exists():
            break
        units = guide.decide(wave)
        write_record(job.folder.wave(wave), units)
        told += carry_out(units)
        guide.learn(units, read_signals(job.folder.signals_part(unit.number) for unit in units))
    return told


class Guide:
    """The state of a guided campaign between two waves: a pure function of the plan and the signals so far."""

    def __init__(self, job: SimulationJob) -> None:
        plan = job.plan
        assert plan.guided, "the campaign is guided"
        self._plan = plan
        self._cells = plan.cells()
        self._seeds = plan.seed_range()
        self._wave_size = plan.guided.wave
        self._units = 0
        self._by_cell = Bandit(range(len(self._cells)))
        self._by_kind: Bandit[ChoiceKind] = Bandit(("fresh", *CHANGES))
        self._options = []
        for cell in self._cells:
            request = plan.request(cell, self._seeds.start)
            self._options.append(changeable_options(request, job.engine.resolve(request)))
        self.archives = {cell.system: Archive() for cell in self._cells}
        self.waves = -(-len(self._seeds) // self._wave_size)

    def decide(self, wave: int) -> tuple[GuidedUnit, ...]:
        """Return the work of `wave`, counted from 0, in blocks of one cell each."""
        seeds = self._seeds[wave * self._wave_size : (wave + 1) * self._wave_size]
        chosen: dict[int, list[Choice]] = {}
        for seed in seeds:
            cell = self._by_cell.choose()
            chosen.setdefault(cell, []).append(self._choice(cell, seed))
        size = max(1, min(self._plan.seeds_per_task, self._wave_size // _UNITS_PER_WAVE))
        blocks = [
            (cell, tuple(own[start : start + size]))
            for cell, own in sorted(chosen.items())
            for start in range(0, len(own), size)
        ]
        units = tuple(
            GuidedUnit(number=self._units + place, cell=cell, wave=wave, choices=choices)
            for place, (cell, choices) in enumerate(blocks)
        )
        self._units += len(units)
        return units

    def learn(self, units: Sequence[GuidedUnit], signals: Sequence[Signal]) -> None:
        """Take the results of a wave, in the order of its seeds."""
        places = {choice.seed: (unit.cell, choice) for unit in units for choice in unit.choices}
        cells, kinds = list[tuple[int, float]](), list[tuple[ChoiceKind, float]]()
        for signal in signals:
            number, choice = places[signal.seed]
            cell = self._cells[number]
            reward = float(self.archives[cell.system].add(cell.name, signal))
            cells.append((number, reward))
            kinds.append((choice.kind, reward))
        self._by_cell.learn(cells)
        self._by_kind.learn(kinds)

    def _choice(self, number: int, seed: int) -> Choice:
        cell = self._cells[number]
        archive, rng = self.archives[cell.system], Random(chance_of_text("wave", cell.name, seed))
        entry = archive.parent(cell.name, rng)
        kind = self._by_kind.choose(() if entry is not None else ("fresh",))
        if entry is None or kind == "fresh":
            return Choice(seed=seed)
        wish = self._wish(archive, self._options[number], entry, kind, rng)
        return Choice(seed=seed, kind=kind, parent=entry.signal.run_id, wish=wish)

    def _wish(
        self, archive: Archive, options: Mapping[str, Sequence[str]], entry: Entry, kind: ChoiceKind, rng: Random
    ) -> str:
        if kind == "aim":
            return archive.rarest_event(entry)
        if kind != "option":
            return ""
        had = entry.signal.options
        others = [(name, value) for name, each in options.items() for value in each if had.get(name) != value]
        return archive.rarest_value(had, rng.sample(others, min(len(others), _OPTIONS_COMPARED)))


def units_of(plan: CampaignPlan, folder: CampaignFolder) -> tuple[WorkUnit | GuidedUnit, ...]:
    """Return all work of a campaign: of a guided one, as far as it was decided."""
    return decided_units(folder) if plan.guided else plan.units()


def decided_units(folder: CampaignFolder) -> tuple[GuidedUnit, ...]:
    """Return the units of the waves that were decided. A file that cannot be read decided nothing."""
    return tuple(_units_in(folder.waves_parts()))


def _units_in(paths: Sequence[Path]) -> Iterator[GuidedUnit]:
    for path in paths:
        try:
            yield from read_json(path, tuple[GuidedUnit, ...])
        except DamagedInput:
            continue


def planned_by_cell(plan: CampaignPlan, folder: CampaignFolder) -> Counter[str]:
    """Return the number of runs that were planned for each cell: of a guided campaign, those decided so far."""
    cells = plan.cells()
    if not plan.guided:
        return Counter({cell.name: len(plan.seed_range()) for cell in cells})
    counts = Counter({cell.name: 0 for cell in cells})
    for unit in decided_units(folder):
        if 0 <= unit.cell < len(cells):
            counts[cells[unit.cell].name] += len(unit.choices)
    return counts
