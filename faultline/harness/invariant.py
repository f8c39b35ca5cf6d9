"""Invariants: statements about the inside of a system, checked on the typed events its nodes emit.

History checkers see only what clients saw; many bugs never get that far (a vote that is not durable is found by "one
leader per generation" a thousand times sooner). An invariant observes, it cannot influence the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import msgspec

__all__ = ["Breach", "FinalInvariant", "Invariant", "Report", "ReportingInvariant", "events_that_break"]


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """The first time an invariant did not hold: its id (`LDR-I1`), one sentence, when and at which node."""

    invariant: str
    sentence: str
    time_us: int
    node: str


Report = Callable[[Breach], None]


class Invariant(Protocol):
    """One invariant of a system, alive for one run. `events` is a plain attribute with the types it wants to see.

    It may also have `broken_by`: the event types at which alone it ever reports a breach, when these are fewer. A run
    in which none of them occurred need not be looked at.
    """

    id: str
    statement: str

    @property
    def events(self) -> tuple[type[msgspec.Struct], ...]:
        """The event types to show to it."""

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        """Look at one event; call `report` when it breaks the invariant."""


@runtime_checkable
class FinalInvariant(Protocol):
    """An invariant that also speaks about the end of a run: what must be so some time after everything was healed."""

    def finish(self, healed_us: int, end_us: int, report: Report) -> None:
        """The run is over; all faults ended at `healed_us`. Called in the simulated world, once."""


def events_that_break(invariant: Invariant) -> tuple[type[msgspec.Struct], ...]:
    """The event types at which alone `invariant` can be broken; empty when that may be any event, or the end."""
    broken_by: tuple[type[msgspec.Struct], ...] = getattr(invariant, "broken_by", ())
    return () if hasattr(invariant, "finish") else broken_by


class ReportingInvariant:
    """A base for invariants that spares them the form of a breach. Nobody must inherit from it.

    `events` and `broken_by` are the types of events that it looks at, and those at which alone it can be broken.
    `needs_order` is true where reports of different nodes must come in the order in which they were made.
    """

    id = ""
    statement = ""
    events: tuple[type[msgspec.Struct], ...] = ()
    broken_by: tuple[type[msgspec.Struct], ...] = ()
    needs_order = False

    def _breach(self, report: Report, time_us: int, node: str, sentence: str) -> None:
        report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
