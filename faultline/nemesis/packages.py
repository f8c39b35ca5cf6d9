"""Fault packages: which faults fall when, as a pure function of (seed, nodes, start, end).

**Swarm.** Each seed uses a random non-empty subset of its package's recipes: with everything on all the time, faults
mask one another and rare pairs never get a run to themselves (Groce et al., "Swarm testing", ISSTA 2012). A long run
is worth several short ones, so it draws another subset every fifteen seconds. A run of a store on hosts has some ten
faults, and few such runs are made: there each subset's turn begins with a *main* recipe, without which the package
would not do what it says.

**Periods.** Time is cut into periods of about 650 ms, or a fifteenth of a longer run up to 4 s; stores on hosts have
longer ones, as they take seconds to start and to elect (`paced`). About a fifth of them
stay free of faults, so that the cluster also recovers and makes progress; the others begin one fault, sometimes two.
Half of the faults are short, half outlast an election timeout: a cut that heals before a node noticed it shows other
bugs than one after which two nodes believe they lead.

**No quarrels.** A fault occupies what it acts on (links, link quality, clocks, processes) until it ends, and nothing
else that acts on the same is planned meanwhile. So faults of different families overlap freely, those of one never do,
and each can be ended by itself. Packages asked for together should be `combined`, which keeps this across them.

**Events.** Faults that strike at events of nodes (`Package.aimed`) are planned apart, from draws of their own, so that
they move no other. Most events are rare and do not come, so that more faults wait than are to strike. An
event may come while any other fault is in force, so only kinds that bear this are aimed: a node that is down is not
killed again, and a cut ends by itself. Clocks and the quality of links have one setting at a time.

**Rates.** Some recipes say how often their fault happens in a year, to a node, a rack or a cluster. They are drawn by
these rates, for as many nodes and racks as there are, and no seed leaves them out. A recipe without a rate beside them
is as likely as they are on average.

**The end.** Every fault ends before `end_us`; the world heals everything then in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

import msgspec

from faultline.harness.generator.chance import chance_of_text
from faultline.harness.plan import ANY_NODE, EVENT_NODE, PlannedFault, Trigger
from faultline.harness.racks import RACKS_USUAL

__all__ = ["Package", "Recipe", "aimed_recipe", "combined", "period_us", "quarrel"]

_PERIOD_US = 650_000
_PERIOD_US_MAX = 4_000_000
_PERIODS_PER_RUN = 15
_SEASON_US = 15_000_000
_ELECTION_US = 550_000
"""A long fault lasts at least this: twice the shortest election timeout of the reference systems, and then some."""
_SHORTEST_US = 20_000
_FREE_SHARE = 0.2
_SECOND_FAULT_SHARE = 0.35

_AIMED_KINDS = ("kill", "pause", "power-off", "partition")
_AIMED_PER_PERIOD = 2
"""The number of faults that wait for an event, for each period: more than are to strike, as most events do not come."""
_FROM_THE_START = 0.4
"""The share of such faults that wait from the start of the run: some events come once."""
_EVENTS_AT_ONCE = (4, 8, 16)
_ORDINALS = (1, 1, 1, 2, 3, 5)
_EVENT_PLACES = (ANY_NODE, ANY_NODE, ANY_NODE, "leader", "follower")
_DELAYS_US = (0, 0, 0, 0, 300, 1_000, 5_000)
_EVENT_NODES = 3
"""The weight of the node of the event among the targets of an aimed fault."""

_OCCUPIES = {
    "partition": ("links",),
    "packet-loss": ("quality",),
    "packet-delay": ("quality",),
    "packet-duplicate": ("quality",),
    "packet-reorder": ("quality",),
    "packet-corrupt": ("quality",),
    "packet-rate": ("quality",),
    "connection-kill": ("connections",),
    # A reset is proved by trying to connect, which takes a link that is neither cut nor loses packets.
    "connection-reset": ("connections", "links", "quality"),
    # Nothing on the link of a node that is cut off altogether can be proved, nor can clients see the node come up.
    "link-down": ("links", "quality", "connections", "processes"),
    "clock-step": ("clocks",),
    "clock-strobe": ("clocks",),
    "clock-drift": ("clocks",),
    "kill": ("processes",),
    "rolling-restart": ("processes",),
    "pause": ("processes",),
    "freeze": ("processes",),
    "cpu-squeeze": ("processes",),
    "memory-squeeze": ("processes",),
    "power-off": ("processes", "links", "quality", "connections"),
    "disk-full": ("processes",),
    "disk-read-only": ("processes",),
    "disk-stall": ("processes",),
    # A node that hears no other has nothing to sync, so that nothing could be proved.
    "fsync-fail": ("processes", "links"),
    # Damaged data bears every fault but other damage: it is met when a process starts, so that kills must fall into it.
    "disk-corrupt": ("data",),
    "disk-lost-write": ("data",),
    "disk-misdirect": ("data",),
    "disk-lying-fsync": ("data",),
}
"""The things that a kind of fault acts on, and that no other may act on meanwhile."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to make a fault: its kind, the targets to draw from, and for each argument the values to draw from.

    `long_share` is how often the fault outlasts an election; `nodes_min` how many nodes it needs to mean anything. A
    recipe that `is_main` falls in each run of a store. `racks_min` is how many racks it needs, where it strikes racks.
    A fault with a rate happens so often `per_year` to each node, rack or cluster, as `rate_of` says.
    """

    kind: str
    targets: tuple[str, ...] = ("one",)
    arguments: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    long_share: float = 0.5
    nodes_min: int = 1
    is_main: bool = False
    racks_min: int = 0
    per_year: float = 0.0
    rate_of: Literal["cluster", "rack", "node"] = "cluster"

    def is_for(self, nodes: int, racks: int) -> bool:
        """Return whether so many nodes in so many racks are enough for the fault to mean anything."""
        return self.nodes_min <= nodes and self.racks_min <= racks

    def fault(self, at_us: int, duration_us: int, rng: Random) -> PlannedFault:
        """Return a fault of this recipe, its target and arguments drawn."""
        argument = {name: _drawn(values, rng) for name, values in self.arguments}
        return PlannedFault(self.kind, at_us, duration_us, _drawn(self.targets, rng), argument)


@dataclass(slots=True)
class Package:
    """A `FaultPackage`: recipes and how densely they fall. Not changed once made.

    `pace` scales the period, which is `period_us_min` at least. `members` are the packages that were combined. The
    recipes in `aimed` strike at `events`. `racks` is the number of racks, or 0 for the usual one.
    """

    name: str
    summary: str
    recipes: tuple[Recipe, ...]
    pace: float = 1.0
    period_us_min: int = 0
    members: tuple[Package, ...] = ()
    aimed: tuple[Recipe, ...] = ()
    events: tuple[str, ...] = ()
    racks: int = 0
    kinds: tuple[str, ...] = field(init=False)
    is_aimed: bool = field(init=False)
    strikes_racks: bool = field(init=False)

    def __post_init__(self) -> None:
        self.strikes_racks = any(recipe.racks_min for recipe in (*self.recipes, *self.aimed))
        self.kinds = tuple(dict.fromkeys(recipe.kind for recipe in (*self.recipes, *self.aimed)))
        self.is_aimed = bool(self.aimed)

    def plan(self, *, seed: int, nodes: tuple[str, ...], start_us: int, end_us: int) -> tuple[PlannedFault, ...]:
        """Return the faults between `start_us` and `end_us`, in order of time, all ended before `end_us`."""
        rng = Random(chance_of_text("package", self.name, seed))
        racks = self.racks or min(RACKS_USUAL, len(nodes))
        usable = [recipe for recipe in self.recipes if recipe.is_for(len(nodes), racks)]
        main = [recipe for recipe in usable if recipe.is_main and self.period_us_min]
        recipes, season, first = _subset(usable, rng), 0, main
        faults: list[PlannedFault] = []
        size = {"cluster": 1, "rack": racks, "node": len(nodes)}
        usual_us = max(period_us(end_us - start_us) * self.pace, self.period_us_min)
        for begin_us, length_us in _periods(start_us, end_us, usual_us, rng):
            if (begin_us - start_us) // _SEASON_US > season:
                recipes, season, first = _subset(usable, rng), (begin_us - start_us) // _SEASON_US, main
            wanted = _wanted(rng)
            if recipes:
                fallen = _fall(first or recipes, size, wanted, begin_us, length_us, end_us, faults, rng)
                faults, first = faults + fallen, [] if fallen else first
        if not faults and recipes and end_us - start_us > 2 * _SHORTEST_US:
            faults = [_by_rate(first or recipes, size, rng).fault(start_us, (end_us - start_us) // 2, rng)]
        aiming = [recipe for recipe in self.aimed if recipe.is_for(len(nodes), racks)]
        if aiming and self.events:
            faults += _aimed(aiming, self.events, start_us, end_us, Random(chance_of_text("aimed", self.name, seed)))
        return tuple(sorted(faults, key=lambda fault: (fault.at_us, fault.kind)))

    def paced(self, period_us_min: int) -> Package:
        """Return the same package with periods of at least `period_us_min`."""
        return replace(self, period_us_min=period_us_min)

    def aimed_too(self) -> Package:
        """Return the same package with faults of those of its kinds that bear it at events, besides its own."""
        own = tuple(aimed_recipe(recipe) for recipe in self.recipes if recipe.kind in _AIMED_KINDS)
        return replace(self, aimed=tuple(dict.fromkeys((*self.aimed, *own))))

    def at_events(self, events: tuple[str, ...]) -> Package:
        """Return the same package with the `events` at which its aimed faults strike."""
        return replace(self, events=events)

    def in_racks(self, racks: int) -> Package:
        """Return the same package for a cluster of so many `racks`."""
        return replace(self, racks=racks)

    def only(self, names: tuple[str, ...]) -> Package:
        """Return the package combined of those members that are called `names`."""
        return combined(member for member in self.members if member.name in names)


def aimed_recipe(recipe: Recipe) -> Recipe:
    """Return `recipe` with the node of the event as its most likely target."""
    return replace(recipe, targets=(EVENT_NODE,) * (_EVENT_NODES * len(recipe.targets)) + recipe.targets)


def combined(packages: Iterable[Package]) -> Package:
    """Return one package with the recipes of all `packages`, so that their faults do not quarrel."""
    chosen = tuple(packages)
    if len(chosen) == 1:
        return chosen[0]
    recipes = tuple(dict.fromkeys(recipe for package in chosen for recipe in package.recipes))
    return Package(
        name="+".join(package.name for package in chosen),
        summary="; ".join(package.summary for package in chosen),
        recipes=recipes,
        pace=min((package.pace for package in chosen), default=1.0),
        members=chosen,
        aimed=tuple(dict.fromkeys(recipe for package in chosen for recipe in package.aimed)),
    )


def period_us(span_us: int) -> int:
    """Return the usual length of a period in a run of `span_us`."""
    return min(_PERIOD_US_MAX, max(_PERIOD_US, span_us // _PERIODS_PER_RUN))


def _periods(start_us: int, end_us: int, usual_us: float, rng: Random) -> list[tuple[int, int]]:
    periods, at_us = [], start_us
    while at_us < end_us:
        length_us = int(usual_us * _between(0.77, 1.23, rng))
        periods.append((at_us, length_us))
        at_us += max(1, length_us)
    return periods


def _wanted(rng: Random) -> int:
    if rng.random() < _FREE_SHARE:
        return 0
    return 2 if rng.random() < _SECOND_FAULT_SHARE else 1


def _fall(
    recipes: list[Recipe],
    size: Mapping[str, int],
    wanted: int,
    begin_us: int,
    length_us: int,
    end_us: int,
    faults: list[PlannedFault],
    rng: Random,
) -> list[PlannedFault]:
    """Return up to `wanted` faults that begin in one period and do not quarrel with `faults` or each other."""
    fallen: list[PlannedFault] = []
    for _ in range(wanted):
        at_us = begin_us + int(length_us * _between(0.0, 0.5, rng))
        recipe = _by_rate(recipes, size, rng)
        duration_us = min(_duration_us(recipe, length_us, rng), end_us - 1 - at_us)
        busy_until_us = max(
            (fault.stop_us for fault in faults + fallen if quarrel(fault.kind, recipe.kind)), default=-1
        )
        fault = recipe.fault(at_us, duration_us, rng)
        if duration_us >= _SHORTEST_US and busy_until_us < at_us:
            fallen.append(fault)
    return fallen


def _aimed(
    recipes: list[Recipe], events: tuple[str, ...], start_us: int, end_us: int, rng: Random
) -> list[PlannedFault]:
    """Return faults that wait for some of `events`; one that struck at `at_us` would end before `end_us`."""
    chosen = rng.sample(events, min(_drawn(_EVENTS_AT_ONCE, rng), len(events)))
    faults = []
    for begin_us, length_us in _periods(start_us, end_us, period_us(end_us - start_us) / _AIMED_PER_PERIOD, rng):
        at_us = start_us if rng.random() < _FROM_THE_START else begin_us + int(length_us * rng.random())
        recipe = _drawn(recipes, rng)
        duration_us = min(_duration_us(recipe, length_us, rng), end_us - 1 - at_us)
        trigger = Trigger(
            _drawn(chosen, rng), _drawn(_ORDINALS, rng), _drawn(_EVENT_PLACES, rng), _drawn(_DELAYS_US, rng)
        )
        fault = recipe.fault(at_us, duration_us, rng)
        if duration_us >= _SHORTEST_US:
            faults.append(msgspec.structs.replace(fault, trigger=trigger))
    return faults


def quarrel(kind: str, other: str) -> bool:
    """Return whether both act on the same. A kind that is plugged in is taken to act on something of its own."""
    return not set(_OCCUPIES.get(kind, (kind,))).isdisjoint(_OCCUPIES.get(other, (other,)))


def _duration_us(recipe: Recipe, length_us: int, rng: Random) -> int:
    if rng.random() < recipe.long_share:
        return int(max(_ELECTION_US * _between(1.0, 1.5, rng), length_us * _between(0.5, 0.75, rng)))
    return int(length_us * _between(0.15, 0.45, rng))


def _between(low: float, high: float, rng: Random) -> float:
    return low + (high - low) * rng.random()


def _drawn(values: Any, rng: Random) -> Any:
    return values[int(rng.random() * len(values))]


def _by_rate(recipes: list[Recipe], size: Mapping[str, int], rng: Random) -> Recipe:
    """Return a recipe drawn by its rate in a cluster that has so many racks and nodes; of equal ones, any."""
    rates = [recipe.per_year * size[recipe.rate_of] for recipe in recipes]
    given = [rate for rate in rates if rate]
    usual = sum(given) / len(given) if given else 1.0
    left = rng.random() * sum(rate or usual for rate in rates)
    for recipe, rate in zip(recipes, rates, strict=True):
        left -= rate or usual
        if left < 0:
            return recipe
    return recipes[-1]


def _subset(recipes: list[Recipe], rng: Random) -> list[Recipe]:
    """Return a random non-empty subset, every recipe as likely in as out, and those with a rate always in."""
    chosen = [recipe for recipe in recipes if rng.random() < 0.5 or recipe.per_year]
    return chosen or ([_drawn(recipes, rng)] if recipes else [])
