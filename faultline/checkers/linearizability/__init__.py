"""Linearizability of registers, and of whatever else has a sequential model.

operations   history rows as demands on, and changes of, a register
search       the fast search; witness replays what it finds
minimise     relaxing an illegal history to its core; evidence does so for registers
classify     the name of the anomaly; explain: its sentence
judgement    all of that for one key; checker: for a whole run
models       the sequential specifications by name
"""

from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.checkers.linearizability.models import MODELS

__all__ = ["MODELS", "LinearizabilityChecker"]
