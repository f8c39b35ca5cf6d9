"""The store whose versions are times, and the server that gives and closes them while it leads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faultline.harness.errors import UsageError
from faultline.systems_under_test.patterns.data_replication.closed_timestamp import (
    ClosedTime,
    NotClosed,
    TimeClosed,
    TimedCommand,
)
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions
from faultline.systems_under_test.reference.follower_reads.closed_timestamps import TimedStore
from faultline.systems_under_test.reference.follower_reads.settings import FollowerReadSettings
from faultline.systems_under_test.reference.raft.key_value_store import encode_command
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientResponse,
    ExpireSessions,
    RegisterClient,
)
from faultline.systems_under_test.reference.shared.key_commands import SetValue
from faultline.testing.fake_ports import FakePorts


class TimedLog:
    """A store that is fed from index 1 on, where client 1 registers at time 10."""

    def __init__(self, keeps_past: bool = True) -> None:
        self.ports = FakePorts()
        sessions: ClientSessions[ClientResponse] = ClientSessions()
        self.store = TimedStore(sessions, self.ports.trace, OrderedVersions, keeps_past=keeps_past)
        self.index = 0
        self.write(10, RegisterClient())

    def put(self, entry: Any) -> ClientResponse:
        self.index += 1
        return self.store.apply(self.index, msgspec.msgpack.encode(entry)).response

    def write(self, timestamp: int, command: Any) -> ClientResponse:
        return self.put(TimedCommand(timestamp, encode_command(command)))

    def title(self, timestamp: int, value: str, number: int) -> ClientResponse:
        return self.write(timestamp, ClientCommand(1, number, SetValue("title", value)))


@pytest.mark.rows("FR-R22", "VVL-R3", "VVL-R13")
def test_a_write_returns_its_time_and_a_retry_with_a_later_one_the_same() -> None:
    log = TimedLog()
    assert log.title(20, "Nitroservices", 1).version == 20
    assert log.title(30, "Nitroservices", 1).version == 20
    assert log.store.replica.values.versions("title") == [20]


@pytest.mark.rows("FR-R22")
def test_a_command_of_the_servers_has_no_time_and_moves_none() -> None:
    log = TimedLog()
    log.title(20, "Nitroservices", 1)
    log.put(ExpireSessions((7,)))
    assert (log.store.version, log.store.timestamp) == (20, 20)


@pytest.mark.rows("FR-R22")
def test_a_closing_is_reported_and_makes_its_time_readable() -> None:
    log = TimedLog()
    log.title(20, "Nitroservices", 1)
    with pytest.raises(NotClosed):
        log.store.replica.read_at("title", 20)
    log.put(ClosedTime(25))
    assert log.store.replica.read_at("title", 20) == log.store.replica.read_at("title", 25) == "Nitroservices"
    assert log.store.timestamp == 25
    assert [event for event in log.ports.events if isinstance(event, TimeClosed)] == [TimeClosed(3, 25)]


@pytest.mark.parametrize(("keeps_past", "versions"), [(True, [20, 30, 40]), (False, [30, 40])])
def test_a_store_of_single_values_keeps_what_reads_at_the_newest_closed_time_need(
    keeps_past: bool, versions: list[int]
) -> None:
    log = TimedLog(keeps_past)
    log.title(20, "first", 1)
    log.title(30, "second", 2)
    log.title(40, "third", 3)
    log.put(ClosedTime(35))
    assert log.store.replica.values.versions("title") == versions
    assert log.store.replica.read_at("title", 35) == "second"


@pytest.mark.rows("FR-R22", "VVL-S5")
def test_a_snapshot_brings_back_the_closed_time_and_the_values_below_it() -> None:
    log, copy = TimedLog(), TimedLog()
    log.title(20, "Nitroservices", 1)
    log.put(ClosedTime(25))
    log.title(30, "Microservices", 2)
    copy.store.restore(log.store.snapshot())
    assert copy.store.snapshot() == log.store.snapshot()
    assert (copy.store.version, copy.store.timestamp, copy.store.replica.closed) == (30, 30, 25)
    assert copy.store.replica.read_at("title", 25) == "Nitroservices"
    copy.index = log.index
    copy.put(ExpireSessions((7,)))
    assert copy.store.version == 30


def test_versions_that_are_times_are_not_counted_by_index() -> None:
    given = {"follower_reads": "closed", "store": "versioned", "versions_kept": "3"}
    with pytest.raises(UsageError, match="versions are times"):
        FollowerReadSettings.read(given)
    assert not FollowerReadSettings.read({**given, "read_from": "leader"}).closes_timestamps
