"""Linearizability of registers, and of whatever else has a sequential model.

operations   history rows as demands on, and changes of, a register
search       the fast search; witness replays what it finds
minimise     relaxing an illegal history to its core; evidence does so for registers
classify     the name of the anomaly; losses: whether a write was lost; explain: its sentence
judgement    all of that for one key; checker: for a whole run; keys: what both answer for a key
undecided    what is known about a key whose search was given up
descriptions the sequential specifications by name; models and data_types: what they are
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultline.checkers.linearizability.checker import LinearizabilityChecker
    from faultline.checkers.linearizability.descriptions import MODELS

__all__ = ["MODELS", "LinearizabilityChecker"]

_PART_OF = {"LinearizabilityChecker": "checker", "MODELS": "descriptions"}


def __getattr__(name: str) -> Any:
    if name in _PART_OF:
        return getattr(importlib.import_module(f"{__name__}.{_PART_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
