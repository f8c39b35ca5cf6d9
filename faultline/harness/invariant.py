"""Invariants: statements about the inside of a system, checked on the typed events its nodes emit.

History checkers see only what clients saw; many bugs never get that far (a vote that is not durable is found by "one
leader per generation" a thousand times sooner). An invariant observes the run and cannot influence it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

__all__ = ["Breach", "FinalInvariant", "Invariant", "Report", "ReportingInvariant", "can_observe", "events_that_break"]


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """The first time an invariant did not hold: its id (`LDR-I1`), one sentence, when and at which node."""

    invariant: str
    sentence: str
    time_us: int
    node: str


Report = Callable[[Breach], None]


class Invariant(Protocol):
    """One invariant of a system, for one run. `events` is a plain attribute with the event types that it observes.

    It may also have `broken_by`, when it can report a breach only at some of these types. A run in which none of those
    occurred need not be checked. It may have `needs`: options, each with the values with which its events occur.
    """

    id: str
    statement: str

    @property
    def events(self) -> tuple[type[msgspec.Struct], ...]:
        """The event types that it observes."""

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Look at one event; call `report` when it breaks the invariant."""


@runtime_checkable
class FinalInvariant(Protocol):
    """An invariant that also covers the end of a run: a state that must be reached some time after the heal."""

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """Judge the end of the run; all faults ended at `healed_us`. The simulated world calls it once."""


def events_that_break(invariant: Invariant) -> tuple[type[msgspec.Struct], ...]:
    """Return the event types at which `invariant` can be broken; empty when any event or the end can break it."""
    broken_by: tuple[type[msgspec.Struct], ...] = getattr(invariant, "broken_by", ())
    return () if hasattr(invariant, "finish") else broken_by


def can_observe(invariant: Invariant, options: Mapping[str, str]) -> bool:
    """Return whether the events of `invariant` occur with these `options`; settings stand among them by name."""
    needs: Mapping[str, tuple[str, ...]] = getattr(invariant, "needs", {})
    return all(options.get(name) in values for name, values in needs.items())


class ReportingInvariant:
    """A base for invariants that builds the breach for them. Inheriting from it is optional.

    `events` are the event types that it observes, and `broken_by` those at which it can be broken. `needs_order` is
    true where the reports of different nodes must arrive in the order in which they were made. `needs` names options,
    each with the values with which the events occur.
    """

    id = ""
    statement = ""
    events: tuple[type[msgspec.Struct], ...] = ()
    broken_by: tuple[type[msgspec.Struct], ...] = ()
    needs_order = False
    needs: Mapping[str, tuple[str, ...]] = {}

    def _breach(self, report: Report, time_us: int, node: str, sentence: str) -> None:
        report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
