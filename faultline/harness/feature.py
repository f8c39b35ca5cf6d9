"""Features: the rare situations that a system's promise is about, declared so that a run can report which of them
occurred.

A node counts a *mark* when it reaches a state (`trace.sometimes("snapshot-installed")`), and a run keeps the counts. A
*feature* is a mark that the system declares: what it means, which options it needs, and whether the promise rests on
it. A real store has no trace; there, lines in the logs of its members show that a feature was entered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from faultline.harness.options import flat_options

__all__ = ["Feature", "due_features", "features_of", "possible_features"]


class Feature(msgspec.Struct, frozen=True):
    """One feature: the name of its mark, and half a sentence that says what has happened when a run enters it.

    It can be entered only with the options that it `needs`, and with none of `unless`; a setting behind `tuning` counts
    as an option of its own, and is absent where it has its default. Some run of a campaign whose
    fault set has one of `faults` (any campaign, when that is empty) must enter an `essential` feature; otherwise the
    promise that rests on it was not tested. `log` is a regular expression: each line of a member's log that contains
    it shows that a real store has entered the feature.
    """

    name: str
    summary: str
    needs: Mapping[str, str] = {}
    unless: Mapping[str, str] = {}
    essential: bool = False
    faults: tuple[str, ...] = ()
    log: str = ""

    def is_possible(self, options: Mapping[str, str]) -> bool:
        """Return whether a system with these `options` can enter the feature."""
        return all(options.get(name) == value for name, value in self.needs.items()) and not any(
            options.get(name) == value for name, value in self.unless.items()
        )

    def is_due(self, options: Mapping[str, str], fault_set: Iterable[str]) -> bool:
        """Return whether some of the runs with these options and faults must enter the feature."""
        struck = not self.faults or not set(self.faults).isdisjoint(fault_set)
        return self.essential and struck and self.is_possible(options)

    def is_told_by(self, line: str) -> bool:
        """Return whether `line`, from the log of a member, shows that a real store has entered the feature."""
        return bool(self.log) and re.search(self.log, line) is not None


def features_of(system: object) -> tuple[Feature, ...]:
    """Return the features that `system` declares; none if it has no attribute `features`, which a plug-in may leave
    out."""
    features: tuple[Feature, ...] = getattr(system, "features", ())
    return features


def possible_features(system: object, options: Mapping[str, str]) -> tuple[Feature, ...]:
    """Return the features that `system` declares and can enter with these `options`."""
    flat = flat_options(options)
    return tuple(feature for feature in features_of(system) if feature.is_possible(flat))


def due_features(system: object, options: Mapping[str, str], fault_set: Iterable[str]) -> tuple[Feature, ...]:
    """Return the essential features that some run of `system` with these options and faults must enter."""
    flat = flat_options(options)
    return tuple(each for each in possible_features(system, options) if each.is_due(flat, tuple(fault_set)))
