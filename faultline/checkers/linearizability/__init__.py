"""Linearizability of registers, and of whatever else has a sequential model.

descriptions the sequential specifications by name; models and data_types: what they are
data_type    the road from the rows of a history to a finding, and where kinds of objects differ on it
registers, kv, objects   the three kinds; operations: rows as demands on, and changes of, a register
decision     the one answer of every engine, monitor and search
search       registers: the engine, and the first return that cannot be explained; generic: the same for any model,
             with generic_search, whose forms are generic_native and generic_walk, and model_rules, which checks it
refutation   an engine's refusal made a certificate (certificates); object_certificates: the same for any model
verifier     the one door to what verifies: verify for configurations, with value_rules for registers and model_rules
             for any model, contradictions for what monitors say, replay for linearizations
proof        certificates in files, with told, the operations in words
referee      the port of Porcupine, for what the generic search cannot decide
evidence     an illegal register made small by minimise, or told as one moment by cuts; classify and losses name it;
             explain and finding tell it
undecided    what is known about a key whose search was given up
judgement    the walk along the road for one key; checker: for a whole run
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
