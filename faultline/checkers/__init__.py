"""The checkers that judge a run.

`CHECKERS` names each with a factory and one line about it. The module itself imports none of them, so that listing
checkers costs nothing; each is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from faultline.checkers.availability import AvailabilityChecker
    from faultline.checkers.invariants import InvariantChecker
    from faultline.checkers.linearizability.checker import LinearizabilityChecker
    from faultline.checkers.stats import StatsChecker
    from faultline.checkers.vacuity import VacuityChecker
    from faultline.harness.workload import Checker

__all__ = [
    "CHECKERS",
    "AvailabilityChecker",
    "CheckerDescription",
    "InvariantChecker",
    "LinearizabilityChecker",
    "StatsChecker",
    "VacuityChecker",
]


@dataclass(frozen=True, slots=True)
class CheckerDescription:
    """A checker by name: what it looks at, in one line, and where its class is."""

    name: str
    summary: str
    module: str
    class_name: str

    def __call__(self, **options: Any) -> Checker:
        """A checker with these keyword options of its class."""
        return cast("Checker", self._class()(**options))

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.module), self.class_name)


CHECKERS: Mapping[str, CheckerDescription] = {
    description.name: description
    for description in (
        CheckerDescription(
            "linearizability",
            "every key behaves like one register that does one thing at a time",
            "faultline.checkers.linearizability.checker",
            "LinearizabilityChecker",
        ),
        CheckerDescription(
            "invariants",
            "no invariant inside the system was seen broken",
            "faultline.checkers.invariants",
            "InvariantChecker",
        ),
        CheckerDescription(
            "availability",
            "after everything is healed, the system answers again within a bound",
            "faultline.checkers.availability",
            "AvailabilityChecker",
        ),
        CheckerDescription(
            "stats",
            "operations counted by function and outcome; every function succeeded at least once",
            "faultline.checkers.stats",
            "StatsChecker",
        ),
        CheckerDescription(
            "vacuity",
            "the run tested something: faults bit while operations were in flight, and final reads followed",
            "faultline.checkers.vacuity",
            "VacuityChecker",
        ),
    )
}

_MODULES = {description.class_name: description.module for description in CHECKERS.values()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
