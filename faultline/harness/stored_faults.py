"""The events of the nemesis in a stored history, with types: the fault of the plan, and its effect."""

from __future__ import annotations

from typing import Annotated

import msgspec

from faultline.harness.history import FaultEvent
from faultline.harness.untrusted import converted

__all__ = ["FaultBegun", "FaultEnded", "fault_begun", "fault_ended"]

_FaultNumber = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]


class FaultBegun(msgspec.Struct, frozen=True):
    """The value of a `start-KIND`: the number of the fault in its plan, and its effect, as in `FaultInterval`."""

    fault: _FaultNumber
    nodes: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    target: str = ""
    roles: tuple[str, ...] = ()
    description: str = ""
    applied: str | None = None


class FaultEnded(msgspec.Struct, frozen=True):
    """The value of a `stop-KIND`."""

    fault: _FaultNumber


def fault_begun(event: FaultEvent, source: str = "history.jsonl") -> FaultBegun:
    """Return the typed value of a fault's beginning. Raise DamagedInput with the index of the event."""
    return converted(event.value, FaultBegun, source, place=f"event {event.index}")


def fault_ended(event: FaultEvent, source: str = "history.jsonl") -> FaultEnded:
    """Return the typed value of a fault's end. Raise DamagedInput with the index of the event."""
    return converted(event.value, FaultEnded, source, place=f"event {event.index}")
