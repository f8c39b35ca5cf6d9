"""Stories about reads: LOG-S5 in every mode, the lease's numbers (LOG-S6), pauses, clocks, new leaders."""

from __future__ import annotations

import pytest
from cluster_driver import ELECTION_TIMEOUT_US, Client, Cluster

from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest

LEASE_US = 200_000


def deposed_leader_is_asked(read_mode: str, *mutants: str) -> tuple[Cluster, Client, int]:
    """LOG-S5: athens is cut off, cyrene elected, Alice's write answered there; then Bob asks athens."""
    cluster = Cluster(mutants=mutants, read_mode=read_mode)
    cluster.pass_time(3 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["athens"]
    alice = Client(cluster, "alice").register("athens")
    bob = Client(cluster, "bob").register("athens")
    alice.set("athens", "title", "Nitroservices")
    cluster.deliver()
    cluster.cut("athens")
    cluster.go_silent()
    cluster.go_silent("byzantium")
    cluster.time_out("cyrene")
    cluster.deliver()
    assert cluster.leads("cyrene") and cluster.leads("athens")
    number = alice.set("cyrene", "title", "Microservices")
    cluster.deliver()
    assert len(alice.answers_to(number)) == 1
    return cluster, bob, bob.get("athens", "title")


@pytest.mark.parametrize("read_mode", ["read-index", "leader-lease", "log"])
def test_a_deposed_leader_gives_no_stale_answer(read_mode: str) -> None:
    cluster, bob, number = deposed_leader_is_asked(read_mode)
    assert bob.answers_to(number) == []
    cluster.pass_time(4 * ELECTION_TIMEOUT_US)
    assert bob.answers_to(number) == []
    assert not cluster.leads("athens")
    assert [redirect.leader_id for redirect in bob.redirects()] == [None]
    assert cluster.broken() == []


def test_in_mode_stale_the_old_value_is_an_expected_answer() -> None:
    _, bob, number = deposed_leader_is_asked("stale")
    assert [answer.value for answer in bob.answers_to(number)] == ["Nitroservices"]


def test_in_mode_stale_any_server_answers() -> None:
    cluster = Cluster(read_mode="stale")
    bob = Client(cluster, "bob")
    assert [answer.value for answer in bob.answers_to(bob.get("cyrene", "title"))] == [None]


def test_the_planted_bug_stale_read_answers_from_the_past() -> None:
    cluster, bob, number = deposed_leader_is_asked("read-index", "stale-read")
    assert [answer.value for answer in bob.answers_to(number)] == ["Nitroservices"]
    cluster.ports["athens"].now_us += 10 * ELECTION_TIMEOUT_US
    cluster.heartbeat("athens")
    assert cluster.leads("athens")


def leader_with_lease(*mutants: str) -> tuple[Cluster, Client]:
    """A leader whose followers have just acknowledged a heartbeat; nothing is delivered any more afterwards."""
    cluster = Cluster(mutants=mutants, read_mode="leader-lease")
    cluster.elect("athens")
    bob = Client(cluster, "bob").register("athens")
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.cut("athens")
    return cluster, bob


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


def test_a_late_answer_does_not_prolong_the_lease() -> None:
    """LOG-S8: a heartbeat is answered after almost a lease, which counts from the sending all the same."""
    cluster = Cluster(read_mode="leader-lease")
    cluster.elect("athens")
    bob = Client(cluster, "bob").register("athens")
    cluster.heartbeat("athens")
    cluster.deliver(lambda source, _, __: source == "athens")
    cluster.ports["athens"].now_us += LEASE_US - 1
    cluster.deliver()
    cluster.ports["athens"].now_us += 1
    assert bob.answers_to(bob.get("athens", "title")) == []


def test_a_leader_that_slept_through_its_lease_refuses() -> None:
    """LOG-S10."""
    cluster, bob = leader_with_lease()
    cluster.ports["athens"].now_us += 10_000_000
    assert bob.answers_to(bob.get("athens", "title")) == []


@pytest.mark.parametrize(("mutants", "served"), [((), False), (("wall-clock-lease",), True)])
def test_a_wall_clock_that_steps_back_prolongs_only_the_planted_lease(mutants: tuple[str, ...], served: bool) -> None:
    """LOG-S9 and LOG-M12."""
    cluster, bob = leader_with_lease(*mutants)
    cluster.ports["athens"].now_us += 3 * LEASE_US
    cluster.ports["athens"].wall_offset_us = -3 * LEASE_US
    assert (len(bob.answers_to(bob.get("athens", "title"))) == 1) == served


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
