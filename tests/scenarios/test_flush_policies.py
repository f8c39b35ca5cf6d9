"""Stories of flush policies: the writes that a crash of all servers costs under each of them, in a cluster."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster

INTERVAL_US = 200_000


def after_all_servers_crashed(policy: str, *, wait_us: int = 0) -> Cluster:
    """Two writes; the first may wait for so long before all servers lose their power."""
    cluster = Cluster(flush_policy=policy)
    cluster.elect("athens")
    client = Client(cluster, "alice").register("athens")
    for value in ("first", "second"):
        number = client.set("athens", value, "acknowledged")
        cluster.deliver()
        assert len(client.answers_to(number)) == 1
        if value == "first":
            cluster.pass_time(wait_us)
    for name in cluster.members:
        cluster.kill(name)
    for name in cluster.members:
        cluster.start(name)
    cluster.elect("athens")
    return cluster


@pytest.mark.rows("WAL-R9", "WAL-S1", "WAL-S3")
def test_with_a_flush_after_each_append_everything_acknowledged_is_there() -> None:
    cluster = after_all_servers_crashed("each-append")
    assert sorted(cluster.values("athens")) == ["first", "second"]
    assert cluster.broken() == []


@pytest.mark.rows("WAL-R9", "WAL-S3")
def test_with_flushes_in_intervals_what_came_after_the_last_one_is_gone_and_the_invariant_says_so() -> None:
    cluster = after_all_servers_crashed("interval", wait_us=2 * INTERVAL_US)
    assert sorted(cluster.values("athens")) == ["first"]
    assert "WAL-I1" in cluster.broken()


@pytest.mark.rows("WAL-R9", "WAL-S3")
@pytest.mark.parametrize("wait_us", [0, 10 * INTERVAL_US])
def test_without_flushes_everything_is_gone_however_long_ago_it_was_acknowledged(wait_us: int) -> None:
    cluster = after_all_servers_crashed("never", wait_us=wait_us)
    assert cluster.values("athens") == {}
    assert "WAL-I1" in cluster.broken()
