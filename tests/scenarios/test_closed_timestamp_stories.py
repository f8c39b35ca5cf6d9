"""Stories about closed timestamps: the title is corrected, and followers answer at the time that is closed for them."""

from __future__ import annotations

import pytest
from read_driver import MS, SILENCE_MS, corrected, library

from faultline.story.log_cluster import Cluster
from faultline.systems_under_test.reference.follower_reads.messages import NOT_CLOSED


def closed_at(cluster: Cluster, *names: str) -> list[int]:
    return [cluster.nodes[name].store.replica.closed for name in names]


@pytest.mark.rows("FR-R22", "FR-I1")
def test_a_follower_answers_at_a_closed_time_and_refuses_a_stamp_that_is_not_closed_yet() -> None:
    cluster, alice = library("closed")
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver()
    stamp = alice.stamp_of(number)
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]
    assert alice.told(alice.read("byzantium", "title", stamp)) == [(None, NOT_CLOSED)]
    cluster.pass_time(100 * MS)
    assert alice.told(alice.read("byzantium", "title", stamp)) == [("Microservices", None)]
    assert alice.stamp_of(alice.number) == closed_at(cluster, "byzantium")[0] >= stamp
    assert cluster.broken() == []


@pytest.mark.rows("FR-R22")
def test_a_follower_without_a_leader_goes_on_answering_at_the_time_that_is_closed_for_it() -> None:
    cluster, alice = library("closed", election_timeout_ms="10000")
    cluster.split("byzantium")
    stamp = corrected(cluster, alice)
    cluster.pass_time((SILENCE_MS + 100) * MS)
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]
    assert alice.told(alice.read("byzantium", "title", stamp)) == [(None, NOT_CLOSED)]
    assert alice.told(alice.read("cyrene", "title", stamp)) == [("Microservices", None)]
    assert cluster.broken() == []


@pytest.mark.rows("FR-R22")
def test_a_leader_with_a_slow_clock_goes_on_above_what_was_closed_before_it() -> None:
    cluster, alice = library("closed")
    before = closed_at(cluster, "cyrene")[0]
    cluster.ports["cyrene"].wall_offset_us = -10_000 * MS
    cluster.kill("athens")
    cluster.elect("cyrene")
    alice.register("cyrene")
    number = alice.set("cyrene", "title", "Microservices")
    cluster.deliver()
    cluster.pass_time(100 * MS)
    assert alice.stamp_of(number) > before
    assert alice.told(alice.read("byzantium", "title", alice.stamp_of(number))) == [("Microservices", None)]
    assert cluster.broken() == []


@pytest.mark.rows("FR-R22")
def test_a_leader_closes_no_time_while_no_command_comes() -> None:
    cluster, _ = library("closed")
    before = cluster.nodes["athens"].wal.last_index
    cluster.pass_time(1_000 * MS)
    assert cluster.nodes["athens"].wal.last_index == before
    assert len(set(closed_at(cluster, *cluster.members))) == 1
