"""The record of a run, before it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from faultline.harness.history import History
from faultline.harness.invariant import Breach
from faultline.harness.plan import Plan

__all__ = ["CertainViolation", "FaultInterval", "MessageRecord", "RunRecord", "WorldName"]

WorldName = Literal["simulated", "local", "hosts"]


class FaultInterval(msgspec.Struct, frozen=True, kw_only=True):
    """One injected fault as it happened: the request, the nodes it hit, its real beginning and end, and whether it took
    effect.

    `nodes` are the nodes acted on, `links` the directed links, `roles` the roles of the nodes at the start,
    `applied` is None when the probe confirmed the fault, else why it did not take effect.
    """

    kind: str
    target: str
    start_us: int
    stop_us: int
    nodes: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    roles: tuple[str, ...] = ()
    description: str = ""
    applied: str | None = None


class MessageRecord(msgspec.Struct, frozen=True):
    """One message of a traced run: `receive_us` is -1 when it was lost, `name` its type.

    `stale` marks one that came over a connection of former times (`Weather.stale`).
    """

    source: str
    target: str
    name: str
    send_us: int
    receive_us: int
    summary: str = ""
    stale: bool = False


class CertainViolation(msgspec.Struct, frozen=True, kw_only=True):
    """A violation that was certain while the run went on: by which checker, shown by which rows, and when."""

    checker: str
    rows: tuple[int, ...]
    time_us: int


class RunRecord(msgspec.Struct, kw_only=True):
    """A finished (or interrupted) run: its plan, its history, and the reports of the world and the nodes.

    `marks` counts the `sometimes` marks that were reached, `breaches` holds the first breach of each invariant,
    `errors` what went wrong in the harness itself, `statistics` numbers of the world (events, messages …).
    `started_at_us` is the moment 0 of the run on the wall clock of the harness's machine, in microseconds since the
    epoch; 0 in the simulated world, which has no such moment. `stopped_by` is the violation that ended the run early,
    None in a run that was not judged while it went on, or in which no violation was certain. `messages_dropped_us` is
    the time until which `messages` may be incomplete, 0 if they are complete.
    """

    plan: Plan
    world: WorldName
    history: History
    faults: list[FaultInterval] = []
    marks: dict[str, int] = {}
    breaches: list[Breach] = []
    errors: list[str] = []
    messages: Sequence[MessageRecord] = ()
    messages_dropped_us: int = 0
    statistics: dict[str, int] = {}
    interrupted: bool = False
    stopped_by: CertainViolation | None = None
    started_at_us: int = 0
    detail: dict[str, Any] = {}

    @property
    def healed_us(self) -> int:
        """The time at which everything was healed: as planned, and later in real worlds, where faults and heal take
        time."""
        heal_us = max((event.time_us for event in self.history.faults if event.f == "heal"), default=0)
        return max(heal_us, self.plan.heal_us)

    def whole(self) -> RunRecord:
        """Return the record. Raise KeyboardInterrupt if Ctrl-C ended the run early.

        A search over many runs calls this, so that it neither takes half a run for an answer nor goes on.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        return self

    def __repr__(self) -> str:
        """Return the run in a few words: asyncio takes them of each finished task, and a full text has every
        operation."""
        return f"<RunRecord of {self.plan.cell}, seed {self.plan.seed}, {self.world}: {len(self.history)} operations>"
