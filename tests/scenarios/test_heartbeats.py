"""Stories about heartbeats and the failure detector: HB-S1 to HB-S5, HB-S8."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, HEARTBEAT_US, Cluster
from faultline.systems_under_test.patterns.data_replication.heartbeat import (
    HeartBeatScheduler,
    TimeoutBasedFailureDetector,
    check_heartbeat_timing,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole


def candidates(cluster: Cluster) -> list[str]:
    return [name for name, node in cluster.nodes.items() if node.election.role is ServerRole.LOOKING_FOR_LEADER]


def followers_alone() -> Cluster:
    """A leader whose followers heard from it just now; then it falls silent, and they cannot elect a leader."""
    cluster = Cluster()
    cluster.elect("athens")
    cluster.heartbeat("athens")
    cluster.deliver()
    cluster.cut("athens")
    cluster.cut("byzantium", "cyrene")
    return cluster


@pytest.mark.rows("HB-S1", "HB-R8")
def test_a_dead_leader_is_suspected_after_the_timeout_and_not_before() -> None:
    """HB-S1: byzantium's timeout is 10 ms above the shortest."""
    cluster = followers_alone()
    cluster.pass_time(ELECTION_TIMEOUT_US + 10_000 - 1)
    assert candidates(cluster) == []
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert set(candidates(cluster)) >= {"byzantium", "cyrene"}


@pytest.mark.rows("HB-S2")
def test_lost_heartbeats_within_the_timeout_are_forgiven() -> None:
    """HB-S2: four of five may be lost at 50 and 250 ms."""
    cluster = Cluster()
    cluster.elect("athens")
    for _ in range(3):
        for _ in range(4):
            cluster.heartbeat("athens")
            cluster.drop(lambda *_: True)
            for name in ("byzantium", "cyrene"):
                cluster.ports[name].now_us += HEARTBEAT_US
        cluster.heartbeat("athens")
        cluster.deliver()
        cluster.pass_time(0)
    assert cluster.leaders() == ["athens"]
    assert candidates(cluster) == []


@pytest.mark.rows("HB-S3", "HB-R12")
def test_a_server_that_slept_accuses_no_server_when_it_wakes() -> None:
    """HB-S3: the check that runs 10 s late judges nothing; a leader that really died is suspected in the next one."""
    cluster = followers_alone()
    sleeper = cluster.ports["byzantium"]
    timer = sleeper.next_timer()
    assert timer is not None
    sleeper.now_us = timer.due_us + 10_000_000
    sleeper.ring(timer)
    assert candidates(cluster) == []
    cluster.time_out("byzantium")
    assert candidates(cluster) == ["byzantium"]


@pytest.mark.rows("HB-S3")
def test_heartbeats_that_waited_with_the_sleeper_keep_its_leader_in_place() -> None:
    """HB-S3, second half."""
    cluster = Cluster()
    cluster.elect("athens")
    sleeper = cluster.ports["byzantium"]
    timer = sleeper.next_timer()
    assert timer is not None
    cluster.heartbeat("athens")
    sleeper.now_us = timer.due_us + 10_000_000
    sleeper.ring(timer)
    cluster.deliver()
    cluster.pass_time(ELECTION_TIMEOUT_US - 1)
    assert cluster.leaders() == ["athens"]


@pytest.mark.rows("HB-S8")
def test_steps_of_the_wall_clock_make_no_server_suspected() -> None:
    """HB-S8."""
    cluster = Cluster()
    cluster.elect("athens")
    for offset_us in (3_600_000_000, -3_600_000_000):
        cluster.ports["byzantium"].wall_offset_us = offset_us
        cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert cluster.leaders() == ["athens"]
    assert cluster.marks.count("leader-changed") == 0


@pytest.mark.rows("HB-S10", "HB-R6")
def test_a_leader_that_is_never_heard_is_suspected_too() -> None:
    """HB-S10: silence counts from the start of the detector."""
    cluster = Cluster()
    cluster.time_out("byzantium")
    assert candidates(cluster) == ["byzantium"]


@pytest.mark.rows("HB-R1", "HB-R13")
def test_an_interval_that_leaves_no_room_for_a_lost_heartbeat_is_refused() -> None:
    """HB-R1."""
    check_heartbeat_timing(100_000, 1_000_000)
    with pytest.raises(UsageError, match="room to lose one"):
        check_heartbeat_timing(100_000, 199_000)
    with pytest.raises(UsageError, match="round trip"):
        check_heartbeat_timing(999, 1_000_000)


@pytest.mark.rows("HB-R2")
def test_a_scheduler_acts_at_fixed_delay_until_it_is_stopped() -> None:
    """HB-R2."""
    ports = Cluster().ports["athens"]
    ports.forget_timers()
    acted: list[int] = []
    scheduler = HeartBeatScheduler(ports.timers, 100_000, lambda: acted.append(ports.now_us))
    scheduler.start()
    start_us = ports.now_us
    for _ in range(3):
        timer = ports.next_timer()
        assert timer is not None
        ports.ring(timer)
    scheduler.stop()
    assert acted == [start_us + 100_000, start_us + 200_000, start_us + 300_000]
    assert ports.next_timer() is None


@pytest.mark.rows("HB-R5")
def test_a_detector_measures_silence_from_the_last_heartbeat() -> None:
    """HB-I3."""
    ports = Cluster().ports["athens"]
    detector = TimeoutBasedFailureDetector(ports.clock, 1_000)
    assert detector.restart(1_000) == 1_000
    ports.now_us += 900
    detector.heartbeat_received()
    ports.now_us += 100
    assert detector.check() == 900
    ports.now_us += 900
    assert detector.silence_us() == 1_000
    assert detector.check() == 0
