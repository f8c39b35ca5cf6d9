"""A complete Python port of Porcupine, the linearizability checker by Anish Athalye (MIT licence, in Go).

The algorithm, its data structures and the names of the interface are Porcupine's (github.com/anishathalye/porcupine,
Copyright (c) Anish Athalye); the code here was written anew. It goes back to Wing & Gong, "Testing and verifying
concurrent objects" (1993), Lowe, "Testing for linearizability" (2017), and Horn & Kroening, "Faster linearizability
checking via P-compositionality" (2015).

In Faultline it is the referee: plain enough to be believed. Every violation that the faster search in
`faultline.checkers.linearizability` reports is confirmed here first. It differs from its model in three points: an
operation may be pending (see `model`), budgets can be counted in steps so that verdicts repeat, and parts are searched
one after the other instead of in parallel.

A part is imported when its first name is asked for: the fast engine asks for budgets and results only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.exports import lazily

if TYPE_CHECKING:
    from faultline.checkers.drawing import visualize, visualize_path
    from faultline.checkers.porcupine.annotation import Annotation
    from faultline.checkers.porcupine.budget import (
        UNLIMITED,
        Budget,
        CheckResult,
    )
    from faultline.checkers.porcupine.checker import (
        check_events,
        check_events_timeout,
        check_events_verbose,
        check_operations,
        check_operations_timeout,
        check_operations_verbose,
    )
    from faultline.checkers.porcupine.information import LinearizationInfo
    from faultline.checkers.porcupine.model import (
        PENDING,
        UNKNOWN,
        Event,
        EventKind,
        Model,
        NondeterministicModel,
        Operation,
        no_partition,
        no_partition_event,
    )
    from faultline.checkers.porcupine.search import (
        PartResult,
        check_single,
    )
    from faultline.checkers.porcupine.visualization import (
        VisualizationData,
        visualization_data,
    )

__all__ = [
    "PENDING",
    "UNKNOWN",
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
    "visualize",
    "visualize_path",
]

_PARTS = {
    "faultline.checkers.drawing": ("visualize", "visualize_path"),
    f"{__name__}.annotation": ("Annotation",),
    f"{__name__}.budget": ("Budget", "CheckResult", "UNLIMITED"),
    f"{__name__}.checker": (
        "check_events",
        "check_events_timeout",
        "check_events_verbose",
        "check_operations",
        "check_operations_timeout",
        "check_operations_verbose",
    ),
    f"{__name__}.information": ("LinearizationInfo",),
    f"{__name__}.model": (
        "Event",
        "EventKind",
        "Model",
        "NondeterministicModel",
        "Operation",
        "PENDING",
        "UNKNOWN",
        "no_partition",
        "no_partition_event",
    ),
    f"{__name__}.search": ("PartResult", "check_single"),
    f"{__name__}.visualization": ("VisualizationData", "visualization_data"),
}

__getattr__, __dir__ = lazily(__name__, {name: part for part, names in _PARTS.items() for name in names})
