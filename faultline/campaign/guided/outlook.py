"""The outlook of a guided campaign: how its coverage grew wave by wave, and an estimate of what is left to find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from faultline.campaign.guided.archive import Archive
from faultline.campaign.guided.signal import read_signals
from faultline.campaign.guided.unseen import Unseen, unseen
from faultline.campaign.guided.waves import GuidedUnit, decided_units
from faultline.campaign.layout import CampaignFolder
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.statistics import rule_of_three

__all__ = ["GuidedOutlook", "SystemOutlook", "outlook", "outlook_sentences"]


class SystemOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """One system: the pairs of successive events at a node, and the kinds of violation.

    `growth` has the pairs and the kinds of violation known after each wave.
    """

    system: str
    pairs: Unseen
    violations: Unseen
    growth: tuple[tuple[int, int], ...]


class GuidedOutlook(msgspec.Struct, frozen=True, kw_only=True):
    """A guided campaign: the waves that were decided, the finished runs by what they are, such as `fresh` or `option`,
    the runs that reached something new likewise, and the outlook of each system."""

    waves: int
    kinds: dict[str, int]
    new: dict[str, int]
    systems: tuple[SystemOutlook, ...]


def outlook(plan: CampaignPlan, folder: CampaignFolder) -> GuidedOutlook | msgspec.UnsetType:
    """Return the outlook of the campaign in `folder`, unset for one that is not guided."""
    if not plan.guided:
        return msgspec.UNSET
    cells, waves = plan.cells(), dict[int, list[GuidedUnit]]()
    for unit in decided_units(folder):
        if 0 <= unit.cell < len(cells):
            waves.setdefault(unit.wave, []).append(unit)
    archives = {cell.system: Archive() for cell in cells}
    growth: dict[str, list[tuple[int, int]]] = {system: [] for system in archives}
    kinds, new = Counter[str](), Counter[str]()
    for _, units in sorted(waves.items()):
        places = {choice.seed: (unit.cell, choice.kind) for unit in units for choice in unit.choices}
        for signal in read_signals(folder.signals_part(unit.number) for unit in units):
            if signal.seed not in places:
                continue
            number, kind = places[signal.seed]
            kinds[kind] += 1
            new[kind] += archives[cells[number].system].add(cells[number].name, signal)
        for system, archive in archives.items():
            growth[system].append((len(archive.pairs), len(archive.violations)))
    return GuidedOutlook(
        waves=len(waves),
        kinds=dict(kinds),
        new=dict(new),
        systems=tuple(_of_system(system, archive, growth[system]) for system, archive in archives.items()),
    )


def outlook_sentences(guided: GuidedOutlook) -> Iterator[str]:
    """Yield the sentences on the runs of a guided campaign, on its coverage, and on what is left to find."""
    told = ", ".join(f"{guided.new[kind]} of {count} {kind}" for kind, count in sorted(guided.kinds.items()))
    yield f"Guided in {guided.waves} waves; runs that reached something new: {told or 'none'}."
    for each in guided.systems:
        pairs, before = each.pairs, each.growth[-2][0] if len(each.growth) > 1 else 0
        yield (
            f"Coverage of {each.system}: {pairs.seen} pairs of successive events at a node "
            f"({pairs.seen - before} new in the last wave), {pairs.once} of them in a single run. "
            f"Good-Turing estimate: {pairs.next_run:.2g} new pairs in the next run; at least "
            f"{pairs.unseen_min:.0f} pairs are unseen."
        )
        yield f"Kinds of violation of {each.system}: {_violations(each.violations)}"


def _violations(seen: Unseen) -> str:
    if not seen.seen:
        return f"none in {seen.runs} runs; below {rule_of_three(seen.runs):.2g} of runs like these show one."
    return (
        f"{seen.seen}, {seen.once} of them in a single run. Good-Turing estimate: {seen.next_run:.2g} of the next runs "
        f"show a new kind; at least {seen.unseen_min:.0f} kinds are unseen."
    )


def _of_system(system: str, archive: Archive, growth: Iterable[tuple[int, int]]) -> SystemOutlook:
    pairs = {pair: archive.met[pair] for pair in archive.pairs}
    return SystemOutlook(
        system=system,
        pairs=unseen(pairs, archive.runs),
        violations=unseen(archive.violations, archive.runs),
        growth=tuple(growth),
    )
