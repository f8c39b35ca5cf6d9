"""Stories about reads: LOG-S5 in every mode, the lease's numbers (LOG-S6), pauses, clocks, new leaders."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest

LEASE_US = 200_000


def test_in_mode_stale_any_server_answers() -> None:
    cluster = Cluster(read_mode="stale")
    bob = Client(cluster, "bob")
    assert [answer.value for answer in bob.answers_to(bob.get("cyrene", "title"))] == [None]


def leader_with_lease(*planted_bugs: str) -> tuple[Cluster, Client]:
    """A leader whose followers have just acknowledged a heartbeat; nothing is delivered any more afterwards."""
    cluster = Cluster(planted_bugs=planted_bugs, read_mode="leader-lease")
    cluster.elect("athens")
    bob = Client(cluster, "bob").register("athens")
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.cut("athens")
    return cluster, bob


@pytest.mark.rows("CC-R22", "CC-S9")
@pytest.mark.rows("LOG-R22", "LOG-S6", "LOG-R25")
def test_a_lease_lasts_as_long_as_it_says_from_the_sending_of_what_was_acknowledged() -> None:
    """LOG-S6: a read inside the lease is served; one after it is refused, and the leader steps down."""
    cluster, bob = leader_with_lease()
    cluster.ports["athens"].now_us += LEASE_US - 1
    assert len(bob.answers_to(bob.get("athens", "title"))) == 1
    cluster.ports["athens"].now_us += 1
    refused = bob.get("athens", "title")
    assert bob.answers_to(refused) == []
    assert not cluster.leads("athens")
    assert bob.redirects()[-1].correlation_id == refused
    assert "lease-expired-read-refused" in cluster.marks


@pytest.mark.rows("LOG-R24", "LOG-S9")
@pytest.mark.parametrize(("planted_bugs", "served"), [((), False), (("wall-clock-lease",), True)])
def test_a_wall_clock_that_steps_back_prolongs_only_the_planted_lease(
    planted_bugs: tuple[str, ...], served: bool
) -> None:
    """LOG-S9 and LOG-M12."""
    cluster, bob = leader_with_lease(*planted_bugs)
    cluster.ports["athens"].now_us += 3 * LEASE_US
    cluster.ports["athens"].wall_offset_us = -3 * LEASE_US
    assert (len(bob.answers_to(bob.get("athens", "title"))) == 1) == served


@pytest.mark.rows("LOG-R21")
def test_a_read_waits_for_heartbeats_sent_after_it_arrived() -> None:
    """LOG-R21: an answer to an older heartbeat proves nothing about now."""
    cluster = Cluster()
    cluster.elect("athens")
    bob = Client(cluster, "bob").register("athens")
    cluster.heartbeat("athens")
    older = cluster.take(lambda *_: True)
    number = bob.get("athens", "title")
    newer = cluster.take(lambda *_: True)
    for item in older:
        cluster.hand(*item)
    cluster.deliver()
    assert bob.answers_to(number) == []
    cluster.hand(*newer[0])
    cluster.deliver()
    assert len(bob.answers_to(number)) == 1


@pytest.mark.rows("LOG-R15", "LOG-S19")
@pytest.mark.parametrize("read_mode", ["read-index", "leader-lease"])
def test_a_new_leader_answers_no_read_before_its_no_op_is_committed(read_mode: str) -> None:
    """LOG-S8: a heartbeat is answered after almost a lease; the lease counts from the sending all the same."""
    cluster = Cluster(read_mode=read_mode)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    alice.set("athens", "title", "answered")
    cluster.deliver()
    cluster.kill("athens")
    cluster.go_silent()
    cluster.time_out("byzantium")
    cluster.deliver(lambda _, __, message: not (isinstance(message, ReplicationRequest) and message.entries))
    assert cluster.leads("byzantium")
    number = alice.get("byzantium", "title")
    cluster.deliver(lambda _, __, message: not (isinstance(message, ReplicationRequest) and message.entries))
    assert alice.answers_to(number) == []
    cluster.deliver()
    assert [answer.value for answer in alice.answers_to(number)] == ["answered"]
