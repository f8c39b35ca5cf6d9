"""One node's partitions: what late and repeated control messages change (nothing), and what a restart keeps (all)."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_partitioning.cluster_directory import Migration
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, PartitionContent, Written
from faultline.systems_under_test.patterns.data_partitioning.partition_host import (
    ARRIVING,
    MIGRATING,
    SERVING,
    NotHosted,
    PartitionHost,
    PartitionIsMigrating,
)
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import keep_nothing

MOVE = Migration(7, "athens", "ephesus", 2)
BACK = Migration(7, "ephesus", "athens", 3)


class Hosts:
    """Two hosts, and the move of partition 7 from one to the other."""

    def __init__(self) -> None:
        self.ports: Any = {"athens": FakePorts(), "ephesus": FakePorts()}
        self.athens = PartitionHost(self.ports["athens"])
        self.ephesus = PartitionHost(self.ports["ephesus"])
        self.athens.recover()
        self.ephesus.recover()
        self.athens.host(7, 1, fresh=True)
        self.put(self.athens, 1, "v1")

    def put(self, host: PartitionHost, generation: int, value: str) -> None:
        host.writable(7, generation)
        host.write(Written(7, "key", value, "client", Answer(generation)))

    def crash(self, name: str) -> PartitionHost:
        self.ports[name].storage.crash(keep_nothing)
        host = PartitionHost(self.ports[name])
        host.recover()
        setattr(self, name, host)
        return host

    def move(self) -> PartitionContent:
        content = self.athens.send_off(MOVE)
        assert content is not None
        self.ephesus.install(MOVE, content)
        self.athens.drop(MOVE)
        return content

    def value(self, host: PartitionHost, generation: int) -> Any:
        return host.readable(7, generation).values["key"]


@pytest.mark.rows("FXP-R17", "FXP-S6")
def test_a_repeated_host_partition_keeps_what_clients_have_written() -> None:
    hosts = Hosts()
    assert hosts.athens.host(7, 1, fresh=True)
    assert hosts.value(hosts.athens, 1) == "v1"


@pytest.mark.rows("FXP-R24", "FXP-R26")
def test_a_migrating_partition_is_read_and_not_written() -> None:
    hosts = Hosts()
    assert hosts.athens.send_off(MOVE) is not None
    assert hosts.value(hosts.athens, 1) == "v1"
    with pytest.raises(PartitionIsMigrating):
        hosts.athens.writable(7, 1)


@pytest.mark.rows("FXP-R25", "FXP-R26")
def test_between_arrival_and_table_no_host_answers_and_no_host_says_absent() -> None:
    hosts = Hosts()
    hosts.move()
    for host, generation in ((hosts.athens, 1), (hosts.ephesus, 2)):
        with pytest.raises(NotHosted):
            host.readable(7, generation)
    assert hosts.ephesus.host(7, 2, fresh=False)
    assert hosts.value(hosts.ephesus, 2) == "v1"
    assert hosts.ephesus.partitions[7].answers["client"] == Answer(1)


@pytest.mark.rows("FXP-R27", "FXP-S8")
def test_a_late_move_changes_nothing_at_who_serves_or_has_passed_the_partition_on() -> None:
    hosts = Hosts()
    old = hosts.move()
    hosts.ephesus.host(7, 2, fresh=False)
    hosts.put(hosts.ephesus, 2, "v2")
    hosts.ephesus.install(MOVE, old)
    assert hosts.value(hosts.ephesus, 2) == "v2"
    content = hosts.ephesus.send_off(BACK)
    assert content is not None
    hosts.athens.install(BACK, content)
    hosts.ephesus.drop(BACK)
    hosts.ephesus.install(MOVE, old)
    assert hosts.ephesus.partitions == {}
    hosts.athens.host(7, 3, fresh=False)
    assert hosts.value(hosts.athens, 3) == "v2"


@pytest.mark.rows("FXP-R27")
def test_a_late_host_partition_does_not_begin_anew_what_has_left() -> None:
    hosts = Hosts()
    hosts.move()
    assert not hosts.athens.host(7, 1, fresh=True)
    assert hosts.athens.partitions == {}
    assert hosts.athens.send_off(MOVE) is None
    assert hosts.athens.has_left(MOVE)
    assert not hosts.athens.has_left(Migration(7, "athens", "cyrene", 4))


@pytest.mark.rows("FXP-R30")
def test_data_that_never_arrived_is_not_replaced_by_nothing() -> None:
    hosts = Hosts()
    assert not hosts.ephesus.host(7, 2, fresh=False)
    with pytest.raises(NotHosted):
        hosts.ephesus.readable(7, 2)


@pytest.mark.rows("FXP-R29")
def test_a_cancelled_move_is_served_again_above_its_generation_and_begins_no_more() -> None:
    hosts = Hosts()
    hosts.athens.send_off(MOVE)
    assert hosts.athens.keep(MOVE)
    assert hosts.athens.keep(MOVE)
    hosts.put(hosts.athens, 3, "v3")
    assert hosts.athens.send_off(MOVE) is None
    hosts.athens.drop(MOVE)
    assert hosts.value(hosts.athens, 3) == "v3"
    with pytest.raises(NotHosted):
        hosts.athens.readable(7, 1)


@pytest.mark.rows("FXP-R29")
def test_a_move_that_has_left_cannot_be_cancelled() -> None:
    hosts = Hosts()
    hosts.move()
    assert not hosts.athens.keep(MOVE)
    assert not hosts.ephesus.keep(MOVE)


@pytest.mark.rows("FXP-R29", "FXP-S8")
def test_every_state_of_a_move_is_durable() -> None:
    hosts = Hosts()
    assert hosts.value(hosts.crash("athens"), 1) == "v1"
    content = hosts.athens.send_off(MOVE)
    assert hosts.crash("athens").partitions[7].state == MIGRATING
    assert hosts.athens.send_off(MOVE) == content
    assert content is not None
    hosts.ephesus.install(MOVE, content)
    assert hosts.crash("ephesus").partitions[7].state == ARRIVING
    hosts.athens.drop(MOVE)
    assert hosts.crash("athens").left == {7: 2}
    hosts.ephesus.host(7, 2, fresh=False)
    assert hosts.crash("ephesus").partitions[7].state == SERVING
    assert hosts.value(hosts.ephesus, 2) == "v1"


@pytest.mark.rows("FXP-R31")
def test_a_partition_arrives_in_the_order_in_which_it_was_written() -> None:
    hosts = Hosts()
    for name in ("c", "a", "b"):
        hosts.athens.write(Written(7, name, name, "client", Answer(2)))
    assert list(hosts.move().values) == ["key", "c", "a", "b"]
    assert list(hosts.ephesus.partitions[7].values) == ["key", "c", "a", "b"]
