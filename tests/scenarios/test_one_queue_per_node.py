"""Everything that happens to a node passes through its one update queue: requests, acknowledgements, votes, timers."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster


def watched(cluster: Cluster, name: str) -> list[str]:
    """Return a log of the begin and the end of each message that the node's consumer handles from now on."""
    log: list[str] = []
    queue: Any = cluster.nodes[name]._queue
    handle = queue._handler

    def handler(item: tuple[str, Any]) -> None:
        log.append(f"begin {type(item[1]).__name__}")
        handle(item)
        log.append(f"end {type(item[1]).__name__}")

    queue._handler = handler
    return log


@pytest.mark.rows("SUQ-S10", "SUQ-I1", "SYS-S9")
def test_client_requests_and_acknowledgements_are_handled_one_at_a_time_in_the_order_they_came() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    bob = Client(cluster, "bob").register("athens")
    log = watched(cluster, "athens")
    alice.set("athens", "title", "A1")
    bob.set("athens", "title", "B1")
    cluster.deliver()
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert len(log) > 10
    for begin, end in zip(log[::2], log[1::2], strict=True):
        assert begin.removeprefix("begin ") == end.removeprefix("end ")
    handled = [line.removeprefix("begin ") for line in log[::2]]
    assert handled[:6] == ["ClientRequest"] * 2 + ["ReplicationResponse"] * 4
    assert {"ClientRequest", "ReplicationResponse", "_Task"} <= set(handled)
    wal = cluster.nodes["athens"].wal
    data = [wal.entry(index).data for index in range(wal.last_index - 1, wal.last_index + 1)]
    assert b"A1" in data[0] and b"B1" in data[1]
