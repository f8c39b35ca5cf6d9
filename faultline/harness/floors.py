"""Floors under the exposure of a run: a run below one of them that shows no violation is *vacuous* instead of a pass.

The floor `features` is for campaigns alone: a single run need not enter a feature that one of many must enter.

Each floor is a share from 0 to 1 with a default, which a plan can override (`[floors]`, `--floor NAME=SHARE`); 0 turns
the floor off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.exposure import Exposure

__all__ = ["FLOORS", "Floor", "Shortfall", "checked_floors", "shortfalls"]


class Floor(msgspec.Struct, frozen=True):
    """A floor: its default share, the whole that it is a share of, and the remedy when a run falls below it."""

    default: float
    summary: str
    fix: str


FLOORS = {
    "operations-answered": Floor(
        0.2,
        "the share of operations that the store answered",
        "Use fewer or shorter faults, or raise the client's time-out.",
    ),
    "faults-applied": Floor(
        0.8,
        "the share of planned faults that took effect, of all but those that waited for an event that did not come",
        "Read the reasons under the run's faults; plan fewer faults, or let the run last longer.",
    ),
    "faults-struck": Floor(
        0.5,
        "the share of effective faults that met operations in flight",
        "Make the faults longer or the operations denser.",
    ),
    "writes-read": Floor(
        1.0,
        "the share of objects with an acknowledged write that were read after the heal",
        "Let the store recover, and then let the final operations read every object.",
    ),
    "features": Floor(
        1.0,
        "the share of essential features that some run of a campaign entered",
        "Use more, longer or other faults, or more seeds; or lower the floor with features under [floors] in the plan.",
    ),
}


class Shortfall(NamedTuple):
    """A floor that a run did not reach: its name, and a sentence with the figures."""

    name: str
    sentence: str


def checked_floors(asked: Mapping[str, float]) -> dict[str, float]:
    """Return the shares in `asked`. Raise UsageError for an unknown floor, a bad share, or a contradiction."""
    for name, share in asked.items():
        if name not in FLOORS:
            raise UsageError(f"There is no floor called {name!r}.", f"There are {', '.join(FLOORS)}.")
        if not 0 <= share <= 1:
            raise UsageError(f"The floor {name} is a share from 0 to 1, not {share:g}.", f"Try {name}=0.5.")
    if asked.get("faults-applied") == 0 and asked.get("faults-struck", 0) > 0:
        raise UsageError(
            "The floors contradict each other: faults-applied=0 asks for no fault, but "
            f"faults-struck={asked['faults-struck']:g} for faults that meet operations.",
            "Raise faults-applied above 0, or set faults-struck=0 too.",
        )
    return dict(asked)


def shortfalls(exposure: Exposure, floors: Mapping[str, float]) -> Iterator[Shortfall]:
    """Yield the floors that `exposure`, of one run, does not reach, in order; `floors` replace default shares."""
    parts = {
        "operations-answered": (exposure.answered, exposure.operations, "operations were answered"),
        "faults-applied": (exposure.faults_applied, exposure.faults_due, "planned faults took effect"),
        "faults-struck": (exposure.faults_struck, exposure.faults_applied, "faults met operations in flight"),
        "writes-read": (
            min(exposure.read_after_heal, exposure.due),
            exposure.due,
            "objects with an acknowledged write were read after the heal",
        ),
    }
    for name, (reached, whole, words) in parts.items():
        least = floors.get(name, FLOORS[name].default)
        if reached < least * whole:
            missing = _missing(exposure) if name == "writes-read" else ""
            yield Shortfall(name, f"{reached:,} of {whole:,} {words}, below the floor of {least:.0%}{missing}.")


def _missing(exposure: Exposure) -> str:
    first = ", ".join(exposure.unread[:3])
    more = exposure.written - exposure.read_after_heal - len(exposure.unread[:3])
    return f"; not {first}" + (f" and {more:,} more" if more > 0 else "")
