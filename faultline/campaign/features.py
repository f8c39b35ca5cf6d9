"""The features of the systems that the runs of a campaign have entered, and the floor under them.

A single run may miss any feature. When no run of many has entered a feature that the promise rests on, although their
faults and options call for it, the campaign has not tested the promise, and its pass would say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from faultline.campaign.matrix import Cell
from faultline.harness.feature import due_features, features_of, possible_features
from faultline.harness.floors import FLOORS

__all__ = [
    "RUNS_MIN",
    "RUNS_MIN_DRAWN",
    "DeclaredFeature",
    "FeaturesEntered",
    "declared_features",
    "features_entered",
    "features_sentences",
    "features_shortfall",
]

RUNS_MIN = 20
"""The number of runs that could enter a feature after which one is expected to have done so."""

RUNS_MIN_DRAWN = 200
"""The same number in drawn universes, most of which have options, sizes or faults that keep a run from the feature."""

FLOOR = "features"

Rows = Iterable[Mapping[str, Any]]


class DeclaredFeature(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that `system` can enter with the options of the campaign; in the cells `due_in` some run must."""

    system: str
    name: str
    summary: str
    due_in: tuple[str, ...] = ()


class FeaturesEntered(msgspec.Struct, frozen=True, kw_only=True):
    """The number of the features of `system` that some run of a campaign entered; `never` are the others, by name."""

    system: str
    entered: int
    declared: int
    never: tuple[str, ...] = ()


def declared_features(
    cells: Iterable[Cell], systems: Iterable[object], options: Iterable[Mapping[str, str]], *, drawn: bool = False
) -> tuple[DeclaredFeature, ...]:
    """Return the features of all cells; `systems` and `options` are those of each of them.

    Where universes are `drawn`, the options are the calm ones, and every feature may be entered. A planted bug may keep
    its system from a feature, so those cells owe nothing.
    """
    found: dict[tuple[str, str], DeclaredFeature] = {}
    for cell, system, values in zip(cells, systems, options, strict=True):
        due = set() if cell.planted_bugs else {each.name for each in due_features(system, values, cell.faults)}
        for feature in features_of(system) if drawn else possible_features(system, values):
            place = cell.system, feature.name
            known = found.get(place) or DeclaredFeature(system=cell.system, name=feature.name, summary=feature.summary)
            due_in = (*known.due_in, cell.name) if feature.name in due else known.due_in
            found[place] = msgspec.structs.replace(known, due_in=due_in)
    return tuple(found.values())


def features_entered(features: Sequence[DeclaredFeature], marks: Mapping[str, int]) -> tuple[FeaturesEntered, ...]:
    """Return, for each system, the number of its features that some run entered, and the names of the others."""
    own: dict[str, list[str]] = {}
    for each in features:
        own.setdefault(each.system, []).append(each.name)
    never = {system: tuple(name for name in names if not marks.get(name)) for system, names in own.items()}
    return tuple(
        FeaturesEntered(
            system=system, entered=len(names) - len(never[system]), declared=len(names), never=never[system]
        )
        for system, names in own.items()
    )


def features_sentences(systems: Iterable[FeaturesEntered]) -> Iterator[str]:
    """Yield, for each system, the number of its features that some run entered, and those that none did."""
    for each in systems:
        never = f"; never {', '.join(each.never)}" if each.never else ""
        yield f"Features of {each.system}: {each.entered} of {each.declared} entered{never}."


def features_shortfall(
    features: Iterable[DeclaredFeature],
    marks: Rows,
    cells: Rows,
    floors: Mapping[str, float],
    runs_min: int = RUNS_MIN,
) -> str:
    """Return a sentence when the campaign entered too few essential features; empty when it entered enough.

    `marks` and `cells` are the rows of those result tables, `floors` replace default shares. Features that fewer than
    `runs_min` runs could enter are not asked for.
    """
    runs = Counter({row["cell"]: row["runs"] - row["harness_errors"] for row in cells})
    entered = {(row["cell"], row["mark"]) for row in marks if row["runs"]}
    due = [each for each in features if sum(runs[cell] for cell in each.due_in) >= runs_min]
    missing = [each for each in due if not any((cell, each.name) in entered for cell in each.due_in)]
    least = floors.get(FLOOR, FLOORS[FLOOR].default)
    if len(due) - len(missing) >= least * len(due):
        return ""
    told = "; ".join(_missing(each, sum(runs[cell] for cell in each.due_in)) for each in missing)
    counted = f"{len(due) - len(missing)} of {len(due)} features on which promises rest were entered"
    return f"{counted}, below the floor of {least:.0%}: {told}. {FLOORS[FLOOR].fix}"


def _missing(feature: DeclaredFeature, runs: int) -> str:
    return f"in none of {runs} runs of {feature.system} {feature.summary} ({feature.name})"
