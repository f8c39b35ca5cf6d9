"""Each invariant of versions and follower reads reports its breach, and accepts the twin in which nothing is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.invariant import Breach
from faultline.systems_under_test.patterns.data_replication.closed_timestamp import TimeClosed
from faultline.systems_under_test.patterns.data_replication.follower_reads import (
    FollowerReadServed,
    FollowerReadTimedOut,
    checksum_of,
)
from faultline.systems_under_test.patterns.data_replication.replication_messages import HighWaterMarkAdvanced
from faultline.systems_under_test.reference.follower_reads.invariants import (
    follower_read_invariants,
)
from faultline.systems_under_test.reference.follower_reads.stamped_store import VersionWritten
from faultline.systems_under_test.reference.shared.trace_events import NodeStarted

MS = 1_000
Event = tuple[int, str, Any]


def wrote(node: str, version: int, value: Any, key: str = "title", index: int | None = None) -> Event:
    return (0, node, VersionWritten(version if index is None else index, key, version, checksum_of(value)))


def served(
    node: str, version: int, value: Any, key: str = "title", time_us: int = 0, log_index: int | None = None, **more: int
) -> Event:
    times = {"silence_us": 0, "silence_us_max": 500 * MS, "bound_us": 0} | more
    event = FollowerReadServed(
        key=key,
        version=version,
        checksum=checksum_of(value),
        log_index=version if log_index is None else log_index,
        **times,
    )
    return (time_us, node, event)


def committed(index: int, time_us: int = 0, leading: bool = True) -> Event:
    return (time_us, "athens", HighWaterMarkAdvanced(1, index, 1, leading))


def closed(timestamp: int, index: int, node: str = "athens") -> Event:
    return (0, node, TimeClosed(index, timestamp))


def broken(*events: Event) -> set[str]:
    breaches: list[Breach] = []
    for invariant in follower_read_invariants():
        for time_us, node, event in events:
            if isinstance(event, invariant.events):
                invariant.observe(time_us, node, event, breaches.append)
    return {breach.invariant for breach in breaches}


HISTORY = (
    committed(3),
    wrote("athens", 1, "Nitroservices"),
    wrote("athens", 2, "x", "author"),
    wrote("athens", 3, "M"),
)


@pytest.mark.parametrize(
    ("invariant", "events"),
    [
        ("VVL-I1", (wrote("athens", 1, "Nitroservices"), wrote("byzantium", 1, "Microservices"))),
        ("VVL-I2", (wrote("athens", 1, "a"), wrote("byzantium", 2, "a", index=1))),
        ("VVL-I2", (wrote("athens", 5, "a", index=5), wrote("athens", 4, "b", index=6))),
        ("VVL-I3", (*HISTORY, served("byzantium", 2, "M"))),
        ("VVL-I3", (*HISTORY, served("byzantium", 3, None, "title"))),
        ("VVL-I3", (*HISTORY, served("byzantium", 1, "Nitroservices", "author"))),
        ("FR-I3", (committed(3), wrote("athens", 4, "dirty"), served("byzantium", 4, "dirty"))),
        ("FR-I3", (committed(3), committed(9, leading=False), wrote("athens", 4, "d"), served("byzantium", 4, "d"))),
        ("FR-I4", (*HISTORY, served("byzantium", 3, "M"), served("byzantium", 1, "Nitroservices"))),
        (
            "FR-I6",
            (*HISTORY, committed(4, 100 * MS), served("byzantium", 3, "M", time_us=500 * MS, bound_us=300 * MS)),
        ),
        ("FR-R9", (*HISTORY, served("byzantium", 3, "M", silence_us=500 * MS + 1))),
        ("FR-R14", ((0, "byzantium", FollowerReadTimedOut(3, 3)),)),
        ("FR-R22", (closed(20, index=2), wrote("athens", 20, "late", index=3))),
        ("FR-R22", (closed(20, index=2), closed(30, index=5), wrote("byzantium", 15, "late", index=4))),
        ("FR-R22", (closed(20, index=2), served("byzantium", 21, None, log_index=2, closed=21))),
        ("FR-R22", (closed(20, index=3), served("byzantium", 20, None, log_index=2, closed=20))),
    ],
)
def test_each_read_invariant_reports_its_breach(invariant: str, events: tuple[Event, ...]) -> None:
    assert invariant in broken(*events)


@pytest.mark.rows("VVL-I4")
def test_answers_at_one_version_that_fit_no_common_prefix_are_reported() -> None:
    early, late = wrote("athens", 1, "old", "a"), wrote("athens", 2, "new", "a")
    other = wrote("athens", 3, "new", "b")
    assert "VVL-I4" in broken(committed(3), early, late, other, served("x", 3, "old", "a"), served("y", 3, "new", "b"))
    assert broken(committed(3), early, late, other, served("x", 3, "new", "a"), served("y", 3, "new", "b")) == set()


@pytest.mark.parametrize(
    "events",
    [
        (
            *HISTORY,
            wrote("byzantium", 1, "Nitroservices"),
            served("byzantium", 3, "M"),
            served("byzantium", 3, "x", "author"),
        ),
        (
            *HISTORY,
            served("byzantium", 2, "Nitroservices", log_index=3),
            served("byzantium", 1, None, "author", log_index=3),
        ),
        (wrote("athens", 1, "a"), (0, "athens", NodeStarted(1, 1)), wrote("athens", 1, "a")),
        (committed(9), wrote("athens", 3, "a"), wrote("athens", 3, "b", "other")),
        (*HISTORY, served("byzantium", 3, "M", log_index=3), served("cyrene", 1, "Nitroservices")),
        (*HISTORY, committed(4, 100 * MS), served("byzantium", 3, "M", time_us=400 * MS, bound_us=300 * MS)),
        (*HISTORY, committed(4, 100 * MS), served("byzantium", 3, "M", time_us=9_000 * MS)),
        (*HISTORY, served("byzantium", 3, "M", silence_us=500 * MS)),
        ((0, "byzantium", FollowerReadTimedOut(3, 2)),),
        (
            committed(9),
            wrote("athens", 10, "a", index=1),
            closed(20, index=2),
            closed(20, index=2, node="byzantium"),
            wrote("athens", 21, "b", index=3),
            served("byzantium", 20, "a", log_index=3, closed=20),
            served("byzantium", 20, "a", log_index=2, closed=20, silence_us=9_000 * MS),
        ),
    ],
)
def test_what_is_allowed_of_reads_is_not_reported(events: tuple[Event, ...]) -> None:
    assert broken(*events) == set()


def test_every_read_invariant_says_what_it_states() -> None:
    invariants = follower_read_invariants()
    assert len({invariant.id for invariant in invariants}) == len(invariants)
    assert all(invariant.statement.endswith(".") for invariant in invariants)
