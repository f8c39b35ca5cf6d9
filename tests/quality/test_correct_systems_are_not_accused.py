"""Runs in which invariants once accused correct code, or correct code had a bug that was not planted."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.campaign.engine import default_engine
from faultline.harness.planning import RunRequest
from faultline.harness.verdict import Verdict

SNAPSHOTS = {
    "snapshot_every_entries": "5",
    "segment_size_bytes": "256",
    "log_cleaning_interval_ms": "50",
    "watch_history_max": "12",
}
SPLITS = {
    "splits": "k12,k2",
    "partition_size_max": "12",
    "split_check_ms": "100",
    "spread": "after-split",
    "split_into": "two-new",
    "sizes": "blocks",
}
WITHOUT_STALE = {"stale": "0", "reset": "0"}
"""The weather of runs from the time before stale messages and resets were drawn, which moved no other draw."""

RING = {"assignment": "token-ring", "hand_on": "3", "reassign_every_ms": "300"}

RUNS: dict[str, dict[str, Any]] = {
    "partitions of a ring change hands": {"system": "partitioned-kv", "options": RING, "seed": 1},
    "a lease granted before a snapshot was installed": {
        "system": "coordination-service",
        "workload": "watches",
        "options": SNAPSHOTS,
        "seed": 1_000_003,
    },
    "a lease ended after a snapshot was installed": {
        "system": "coordination-service",
        "workload": "watches",
        "options": SNAPSHOTS,
        "seed": 1_000_004,
    },
    "a partition is retired while it is due": {
        "system": "range-kv",
        "workload": "scans",
        "faults": ("kill", "retries", "clock"),
        "operations": 120,
        "options": SPLITS,
        "seed": 6_001_050,
    },
    "a cart to which nothing was ever added": {
        "system": "consistent-core",
        "workload": "cart",
        "faults": ("pause",),
        "nodes": 5,
        "workers": 6,
        "operations": 60,
        "seed": 616_886_632,
    },
    "a coordinator sleeps for less than the time that a member may be silent": {
        "system": "emergent-leader",
        "workload": "membership",
        "faults": ("gentle-drift", "all"),
        "nodes": 2,
        "workers": 1,
        "operations": 150,
        "options": {
            "seeds": "2",
            "heartbeats": "ring",
            "failure_timeout_ms": "1200",
            "join_timeout_ms": "50",
            "join_attempts": "0",
            "acknowledgement_ms": "800",
        },
        "beyond_promise": True,
        "seed": 452_890_178,
    },
    "five servers start without different committed entries": {
        "system": "coordination-service",
        "workload": "counter",
        "faults": ("fast-node", "power"),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 55_397_124,
    },
    "a core of one server is killed before its vote is on its disk": {
        "system": "partitioned-kv",
        "workload": "read-write",
        "faults": ("kill",),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 454_807_429,
    },
    "a core of one server loses the message that its log is durable": {
        "system": "partitioned-kv",
        "workload": "read-write",
        "faults": ("pause",),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 911_885_414,
    },
    "a watch is told of the past while it is set anew": {
        "system": "coordinated-kv",
        "workload": "append",
        "faults": ("retries",),
        "nodes": 6,
        "options": {"watch_delivery": "once"},
        "seed": 3_000_001,
    },
    "clients repeat their registrations faster than slow disks take them": {
        "system": "follower-reads",
        "workload": "sequential",
        "faults": ("partition",),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 16_698_663,
    },
    "a transaction over five keys waits for replicas with slow disks": {
        "system": "transactional-kv",
        "workload": "bank",
        "faults": ("all", "blackout"),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 597_693_320,
    },
    "a host of ranges restarts between a write and its stale repetition": {
        "system": "range-kv",
        "workload": "bounded-staleness",
        "faults": ("restarts",),
        "universe": "drawn",
        "weather": {"stale": "0.05", "reset": "0"},
        "seed": 12_193_369,
    },
    "proposals to split are lost in the air": {
        "system": "range-kv",
        "workload": "read-write",
        "faults": (),
        "universe": "drawn",
        "weather": {"stale": "0.2", "reset": "0.2"},
        "seed": 224_933_279,
    },
    "an owner of stamped keys restarts between a write and its stale repetition": {
        "system": "timestamped-kv",
        "workload": "follower-reads",
        "faults": ("leadership", "power"),
        "universe": "drawn",
        "weather": {"stale": "0.05", "reset": "0"},
        "seed": 8_060_507,
    },
    "a leader whose clock runs at twice its rate ends sessions": {
        "system": "coordination-service",
        "workload": "counter",
        "faults": ("blackout", "runaway-clocks"),
        "universe": "drawn",
        "weather": WITHOUT_STALE,
        "seed": 650_367_441,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", RUNS.values(), ids=RUNS.keys())
def test_no_violation_is_told_of_a_correct_system(asked: dict[str, Any]) -> None:
    judgement = default_engine("simulated").judged(RunRequest(**asked))
    assert judgement.verdict is Verdict.PASS, [finding.sentence for finding in judgement.findings]
