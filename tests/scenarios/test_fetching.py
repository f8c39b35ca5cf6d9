"""Stories about followers that fetch (replication=pull) which a transcript cannot tell: late answers of an old life."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.pulled_log import FetchDiverged, FetchRequest


@pytest.mark.rows("LOG-R19", "LOG-R13")
def test_a_divergence_that_was_told_to_an_earlier_process_cuts_nothing_off() -> None:
    """The numbers of fetches begin anew at a restart, so an old answer may carry the number of the open fetch."""
    cluster = Cluster(replication="pull")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    alice.set("athens", "title", "acknowledged")
    cluster.deliver()
    before = cluster.log("cyrene")
    cluster.restart("cyrene")
    cluster.heartbeat("athens")
    cluster.deliver(lambda _, target, __: target == "cyrene")
    (fetch,) = [item[2] for item in cluster.queue if isinstance(item[2], FetchRequest) and item[0] == "cyrene"]
    assert (fetch.correlation_id, fetch.after_index) == (1, 3)
    late = FetchDiverged("athens", 1, after_index=3, after_generation=0, index=1, entry_generation=1)
    cluster.hand("athens", "cyrene", late)
    assert cluster.log("cyrene") == before


@pytest.mark.rows("LOG-R19")
def test_a_fetch_of_an_older_generation_acknowledges_nothing() -> None:
    """The entries that the follower had under another leader say nothing about those that it keeps under this one."""
    cluster = Cluster(replication="pull")
    cluster.elect("athens")
    cluster.kill("athens")
    cluster.elect("byzantium", lambda _, __, message: not isinstance(message, FetchRequest))
    cluster.drop(lambda *_: True)
    mark = cluster.mark("byzantium")
    cluster.hand("cyrene", "byzantium", FetchRequest("cyrene", 1, 9, 2, 2, 0))
    assert cluster.mark("byzantium") == mark
    assert cluster.queue == []
    cluster.hand("cyrene", "byzantium", FetchRequest("cyrene", 2, 9, 2, 2, 0))
    assert cluster.mark("byzantium") == 2
