"""Follower reads, piece by piece: who waits for a stamp, how fresh a follower knows it is, whom a client asks."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.closed_timestamp import (
    ClosedTimestampLeader,
    ClosedTimestampReplica,
    NotClosed,
)
from faultline.systems_under_test.patterns.data_replication.follower_reads import LeaderContact, WaitingReads
from faultline.systems_under_test.patterns.data_replication.replica_selection import (
    NearestReplicas,
    ReplicaDescriptor,
    WeightedAverage,
)
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions
from faultline.testing.fake_ports import FakePorts


class Readers:
    """The readers that were served, with their values at that time, and those that were given up."""

    def __init__(self, timeout_us: int = 200_000) -> None:
        self.clock = FakePorts()
        self.values: dict[str, str] = {"title": "Nitroservices"}
        self.served: list[tuple[str, str | None]] = []
        self.given_up: list[tuple[int, str]] = []
        self.waiting: WaitingReads[str] = WaitingReads(
            self.clock,
            timeout_us,
            lambda key: self.served.append((key, self.values.get(key))),
            lambda stamp, key: self.given_up.append((stamp, key)),
        )

    def apply(self, version: int, key: str, value: str) -> None:
        self.values[key] = value
        self.waiting.applied(version)


@pytest.mark.rows("FR-R12", "FR-R14", "FR-S1")
def test_a_read_with_stamp_2_waits_at_version_1_and_sees_the_write() -> None:
    readers = Readers()
    readers.waiting.applied(1)
    assert not readers.waiting.read(2, "title")
    assert readers.served == []
    readers.apply(2, "title", "Microservices")
    assert readers.served == [("title", "Microservices")]


@pytest.mark.rows("FR-R12")
def test_a_read_whose_stamp_is_applied_already_is_served_at_once() -> None:
    readers = Readers()
    readers.waiting.applied(2)
    assert [readers.waiting.read(stamp, "title") for stamp in (0, 1, 2)] == [True, True, True]
    assert not readers.waiting.read(3, "title")


@pytest.mark.rows("FR-R13")
def test_a_read_waits_no_longer_than_the_timeout_and_is_forgotten_then() -> None:
    readers = Readers(timeout_us=200_000)
    readers.waiting.read(2, "title")
    readers.clock.pass_time(199_999)
    assert readers.given_up == []
    assert len(readers.waiting) == 1
    readers.clock.pass_time(1)
    assert readers.given_up == [(2, "title")]
    assert len(readers.waiting) == 0
    readers.apply(2, "title", "Microservices")
    assert readers.served == []


@pytest.mark.rows("FR-R15", "FR-S7")
def test_two_readers_of_one_stamp_are_both_served() -> None:
    readers = Readers()
    readers.waiting.read(2, "title")
    readers.waiting.read(2, "author")
    readers.apply(2, "title", "Microservices")
    assert readers.served == [("title", "Microservices"), ("author", None)]
    readers.clock.pass_time(1_000_000)
    assert readers.given_up == []


@pytest.mark.rows("FR-R16", "FR-S8")
def test_a_reader_whose_stamp_was_a_write_to_another_key_gets_its_own_key() -> None:
    readers = Readers()
    readers.waiting.read(5, "title")
    readers.apply(5, "author", "unknown")
    assert readers.served == [("title", "Nitroservices")]


@pytest.mark.rows("FR-R14", "FR-R15", "FR-S9")
def test_a_jump_over_several_versions_serves_all_readers_below() -> None:
    readers = Readers()
    readers.waiting.applied(1)
    for stamp, key in ((7, "author"), (3, "title"), (10, "late")):
        readers.waiting.read(stamp, key)
    readers.apply(9, "author", "unknown")
    assert readers.served == [("title", "Nitroservices"), ("author", "unknown")]
    assert len(readers.waiting) == 1


def test_who_is_given_up_in_the_middle_does_not_disturb_the_order_of_the_others() -> None:
    readers = Readers(timeout_us=100)
    readers.waiting.read(5, "five")
    readers.clock.pass_time(50)
    for stamp in (9, 2, 7, 3):
        readers.waiting.read(stamp, str(stamp))
    readers.clock.pass_time(50)
    assert readers.given_up == [(5, "five")]
    for version in (2, 3, 8):
        readers.waiting.applied(version)
    assert [key for key, _ in readers.served] == ["2", "3", "7"]


SILENCE_US = 500_000


def contact_at(clock: FakePorts) -> LeaderContact:
    return LeaderContact(clock, SILENCE_US, first_id=100)


@pytest.mark.rows("FR-R9")
def test_after_a_silence_a_follower_serves_only_once_it_has_heard_and_caught_up() -> None:
    clock = FakePorts()
    contact = contact_at(clock)
    assert not contact.may_serve()
    contact.answered(contact.asking(), 7, applied_index=7)
    assert contact.may_serve()
    clock.pass_time(SILENCE_US + 1)
    assert not contact.may_serve()
    contact.heard()
    assert not contact.may_serve()
    contact.answered(contact.asking(), 9, applied_index=8)
    assert not contact.may_serve()
    contact.applied(9)
    assert contact.may_serve()


@pytest.mark.rows("FR-R10")
def test_the_age_counts_from_the_question_not_from_the_answer() -> None:
    clock = FakePorts()
    contact = contact_at(clock)
    question = contact.asking()
    clock.pass_time(120_000)
    contact.heard()
    contact.answered(question, 7, applied_index=7)
    assert contact.age_us() == 120_000
    assert contact.may_serve(120_000)
    assert not contact.may_serve(119_999)


@pytest.mark.rows("FR-R10")
def test_of_several_answers_the_newest_question_that_is_applied_counts() -> None:
    clock = FakePorts()
    contact = contact_at(clock)
    assert contact.age_us() is None
    first = contact.asking()
    clock.pass_time(10)
    second = contact.asking()
    clock.pass_time(10)
    contact.answered(second, 9, applied_index=5)
    contact.answered(first, 5, applied_index=5)
    assert contact.age_us() == 20
    contact.applied(9)
    assert contact.age_us() == 10


def test_an_answer_to_a_former_life_proves_nothing() -> None:
    clock = FakePorts()
    former, present = LeaderContact(clock, SILENCE_US, first_id=100), LeaderContact(clock, SILENCE_US, first_id=900)
    question = former.asking()
    present.asking()
    present.answered(question, 7, applied_index=7)
    assert not present.is_caught_up()


@pytest.mark.rows("FR-R5")
def test_latencies_of_10_20_and_30_average_to_10_12_and_15() -> None:
    average = WeightedAverage(10)
    seen = [average.value]
    for sample in (20, 30):
        average.update(sample)
        seen.append(average.value)
    assert seen == [10, 12, 15]


WEST, EAST, EUROPE = (
    ReplicaDescriptor("athens", "us-west"),
    ReplicaDescriptor("byzantium", "us-east"),
    ReplicaDescriptor("cyrene", "eu-west"),
)


@pytest.mark.rows("FR-R3", "FR-S5")
def test_a_client_in_us_east_asks_the_follower_in_us_east() -> None:
    assert NearestReplicas([WEST, EAST], "us-east").nearest(None)[0] == "byzantium"


@pytest.mark.rows("FR-R3", "FR-R4", "FR-S5")
def test_without_a_follower_in_the_region_the_least_latency_over_all_counts() -> None:
    replicas = NearestReplicas([WEST, EAST], "eu-west")
    replicas.answered("athens", 90)
    replicas.answered("byzantium", 20)
    assert replicas.nearest("cyrene") == ["byzantium", "athens", "cyrene"]


@pytest.mark.rows("FR-R4")
def test_in_the_region_the_least_latency_counts_and_the_list_while_one_is_missing() -> None:
    near = [ReplicaDescriptor(name, "us-east") for name in ("delphi", "ephesus", "fatima")]
    replicas = NearestReplicas([WEST, *near], "us-east")
    replicas.answered("athens", 1)
    replicas.answered("ephesus", 10)
    replicas.answered("fatima", 30)
    assert replicas.nearest(None)[:3] == ["delphi", "ephesus", "fatima"]
    replicas.answered("delphi", 20)
    assert replicas.nearest(None) == ["ephesus", "delphi", "fatima", "athens"]


@pytest.mark.rows("FR-R7")
def test_the_first_sample_counts_and_latencies_are_found_under_the_address() -> None:
    replicas = NearestReplicas([WEST, EAST], "nowhere")
    assert replicas.latency_us("athens") is None
    replicas.answered("athens", 10)
    assert replicas.latency_us("athens") == 10
    replicas.answered("athens", 20)
    assert replicas.latency_us("athens") == 12


@pytest.mark.rows("FR-R6", "FR-S6")
def test_a_nearest_replica_whose_latency_jumps_from_10_to_200_is_left_after_some_heartbeats() -> None:
    replicas = NearestReplicas([WEST, EAST], "nowhere")
    replicas.answered("athens", 10)
    replicas.answered("byzantium", 60)
    chosen = []
    for _ in range(3):
        replicas.answered("athens", 200)
        chosen.append(replicas.nearest(None)[0])
    assert chosen == ["athens", "byzantium", "byzantium"]
    assert replicas.latency_us("athens") == 102


@pytest.mark.rows("FR-R8", "FR-S6")
def test_a_node_that_died_loses_preference_whatever_its_average_was() -> None:
    replicas = NearestReplicas([WEST, EAST], "us-west")
    replicas.answered("athens", 10)
    replicas.answered("byzantium", 90)
    replicas.failed("athens")
    assert replicas.nearest("cyrene") == ["byzantium", "athens", "cyrene"]
    replicas.answered("athens", 10)
    assert replicas.nearest("cyrene") == ["athens", "byzantium", "cyrene"]


@pytest.mark.rows("FR-R10", "FR-S4")
def test_a_follower_that_lags_too_much_is_not_selected_until_it_has_caught_up() -> None:
    replicas = NearestReplicas([WEST, EAST, EUROPE], "us-west")
    replicas.answered("athens", 10, lag_us=900_000)
    replicas.answered("byzantium", 90, lag_us=2_000)
    assert replicas.nearest("cyrene", lag_us_max=300_000) == ["byzantium", "cyrene"]
    replicas.answered("athens", 10, lag_us=1_000)
    assert replicas.nearest("cyrene", lag_us_max=300_000) == ["athens", "byzantium", "cyrene"]


# -- closed timestamps ------------------------------------------------------------------------------------------------


@pytest.mark.rows("FR-R22")
def test_a_follower_answers_at_a_time_only_once_that_is_closed_for_it() -> None:
    values: OrderedVersions[int] = OrderedVersions()
    values.put("title", 10, "Nitroservices")
    values.put("title", 20, "Microservices")
    replica = ClosedTimestampReplica(values)
    with pytest.raises(NotClosed):
        replica.read_at("title", 10)
    replica.close(25)
    assert [replica.read_at("title", at) for at in (9, 10, 19, 20, 25)] == [
        None,
        "Nitroservices",
        "Nitroservices",
        "Microservices",
        "Microservices",
    ]
    with pytest.raises(NotClosed):
        replica.read_at("title", 26)


def test_a_replica_opens_no_time_again_that_is_closed() -> None:
    replica = ClosedTimestampReplica(OrderedVersions())
    replica.close(25)
    replica.close(20)
    assert replica.closed == 25


@pytest.mark.rows("FR-R22")
def test_a_leader_never_writes_at_or_below_what_was_closed_not_even_after_a_failover_with_a_slow_clock() -> None:
    old = ClosedTimestampLeader([])
    log: list[Any] = [old.write(10, b"title := Nitroservices"), old.close(1_000)]
    assert old.write(900, b"title := later").timestamp == 1_001
    assert ClosedTimestampLeader(log).write(500, b"title := Microservices").timestamp == 1_001
    assert ClosedTimestampLeader([], applied=1_000).write(500, b"title := Microservices").timestamp == 1_001
    assert ClosedTimestampLeader(log, applied=2_000).write(500, b"title := Microservices").timestamp == 2_001


@pytest.mark.rows("FR-R22")
def test_a_leader_whose_clock_is_behind_closes_its_own_writes_all_the_same() -> None:
    leader = ClosedTimestampLeader([])
    written = leader.write(1_000, b"title := Nitroservices")
    assert leader.close(500).timestamp == written.timestamp
