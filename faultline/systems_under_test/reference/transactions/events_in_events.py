"""Invariants of the parts of a node: events that are wrapped in events, which name the part that they are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from faultline.harness.invariant import FinalInvariant, Invariant, Report

__all__ = ["Interested", "decoded", "finish", "interested"]

Interested = dict[str, list[tuple[type[msgspec.Struct], Invariant]]]
"""Invariants, with the type of event that each of them observes, by the name of that type."""


def interested(invariants: Iterable[Invariant]) -> Interested:
    """Return the invariants by the kinds of events that they observe: most observe one or two of many."""
    found: Interested = {}
    for invariant in invariants:
        for event in invariant.events:
            found.setdefault(event.__name__, []).append((event, invariant))
    return found


def decoded(event: Any, kind: type[msgspec.Struct]) -> Any:
    """Return an event inside an event: an object in the simulated world, plain data in a real node's trace."""
    return event if isinstance(event, kind) else msgspec.convert(event, kind)


def finish(interested: Interested, healed_us: int, end_us: int, report: Report) -> None:
    """Finish those of the invariants that look at the end of a run."""
    invariants = {type(each): each for several in interested.values() for _, each in several}
    for invariant in invariants.values():
        if isinstance(invariant, FinalInvariant):
            invariant.finish(healed_us, end_us, report)
