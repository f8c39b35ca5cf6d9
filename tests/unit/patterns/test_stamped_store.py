"""The store with versions: one command is one step, the past is kept as long as asked, snapshots hold all of it."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.patterns.data_replication.versioned_value import (
    DELETED,
    IndexedVersions,
    OrderedVersions,
    VersionCompacted,
)
from faultline.systems_under_test.reference.follower_reads.stamped_store import (
    CurrentValues,
    StampedStore,
    VersionWritten,
)
from faultline.systems_under_test.reference.raft.key_value_store import encode_command
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    ClientResponse,
    RegisterClient,
)
from faultline.systems_under_test.reference.shared.key_commands import (
    Command,
    CompareAndSet,
    GetValue,
    SetValue,
)


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit(self, event: Any) -> None:
        self.events.append(event)

    def sometimes(self, mark: str) -> None:
        raise AssertionError(mark)

    def always(self, mark: str, condition: bool, detail: str = "") -> None:
        raise AssertionError(mark)


class Log:
    """A store that is fed from index 1 on, where client 1 has registered."""

    def __init__(self, versioned: bool = True, kept: int = 0) -> None:
        self.trace = Recorder()
        sessions: ClientSessions[ClientResponse] = ClientSessions()
        self.store = StampedStore(sessions, self.trace, OrderedVersions if versioned else None, kept)
        self.store.apply(1, encode_command(RegisterClient()))
        self.index = 1

    def apply(self, command: Command, number: int | None = None) -> ClientResponse:
        self.index += 1
        entry = ClientCommand(1, self.index if number is None else number, command)
        return self.store.apply(self.index, encode_command(entry)).response


@pytest.mark.rows("VVL-R2", "VVL-R3", "FR-R19")
def test_a_write_returns_the_index_of_its_entry_and_a_retry_the_same() -> None:
    log = Log()
    assert log.apply(SetValue("title", "Nitroservices"), number=1).version == 2
    assert log.apply(SetValue("title", "Nitroservices"), number=1).version == 2
    assert log.store.current.versions is not None
    assert log.store.current.versions.versions("title") == [2]
    assert log.store.version == 3


def test_reads_and_refused_commands_write_no_version() -> None:
    log = Log()
    log.apply(SetValue("title", "Nitroservices"))
    log.apply(GetValue("title"))
    assert log.apply(CompareAndSet("title", "other", "x")).error == "cas-mismatch"
    written = [event for event in log.trace.events if isinstance(event, VersionWritten)]
    assert [(event.key, event.version) for event in written] == [("title", 2)]


def test_changes_are_seen_by_their_own_command_and_by_others_once_they_are_committed() -> None:
    values = CurrentValues(OrderedVersions())
    values["title"] = "Nitroservices"
    values["author"] = "unknown"
    values.commit(1)
    values["title"] = "Microservices"
    del values["author"]
    assert values["title"] == "Microservices"
    assert list(values) == ["title"]
    assert values.at("title", 1) == "Nitroservices"
    assert values.commit(2) == {"title": "Microservices", "author": DELETED}
    assert dict(values) == {"title": "Microservices"}
    assert [values.at("author", version) for version in (0, 1, 2)] == [None, "unknown", None]
    with pytest.raises(KeyError):
        del values["author"]


@pytest.mark.rows("VVL-R16")
def test_only_so_much_of_the_past_is_kept_as_was_asked_for() -> None:
    log = Log(kept=3)
    for number in range(10):
        log.apply(SetValue("title", number))
    assert log.store.version == 11
    assert [log.store.current.at("title", version) for version in (8, 11)] == [6, 9]
    with pytest.raises(VersionCompacted):
        log.store.current.at("title", 7)


@pytest.mark.rows("VVL-R17", "VVL-S5")
@pytest.mark.parametrize("versioned", [True, False])
def test_a_snapshot_brings_back_values_versions_and_answers(versioned: bool) -> None:
    log, copy = Log(versioned), Log(versioned)
    log.apply(SetValue("title", "Nitroservices"))
    log.apply(SetValue("author", "unknown"))
    log.store.values.pop("author")
    log.store.current.commit(4)
    log.apply(SetValue("title", "Microservices"), number=9)
    copy.store.restore(log.store.snapshot())
    assert copy.store.snapshot() == log.store.snapshot()
    assert (copy.store.version, dict(copy.store.values)) == (4, {"title": "Microservices"})
    copy.index = log.index
    assert copy.apply(SetValue("title", "Microservices"), number=9).version == 4
    if versioned:
        assert copy.store.current.at("title", 3) == "Nitroservices"


def test_a_snapshot_remembers_what_was_compacted() -> None:
    log, copy = Log(kept=1), Log(kept=1)
    for number in range(5):
        log.apply(SetValue("title", number))
    copy.store.restore(log.store.snapshot())
    with pytest.raises(VersionCompacted):
        copy.store.current.at("title", 3)


def test_the_layout_of_the_past_does_not_show() -> None:
    ordered, indexed = CurrentValues(OrderedVersions()), CurrentValues(IndexedVersions())
    for version in range(1, 20):
        for values in (ordered, indexed):
            values[f"k{version % 3}"] = version
            values.commit(version)
    keys = [f"k{number}" for number in range(4)]
    assert [ordered.at(key, at) for key in keys for at in range(21)] == [
        indexed.at(key, at) for key in keys for at in range(21)
    ]
