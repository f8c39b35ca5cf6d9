"""Conformance kits for authors of plug-ins and users of pytest: a store, workload, checker or fault keeps its contract.

    class TestMyStore(SystemConformance):           # one test per claim, under pytest
        system = MyStore
        workload = "register"

    check_system(MyStore, workload="register")      # the same in one call; raises AssertionError with every problem

    assert_campaign_passes("leadership", system="my-store", seeds=20)

Each problem names the error, its place, and the remedy. Nodes can be tested by hand as well: `FakePorts` for one node,
`HandCrankedCluster` for several, `TranscriptPlayer` for stories told as text (docs/how-to/test-a-node-by-hand.md). The
names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.exports import lazily

if TYPE_CHECKING:
    from faultline.testing.campaigns import assert_campaign_passes, assert_run_passes
    from faultline.testing.fake_ports import FakePorts
    from faultline.testing.hand_cranked import HandCrankedCluster
    from faultline.testing.kits import (
        CheckerConformance,
        FaultConformance,
        SystemConformance,
        WorkloadConformance,
        check_checker,
        check_faults,
        check_system,
        check_workload,
    )
    from faultline.testing.memory_storage import MemoryStorage
    from faultline.testing.problem import Problem
    from faultline.testing.transcript_commands import TranscriptPlayer
    from faultline.testing.transcripts import check_transcript

__all__ = [
    "CheckerConformance",
    "FakePorts",
    "FaultConformance",
    "HandCrankedCluster",
    "MemoryStorage",
    "Problem",
    "SystemConformance",
    "TranscriptPlayer",
    "WorkloadConformance",
    "assert_campaign_passes",
    "assert_run_passes",
    "check_checker",
    "check_faults",
    "check_system",
    "check_transcript",
    "check_workload",
]

_MODULES = dict.fromkeys(__all__, "faultline.testing.kits") | {
    "FakePorts": "faultline.testing.fake_ports",
    "HandCrankedCluster": "faultline.testing.hand_cranked",
    "MemoryStorage": "faultline.testing.memory_storage",
    "Problem": "faultline.testing.problem",
    "TranscriptPlayer": "faultline.testing.transcript_commands",
    "check_transcript": "faultline.testing.transcripts",
    "assert_campaign_passes": "faultline.testing.campaigns",
    "assert_run_passes": "faultline.testing.campaigns",
}

__getattr__, __dir__ = lazily(__name__, _MODULES)
