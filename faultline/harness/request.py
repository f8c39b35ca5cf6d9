"""The request of a user for one run, before it is planned."""

from __future__ import annotations

from typing import Literal

import msgspec

from faultline.harness.plan import cell_name
from faultline.harness.run_record import WorldName

__all__ = ["DRAWN_NUMBERS", "RunRequest"]

DRAWN_NUMBERS = ("nodes", "workers", "operations")
"""The numbers of a request that a universe draws, unless they are held."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for one run: names and numbers, all with a default except the system and the seed.

    With `beyond_promise` the run is planned although the system does not promise to pass it. With `stop_at_violation`
    it ends at the first violation that is certain while it goes on. `weather` has the conditions of the simulated world
    that the user gave (`faultline.harness.conditions`). With a `universe` that is drawn (`faultline.harness.universe`),
    these and the numbers `held` are kept, and each seed draws some of the `faults`. `racks` is the number of racks, or
    the rack of each node (`faultline.harness.racks`). Unset, the four are not written, so that the names of other runs
    do not depend on them.
    """

    system: str
    workload: str = "register"
    faults: tuple[str, ...] = ("leadership",)
    seed: int = 0
    planted_bugs: tuple[str, ...] = msgspec.field(name="mutants", default=())
    options: dict[str, str] = {}
    host_options: dict[str, str] = {}
    nodes: int = 3
    workers: int = 5
    operations: int = 200
    duration_s: float | None = None
    floors: dict[str, float] = {}
    world: WorldName = "simulated"
    beyond_promise: bool = False
    stop_at_violation: bool | msgspec.UnsetType = msgspec.UNSET
    weather: dict[str, str | int | float] | msgspec.UnsetType = msgspec.UNSET
    universe: Literal["drawn"] | msgspec.UnsetType = msgspec.UNSET
    held: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    racks: int | tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def fault_set(self) -> tuple[str, ...]:
        """The names of the fault packages, as a plan calls them."""
        return self.faults

    @property
    def cell(self) -> str:
        """The name of the campaign cell of the run: everything that has a name, without the seed."""
        return cell_name(self.system, self.planted_bugs, self.workload, self.faults)
