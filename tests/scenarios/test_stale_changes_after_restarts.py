"""Changes that arrive once more after their host has restarted, over a connection that ended with the crash."""

from __future__ import annotations

from typing import Any

import pytest
from range_driver import RangeCluster

from faultline.story.clock_cluster import TITLE, ClockCluster
from faultline.systems_under_test.reference.range_kv.messages import CompareAndSetKey, DeleteKey, WriteKey
from faultline.systems_under_test.reference.timestamped_kv.messages import WriteRequest

HOST = "athens"
CHANGES: list[tuple[type, str, Any]] = [
    (WriteKey, "write", "old"), (CompareAndSetKey, "cas", [None, "old"]), (DeleteKey, "delete", None),
]  # fmt: skip


def last_change(cluster: RangeCluster, kind: type) -> Any:
    return next(message for _, _, message in reversed(cluster.sent) if isinstance(message, kind))


@pytest.mark.parametrize("snapshot_every", [2, 1_000])
@pytest.mark.parametrize(("kind", "function", "value"), CHANGES)
def test_a_host_of_ranges_makes_no_change_again_that_comes_once_more_after_its_restart(
    kind: type, function: str, value: Any, snapshot_every: int
) -> None:
    cluster = RangeCluster(snapshot_every_entries=str(snapshot_every))
    cluster.ask("first", function, "title", value)
    stale = last_change(cluster, kind)
    cluster.ask("second", "delete" if function == "cas" else "write", "title", "new")
    before = cluster.ask("reader", "read", "title")
    cluster.restart(HOST)
    cluster.hand("first", HOST, stale)
    assert cluster.ask("reader", "read", "title") == before


def test_a_host_of_ranges_takes_later_changes_of_the_same_client_after_its_restart() -> None:
    cluster = RangeCluster()
    cluster.write("first", title="old")
    cluster.restart(HOST)
    cluster.write("first", title="new")
    assert cluster.ask("reader", "read", "title") == "new"


@pytest.mark.parametrize("wait", ["none", "write"])
def test_an_owner_of_stamped_keys_writes_nothing_again_that_comes_once_more_after_its_restart(wait: str) -> None:
    cluster = ClockCluster(3, wait=wait, forward_jump_ms="0")
    cluster.write("first", HOST, "old")
    cluster.pass_seconds(2)
    stale = WriteRequest(1, TITLE, "old", cluster.stamp_of("first"))
    cluster.restart(HOST)
    cluster.write("first", HOST, "new")
    cluster.pass_seconds(2)
    assert cluster.stamp_of("first") is not None
    stamps = cluster.nodes[HOST].versions.stamps(TITLE)
    cluster.restart(HOST)
    cluster.hand("first", HOST, stale)
    cluster.pass_seconds(2)
    assert len(stamps) == 2 and cluster.nodes[HOST].versions.stamps(TITLE) == stamps
