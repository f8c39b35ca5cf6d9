"""Stories about the consistent core as its users meet it: CC-R10, CC-S12 of the requirements."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster


@pytest.mark.rows("CC-R10")
def test_a_server_that_follows_forwards_requests_and_passes_the_answers_on() -> None:
    cluster = Cluster(find_leader="forward")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("byzantium")
    number = alice.set("cyrene", "k", 1)
    cluster.deliver()
    answer = alice.answer_to(number)
    assert answer is not None and answer.error is None
    assert alice.redirects() == []
    assert {source for source, _ in cluster.inbox["alice"]} == {"byzantium", "cyrene"}
    assert cluster.values("athens") == {"k": 1}


@pytest.mark.rows("CC-R10")
def test_what_was_forwarded_to_a_server_that_leads_no_longer_comes_back_as_a_redirect() -> None:
    cluster = Cluster(find_leader="forward")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("cyrene")
    cluster.split("athens")
    cluster.elect(
        "byzantium", lambda source, target, _: "cyrene" not in (source, target) or "byzantium" in (source, target)
    )
    cluster.heal()
    cluster.nodes["cyrene"].election.leader_id = "athens"
    cluster.pass_time(100_000)
    cluster.nodes["cyrene"].election.leader_id = "athens"
    alice.set("cyrene", "k", 1)
    cluster.deliver()
    assert [redirect.leader_id for redirect in alice.redirects()] == ["byzantium"]


@pytest.mark.rows("CC-R10")
def test_without_a_leader_a_server_that_would_forward_redirects_to_no_server() -> None:
    cluster = Cluster(find_leader="forward")
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.kill("athens")
    cluster.go_silent()
    cluster.time_out("byzantium")
    alice.set("byzantium", "k", 1)
    assert [redirect.leader_id for redirect in alice.redirects()] == [None]


@pytest.mark.rows("CC-S12", "CC-R1")
def test_without_a_majority_nothing_is_acknowledged_and_afterwards_everything_acknowledged_is_there() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    kept = alice.set("athens", "k", 1)
    cluster.deliver()
    assert alice.answer_to(kept) is not None
    for name in ("byzantium", "cyrene"):
        cluster.kill(name)
    write, read = alice.set("athens", "k", 2), alice.get("athens", "k")
    cluster.deliver()
    assert (alice.answer_to(write), alice.answer_to(read)) == (None, None)
    for name in ("byzantium", "cyrene"):
        cluster.start(name)
    cluster.kill("athens")
    cluster.elect("byzantium")
    assert cluster.values("byzantium") == {"k": 1}
    assert cluster.broken() == []
