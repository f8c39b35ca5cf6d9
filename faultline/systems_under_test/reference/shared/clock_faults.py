"""The effect of shipped fault sets on clocks, for systems that rest on clocks."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["has_runaway_clocks", "has_wrong_clocks"]

_RUNAWAY = frozenset({"fast-node", "runaway-clocks"})
_WRONG = _RUNAWAY | {"all", "clock", "clocks", "steps"}


def has_runaway_clocks(asked: Asked) -> bool:
    """Return whether clocks may run more than a tenth too fast or too slow: no lease has a margin for that."""
    return not _RUNAWAY.isdisjoint(asked.faults)


def has_wrong_clocks(asked: Asked) -> bool:
    """Return whether wall clocks may be wrong by more than a tenth of a second."""
    return not _WRONG.isdisjoint(asked.faults)
