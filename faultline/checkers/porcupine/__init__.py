"""A complete Python port of Porcupine, the linearizability checker by Anish Athalye (MIT licence, in Go).

The algorithm, its data structures and the names of the interface are Porcupine's (github.com/anishathalye/porcupine,
Copyright (c) Anish Athalye); the code here was written anew. It goes back to Wing & Gong, "Testing and verifying
concurrent objects" (1993), Lowe, "Testing for linearizability" (2017), and Horn & Kroening, "Faster linearizability
checking via P-compositionality" (2015).

In Faultline it is the referee: plain enough to be believed. Every violation that the faster search in
`faultline.checkers.linearizability` reports is confirmed here first. It differs from its model in three points: an
operation may be pending (see `model`), budgets can be counted in steps so that verdicts repeat, and parts are searched
one after the other instead of in parallel.
"""

from faultline.checkers.porcupine.checker import (
    check_events,
    check_events_timeout,
    check_events_verbose,
    check_operations,
    check_operations_timeout,
    check_operations_verbose,
)
from faultline.checkers.porcupine.information import Annotation, LinearizationInfo
from faultline.checkers.porcupine.model import (
    PENDING,
    CheckResult,
    Event,
    EventKind,
    Model,
    NondeterministicModel,
    Operation,
    no_partition,
    no_partition_event,
)
from faultline.checkers.porcupine.search import UNLIMITED, Budget, PartResult, check_single
from faultline.checkers.porcupine.visualization import VisualizationData, visualization_data

__all__ = [
    "PENDING",
    "UNLIMITED",
    "Annotation",
    "Budget",
    "CheckResult",
    "Event",
    "EventKind",
    "LinearizationInfo",
    "Model",
    "NondeterministicModel",
    "Operation",
    "PartResult",
    "VisualizationData",
    "check_events",
    "check_events_timeout",
    "check_events_verbose",
    "check_operations",
    "check_operations_timeout",
    "check_operations_verbose",
    "check_single",
    "no_partition",
    "no_partition_event",
    "visualization_data",
]
