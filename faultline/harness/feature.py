"""Features: the rare situations of a system that its promise is about, declared so that it can be told which occurred.

A node counts a *mark* when it gets somewhere (`trace.sometimes("snapshot-installed")`), and a run keeps the counts. A
*feature* is a mark that the system declares: what it means, which options it needs, and whether the promise rests on
it. Of a real store, which knows of no trace, the lines of its members' logs tell that a feature was entered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

__all__ = ["Feature", "due_features", "features_of", "possible_features"]


class Feature(msgspec.Struct, frozen=True):
    """One feature: the name of its mark, and in half a sentence what has happened when a run enters it.

    It can be entered only with the options that it `needs`, and with none of `unless`. An `essential` one must be
    entered by some run of a campaign whose fault set has one of `faults`, or of any campaign when that is empty: a
    promise that rests on it was not tested otherwise. `log` is a regular expression: each line of a member's log in
    which it is found tells that a real store has entered the feature.
    """

    name: str
    summary: str
    needs: Mapping[str, str] = {}
    unless: Mapping[str, str] = {}
    essential: bool = False
    faults: tuple[str, ...] = ()
    log: str = ""

    def is_possible(self, options: Mapping[str, str]) -> bool:
        """Whether a system with these `options` can enter it."""
        return all(options.get(name) == value for name, value in self.needs.items()) and not any(
            options.get(name) == value for name, value in self.unless.items()
        )

    def is_due(self, options: Mapping[str, str], fault_set: Iterable[str]) -> bool:
        """Whether runs with these options and faults must enter it, some time."""
        struck = not self.faults or not set(self.faults).isdisjoint(fault_set)
        return self.essential and struck and self.is_possible(options)

    def is_told_by(self, line: str) -> bool:
        """Whether `line`, of the log of a member, tells that a real store has entered it."""
        return bool(self.log) and re.search(self.log, line) is not None


def features_of(system: object) -> tuple[Feature, ...]:
    """Return the features that `system` declares; none if it has no `features`, which a plug-in may leave out."""
    features: tuple[Feature, ...] = getattr(system, "features", ())
    return features


def possible_features(system: object, options: Mapping[str, str]) -> tuple[Feature, ...]:
    """Return the features that `system` declares and can enter with these `options`."""
    return tuple(feature for feature in features_of(system) if feature.is_possible(options))


def due_features(system: object, options: Mapping[str, str], fault_set: Iterable[str]) -> tuple[Feature, ...]:
    """The essential features that runs of `system` with these options and faults must enter, some time."""
    return tuple(each for each in possible_features(system, options) if each.is_due(options, tuple(fault_set)))
