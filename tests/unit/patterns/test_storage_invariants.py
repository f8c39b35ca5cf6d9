"""The invariants of logs, snapshots and low-water marks say no when they must, and yes to what only looks odd."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_replication.low_water_mark import LogCleaned
from faultline.systems_under_test.patterns.data_replication.replicated_log import HighWaterMarkAdvanced
from faultline.systems_under_test.reference.raft.invariants.storage import STORAGE_INVARIANTS
from faultline.systems_under_test.reference.shared.trace_events import (
    EntryApplied,
    NodeStarted,
    SnapshotTaken,
    StateRestored,
)

INTERVAL_US = 1_000
Story = list[tuple[str, Any]]


def applied(index: int) -> EntryApplied:
    return EntryApplied(index, 1, 0, 0, 0, False)


def committed(index: int) -> HighWaterMarkAdvanced:
    return HighWaterMarkAdvanced(1, index, 1, True)


def taken(index: int, *, checksum: int = 7, applied: int = 0, mark: int = 0) -> SnapshotTaken:
    return SnapshotTaken(index, 1, checksum, applied or index, mark)


def restored(index: int, *, checksum: int = 7, compacted: int = 0, last: int = 99, installed: bool = False) -> Any:
    return StateRestored(index, 1, checksum, compacted, last, installed)


def cleaned(*closed: tuple[int, int], compacted: int = 0, deleted: int = 0) -> LogCleaned:
    return LogCleaned(deleted, compacted, 99, closed, INTERVAL_US)


def boot(*nodes: str) -> Story:
    return [(node, NodeStarted(0, 0)) for node in nodes]


THREE = boot("athens", "byzantium", "cyrene")
UP_TO_9: Story = [("athens", committed(9))]
MANY_SNAPSHOTS: Story = [("athens", taken(index)) for index in range(1, 12)]


def breached(events: Story, *, step_us: int = 1) -> set[str]:
    found: list[Breach] = []
    for invariant in (kind() for kind in STORAGE_INVARIANTS):
        for number, (node, event) in enumerate(events):
            if isinstance(event, invariant.events):
                invariant.observe(step_us * number, node, event, found.append)
    return {breach.invariant for breach in found}


BREACHES: list[tuple[str, Story]] = [
    ("WAL-I1", [*THREE, *UP_TO_9, ("athens", NodeStarted(1, 8)), ("cyrene", NodeStarted(1, 5))]),
    ("WAL-I3", [("athens", applied(1)), ("athens", applied(3))]),
    ("WAL-I3", [("athens", applied(1)), ("athens", NodeStarted(1, 1)), ("athens", applied(2))]),
    ("WAL-I3", [("athens", restored(5)), ("athens", applied(5))]),
    ("WAL-I3", [("athens", restored(5)), ("athens", applied(7))]),
    ("SEG-I2", [("athens", cleaned((1, 3), (5, 6)))]),
    ("SEG-I2", [("athens", cleaned((1, 3), (3, 6)))]),
    ("SEG-I2", [("athens", cleaned((4, 6), compacted=2))]),
    ("LWM-I1", [("athens", taken(5, checksum=1)), ("cyrene", taken(5, checksum=2))]),
    ("LWM-I1", [("athens", taken(5, checksum=1)), ("athens", restored(5, checksum=2))]),
    ("LWM-I5", [("athens", taken(5, checksum=1)), ("cyrene", restored(5, checksum=2, installed=True))]),
    ("LWM-I2", [("athens", restored(5, compacted=6))]),
    ("LWM-I2", [("athens", restored(5, last=4))]),
    ("LWM-I2", [("athens", taken(5, mark=5)), ("athens", cleaned(compacted=6, deleted=1))]),
    ("LWM-I2", [("athens", cleaned(compacted=1, deleted=1))]),
    ("LWM-I3", [("athens", HighWaterMarkAdvanced(1, 9, 1, False)), ("athens", taken(6, applied=5))]),
    ("LWM-I3", [("athens", HighWaterMarkAdvanced(1, 4, 1, False)), ("athens", taken(5))]),
    ("LWM-I3", [("athens", committed(9)), ("athens", taken(5, mark=4)), ("athens", taken(6, mark=3))]),
]


@pytest.mark.parametrize(("invariant", "story"), BREACHES)
def test_each_breach_is_reported(invariant: str, story: Story) -> None:
    assert invariant in breached(story)


def test_a_log_that_is_not_cleaned_again_is_reported() -> None:
    assert "LWM-I4" in breached([("athens", cleaned()), *MANY_SNAPSHOTS], step_us=2 * INTERVAL_US)


def test_every_invariant_has_a_breach_above() -> None:
    assert {kind.id for kind in STORAGE_INVARIANTS} == {name for name, _ in BREACHES} | {"LWM-I4"}


@pytest.mark.parametrize(
    "story",
    [
        pytest.param([*THREE, *UP_TO_9, ("cyrene", NodeStarted(1, 5)), ("cyrene", NodeStarted(1, 0))], id="minority"),
        pytest.param(
            [*THREE, *UP_TO_9, ("cyrene", NodeStarted(1, 5)), ("athens", committed(12)), ("athens", NodeStarted(1, 9))],
            id="two servers lack different entries",
        ),
        pytest.param(
            [("athens", applied(1)), ("athens", NodeStarted(1, 1)), ("athens", applied(1))], id="replay after restart"
        ),
        pytest.param([("athens", restored(5)), ("athens", applied(6)), ("cyrene", applied(1))], id="after a snapshot"),
        pytest.param([("athens", cleaned((4, 6), (7, 7), compacted=3))], id="segments that join"),
        pytest.param([("athens", restored(5, compacted=5, last=5))], id="an empty log after the snapshot"),
        pytest.param(
            [("athens", committed(9)), ("athens", taken(5, mark=3)), ("athens", cleaned(compacted=3, deleted=1))],
            id="cleaned up to the mark",
        ),
        pytest.param(
            [("athens", committed(9)), ("athens", taken(5, checksum=1)), ("athens", taken(6, checksum=2))],
            id="states of different entries differ",
        ),
        pytest.param(
            [
                ("athens", committed(9)),
                ("athens", taken(9, mark=9)),
                ("athens", NodeStarted(1, 9)),
                ("athens", restored(9)),
            ],
            id="the mark is learned again after a restart",
        ),
    ],
)
def test_what_only_looks_odd_is_no_breach(story: Story) -> None:
    assert breached(story) == set()


def test_many_snapshots_at_once_are_no_breach() -> None:
    """A server that was paused catches up: long since the last cleaning, and a few snapshots in a row."""
    catching_up = [*boot("athens"), ("athens", committed(99)), ("athens", cleaned()), *MANY_SNAPSHOTS[:9]]
    assert breached(catching_up, step_us=100 * INTERVAL_US) == set()
    assert breached([*catching_up[:3], *MANY_SNAPSHOTS]) == set()
