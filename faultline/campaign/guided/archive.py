"""The archive of a guided campaign: the runs that reached something new, and what all runs reached how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from random import Random
from typing import NamedTuple

from faultline.campaign.guided.signal import Signal

__all__ = ["Archive", "Entry"]


class Entry(NamedTuple):
    """A run of the archive, and the pairs and features that it was the first to reach."""

    signal: Signal
    new: tuple[str, ...]


class Archive:
    """The coverage of the runs of one system, and by cell those that extended it.

    `met` counts the runs that met each pair of events and each feature, `violations` those with each kind of violation.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.met: Counter[str] = Counter()
        self.pairs: set[str] = set()
        self.violations: Counter[str] = Counter()
        self._settings: set[frozenset[tuple[str, str]]] = set()
        self._entries: dict[str, list[Entry]] = {}
        self._chosen: Counter[str] = Counter()

    def add(self, cell: str, signal: Signal) -> bool:
        """Count a run of `cell`, and keep it if it reached something new. Return whether it did."""
        behaviour = (*signal.pairs, *signal.features)
        new = tuple(each for each in behaviour if each not in self.met)
        is_new = bool(new) or (bool(signal.violation) and signal.violation not in self.violations)
        self.runs += 1
        self.met.update(behaviour)
        self.pairs.update(signal.pairs)
        self._settings.update(map(frozenset, combinations(sorted(signal.options.items()), 2)))
        if signal.violation:
            self.violations[signal.violation] += 1
        if new and signal.is_archivable:
            self._entries.setdefault(cell, []).append(Entry(signal, new))
        return is_new

    def parent(self, cell: str, rng: Random) -> Entry | None:
        """Return a run of `cell` to be changed, None when the archive has none.

        One that reached what few runs met is likelier, and less so each time it was chosen: the power schedule of
        AFLFast (Böhme et al., CCS 2016).
        """
        entries = self._entries.get(cell, [])
        if not entries:
            return None
        weights = [self._rarity(each) / (1 + self._chosen[each.signal.run_id]) for each in entries]
        chosen = rng.choices(entries, weights)[0]
        self._chosen[chosen.signal.run_id] += 1
        return chosen

    def rarest_event(self, entry: Entry) -> str:
        """Return the second event of the pair that the fewest runs met, among those new in `entry`; '' without one."""
        pairs = sorted((self.met[each], each) for each in entry.new if each in self.pairs)
        return pairs[0][1].partition(" > ")[2] if pairs else ""

    def rarest_value(self, options: Mapping[str, str], candidates: Iterable[tuple[str, str]]) -> str:
        """Return the option value, as `name=value`, that makes most pairs with `options` which no run had."""
        best = max(candidates, key=lambda each: self._new_pairs(options, each), default=None)
        return f"{best[0]}={best[1]}" if best else ""

    def _rarity(self, entry: Entry) -> float:
        return sum(1 / self.met[each] for each in entry.new)

    def _new_pairs(self, options: Mapping[str, str], setting: tuple[str, str]) -> int:
        others = (each for each in options.items() if each[0] != setting[0])
        return sum(frozenset((setting, other)) not in self._settings for other in others)
