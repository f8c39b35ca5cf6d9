"""The protocols of faults: a nemesis starts, proves and ends one kind of fault, and a package plans them over a run."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from faultline.harness.plan import PlannedFault
from faultline.harness.world.faults import FaultPort

__all__ = [
    "AimablePackage",
    "CombinedPackage",
    "FaultPackage",
    "Injection",
    "Nemesis",
    "PacedPackage",
    "StrikesRacks",
]


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that has been injected: the targets it hit, and the state that is needed to end it."""

    nodes: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    description: str = ""
    state: dict[str, Any] = {}


class Nemesis(Protocol):
    """One kind of fault.

    A run in which the fault took effect has reached its `mark` (`links-cut`). `needs` are the capabilities that the
    world must have. A `tick_us` above 0 asks for repeated ticks.
    """

    kind: str
    summary: str
    mark: str
    needs: frozenset[str]
    tick_us: int

    def start(self, port: FaultPort, fault: PlannedFault, seed: int) -> Injection:
        """Resolve the target and strike it. Choices are a pure function of `seed` and the fault."""

    def verify(self, port: FaultPort, injection: Injection) -> str | None:
        """Probe right after the start. Return None when the fault took effect, else what was seen instead."""

    def tick(self, port: FaultPort, injection: Injection, count: int) -> None:
        """Act again; called every `tick_us` while the fault lasts (strobes)."""

    def stop(self, port: FaultPort, injection: Injection) -> None:
        """End the fault."""


class FaultPackage(Protocol):
    """A named way of planning faults over a run: the unit users choose with `--faults`."""

    name: str
    summary: str
    kinds: tuple[str, ...]
    """The kinds of faults that the package plans, for listings and for checking a world's capabilities."""

    def plan(self, *, seed: int, nodes: tuple[str, ...], start_us: int, end_us: int) -> tuple[PlannedFault, ...]:
        """Return faults between `start_us` and `end_us`, ordered by time; a pure function of the arguments."""


@runtime_checkable
class CombinedPackage(FaultPackage, Protocol):
    """A package made of several, of which some can be taken."""

    def only(self, names: tuple[str, ...]) -> FaultPackage:
        """Return the package made of those called `names` alone."""


@runtime_checkable
class PacedPackage(FaultPackage, Protocol):
    """A package whose faults can be made to fall less often, for a store that takes its time to recover."""

    def paced(self, period_us_min: int) -> FaultPackage:
        """Return the same package with faults that usually begin `period_us_min` or more after one another."""


@runtime_checkable
class AimablePackage(FaultPackage, Protocol):
    """A package whose faults can strike at events of nodes, as those with a `Trigger` do."""

    is_aimed: bool
    """True when some of its faults strike at events, which it must be given to plan them."""

    def aimed_too(self) -> FaultPackage:
        """Return the same package with faults of its kinds that strike at events, besides those that it has."""

    def at_events(self, events: tuple[str, ...]) -> FaultPackage:
        """Return the same package with the `events` at which its faults may strike."""


@runtime_checkable
class StrikesRacks(FaultPackage, Protocol):
    """A package that may have faults of whole racks, which it plans for as many racks as there are."""

    strikes_racks: bool
    """True when some of its faults mean nothing in a cluster without racks."""

    def in_racks(self, racks: int) -> FaultPackage:
        """Return the same package for a cluster of so many `racks`."""
